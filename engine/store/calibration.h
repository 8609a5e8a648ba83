// SPDX-License-Identifier: Apache-2.0
// How fast this machine reads experts from disk and weights from memory: what a measured speed is
// compared with. Measured once per machine, disk and record size, and kept in the user's cache
// folder.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct Calibration {
    double diskBytesPerSecond = 0;  // random reads of whole expert records, 8 in flight; 0: unknown
    double memoryBytesPerSecond = 0;  // sequential, by the physical cores together; 0: unknown
    bool direct = false;              // the disk was read past the page cache
    std::string reads;                // how: "io_uring, registered buffers"
    std::string reason;               // why something is unknown
    int64_t recordBytes = 0;          // of one read from disk
    int64_t measuredAt = 0;           // seconds since 1970; 0: unknown
};

// Reads the model's own expert files and a buffer, for about 0.4 s together. `stop` ends it early
// with Cancelled. Errors: those of reading; OutOfMemory.
Result<Calibration> measureCalibration(const ContainerInfo& info, const std::atomic<bool>& stop);

// From and to the user's cache folder. Nothing is kept for another machine, disk or record size;
// a file that cannot be read counts as empty.
std::optional<Calibration> keptCalibration(const ContainerInfo& info);
Status keepCalibration(const ContainerInfo& info, const Calibration& calibration);
// What was measured last on this machine, of whatever disk and record size.
std::optional<Calibration> newestCalibration();
// What the machine can do, whatever model was measured last: the newest disk rate of large reads
// (1 MiB or more; small ones measure the latency of the disk, and so the size of the experts), the
// newest rate of the memory. A rate that nobody measured is 0.
Calibration machineCalibration();

}  // namespace colibri
