// SPDX-License-Identifier: Apache-2.0
// What the sources of GPU counters measure. NaN: the source has no value.
#pragma once

#include <cmath>

namespace colibri {

struct GpuReading {
    // Shares, 0..1, of a time that depends on the source (GpuSource::provenance).
    double smUtilisation = NAN;   // of the SMs' cycles with at least one warp in flight
    double dramThroughput = NAN;  // of the largest possible rate of the GPU's memory
    double busy = NAN;            // of the time with any kernel
    double memoryUsed = NAN, memoryTotal = NAN;  // bytes
    double smClock = NAN;                        // Hz
    double power = NAN;                          // W
};

}  // namespace colibri
