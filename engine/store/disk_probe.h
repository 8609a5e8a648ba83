// SPDX-License-Identifier: Apache-2.0
// Measures how fast random records are read, with the read queue of the expert store.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct DiskRate {
    double bytesPerSecond = 0;
    bool direct = false;  // reads bypassed the page cache
    std::string reads;    // how: "io_uring, registered buffers"
};

// Keeps `depth` reads of random records of the model's expert files in flight for about `seconds`,
// or until `stop`. Errors: those of reading; OutOfMemory. REQUIRES: the model has expert files;
// 1 <= depth <= 64
Result<DiskRate> probeDisk(const ContainerInfo& info, int depth, double seconds,
                           const std::atomic<bool>& stop);

}  // namespace colibri
