// SPDX-License-Identifier: GPL-3.0-or-later
// Measures what decides the speed of a model larger than memory: random reads from the disk in
// pieces as large as an expert, and reading memory with every core. Blocking; runs on a job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri::ui {

struct DiskRate {
    double bytesPerSecond = 0;
    int64_t readBytes = 0;       // of one read
    bool direct = true;          // false: the file system refused; the page cache took part
};

// Reads `readBytes` at random places of `files`, four at a time, for about `seconds`.
Result<DiskRate> measureDisk(const std::vector<std::filesystem::path>& files, int64_t readBytes,
                             double seconds, const ProgressFn& progress, const CancelFlag* cancel);
// The same on a file of its own in `dir`, which is deleted afterwards.
Result<DiskRate> measureDiskOf(const std::filesystem::path& dir, int64_t readBytes, double seconds,
                               const ProgressFn& progress, const CancelFlag* cancel);
// Bytes per second that all cores together read from memory.
Result<double> measureMemory(double seconds, const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri::ui
