// SPDX-License-Identifier: Apache-2.0
// A simulated cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "profiler/simulate/decode_model.h"
#include "profiler/simulate/key_sample.h"

namespace colibri {

struct CurvePoint {
    int64_t cacheSize = 0;  // experts per MoE layer
    double hitRate = 0;     // 0..1
    DecodeRate decode{};    // tok/s
};

// The slots of a cache of this size for the sampled keys.
inline int64_t simulatedSlots(int64_t cacheSize, int64_t moeLayers, const KeySample& sample) {
    return std::max<int64_t>(1, std::llround(double(cacheSize * moeLayers) * sample.rate()));
}

}  // namespace colibri
