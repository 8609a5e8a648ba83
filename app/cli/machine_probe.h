// SPDX-License-Identifier: GPL-3.0-or-later
// A short measurement of how fast a disk can be read.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri::cli {

struct ReadRate {
    double bytesPerSecond = 0;
    int64_t bytes = 0;    // read for the measurement
    bool direct = false;  // past the page cache
    std::filesystem::path file;
};

// Reads the largest file below `folder` (two levels) for at most about a second; where none is
// large enough, a temporary one of 128 MiB is written first and removed.
Result<ReadRate> measureDisk(const std::filesystem::path& folder, const CancelFlag* cancel);

}  // namespace colibri::cli
