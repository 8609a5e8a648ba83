// SPDX-License-Identifier: Apache-2.0
// The counters of the scheduler: batches, the queue, and the KV cache.
#pragma once

#include <cstdint>

namespace colibri {

// The KV cache: blocks now, tokens since the engine was loaded.
struct KvStats {
    int64_t heldBlocks = 0;   // by running requests; a shared block counts once
    int64_t keptBlocks = 0;   // of finished requests, for reuse; freed when memory is needed
    int64_t blocks = 0;       // maximum
    int64_t blockTokens = 0;  // positions per block
    uint64_t promptTokens = 0, reusedTokens = 0;  // of admitted requests
    uint64_t preemptions = 0, recomputedTokens = 0;
};

// The queue now, the batches since the engine was loaded, and the KV cache.
struct BatchStats {
    int queued = 0, active = 0;  // requests waiting and in the batch
    int preempted = 0;           // waiting to resume; not in `queued`
    uint64_t steps = 0;          // forward passes
    uint64_t requests = 0;       // sum over all steps: requests / steps is the mean batch
    uint64_t rows = 0;           // tokens processed in all steps
    KvStats kv;

    double meanBatch() const { return steps ? double(requests) / double(steps) : 0; }
};

}  // namespace colibri
