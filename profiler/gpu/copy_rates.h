// SPDX-License-Identifier: Apache-2.0
// Measures copies between host memory and a GPU.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace colibri {

struct GpuCopyRates {
    double toGpu = 0, fromGpu = 0;  // bytes per second, page-locked host memory
};

// Copies 64 MiB at a time for about `seconds` in each direction. Any thread. `driver`: see
// GpuLibraryPaths. Errors: Unsupported with reason and remedy (no driver, no GPU, no memory).
Result<GpuCopyRates> measureGpuCopies(int device, double seconds, const std::string& driver = {});

}  // namespace colibri
