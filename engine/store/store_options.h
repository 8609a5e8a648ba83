// SPDX-License-Identifier: Apache-2.0
// How an expert store is opened. The values are those of the knobs, within the knobs' ranges.
#pragma once

#include <cstdint>

#include "engine/knobs/knobs.h"

namespace colibri {

struct StoreOptions {
    int64_t cacheSize = 0;  // experts per MoE layer
    CachePolicyKind policy = CachePolicyKind::Lru;
    PrefetchSource prefetchSource = PrefetchSource::NextRouter;
    int64_t prefetchDepth = 1;    // layers ahead
    int64_t prefetchThreads = 1;  // 0: no prefetch
    IoMode ioMode = IoMode::Direct;
    int64_t ioDepth = 8;    // demand reads in flight
    int64_t linkLimit = 0;  // MB/s (10^6), 0 = none
    // Prepare the memory of all slots in the background: at full speed while the store is idle,
    // otherwise gradually.
    bool prepareMemory = false;
};

}  // namespace colibri
