// SPDX-License-Identifier: Apache-2.0
// How fast this machine reads experts from disk and weights from memory: the bounds of any measured
// speed. Measured once per machine, disk and record size, and stored in the user's cache folder.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct Calibration {
    double diskBytesPerSecond = 0;  // random reads of whole expert records, 8 in flight; 0: unknown
    double memoryBytesPerSecond = 0;  // sequential, all physical cores together; 0: unknown
    bool direct = false;              // reads bypassed the page cache
    std::string reads;                // how: "io_uring, registered buffers"
    std::string reason;               // why a rate is unknown
    int64_t recordBytes = 0;          // of one read from disk
    int64_t measuredAt = 0;           // seconds since 1970; 0: unknown
};

// Reads the model's own expert files and a buffer, for about 0.4 s together. `stop` ends it early
// with Cancelled. Errors: those of reading; OutOfMemory.
Result<Calibration> measureCalibration(const ContainerInfo& info, const std::atomic<bool>& stop);

// Read and write the file in the user's cache folder. An entry for another machine, disk or record
// size is not used; a file that cannot be read counts as empty.
std::optional<Calibration> keptCalibration(const ContainerInfo& info);
Status keepCalibration(const ContainerInfo& info, const Calibration& calibration);
// The last measurement on this machine, of any disk and record size.
std::optional<Calibration> newestCalibration();
// The rates of the machine, regardless of the model measured last: the latest disk rate of large
// reads (1 MiB or more; small reads measure the latency of the disk, so they depend on the expert
// size) and the latest memory rate. A rate that was never measured is 0.
Calibration machineCalibration();

}  // namespace colibri
