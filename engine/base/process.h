// SPDX-License-Identifier: Apache-2.0
// The first call of every program, and its exit code.
#pragma once

#include "engine/base/status.h"

namespace colibri {

// Opens /dev/null for a standard stream that the caller closed, so that no other file gets its
// descriptor and is written to as a terminal; writing to a closed standard output fails. Failed
// writes (that one, a closed pipe, a file size limit) become reported errors instead of fatal
// signals. Limits the gaps that the allocator keeps. Call before any thread starts.
void prepareProcess();

enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2, kBadInput = 3, kUnsupported = 4 };
int exitCodeOf(Code code);

}  // namespace colibri
