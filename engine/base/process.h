// SPDX-License-Identifier: Apache-2.0
// What every program of ours does first.
#pragma once

namespace colibri {

// A standard stream that the caller closed is opened on /dev/null, so that no file of ours gets
// its number and is written to as a terminal; writing to a standard output that was closed fails.
// Failed writes (that one, a closed pipe, a file size limit) become errors that are reported, not
// signals that kill. Call before any thread starts.
void prepareProcess();

}  // namespace colibri
