// SPDX-License-Identifier: Apache-2.0
// The first call of every program.
#pragma once

namespace colibri {

// Opens /dev/null for a standard stream that the caller closed, so that no other file gets its
// descriptor and is written to as a terminal; writing to a closed standard output fails. Failed
// writes (that one, a closed pipe, a file size limit) become reported errors instead of fatal
// signals. Call before any thread starts.
void prepareProcess();

}  // namespace colibri
