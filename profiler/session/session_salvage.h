// SPDX-License-Identifier: Apache-2.0
// Checks a session file, and copies what can be read of a damaged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

// Reads the whole file. The damage that was found, one line each; empty: none. Errors: BadInput (no
// such file, or nothing can be read), IoError.
Result<std::vector<std::string>> checkSession(const std::filesystem::path& path);

struct SalvagedTable {
    std::string name;
    int64_t kept = 0;
    // Rows that could not be read, counted from their numbers; rows that were thinned before are
    // not included.
    int64_t lost = 0;
};

// Copies all rows that can be read into the new session file `to`, which is marked as recovered and
// says what was lost (meta "salvaged"). The damaged file does not change. Progress counts tables.
// Errors: BadInput (nothing can be read), InvalidArgument (`to` exists), those of writing; on error
// `to` is deleted.
Result<std::vector<SalvagedTable>> salvageSession(const std::filesystem::path& from,
                                                  const std::filesystem::path& to,
                                                  const ProgressFn& progress,
                                                  const CancelFlag* cancel);

}  // namespace colibri
