// SPDX-License-Identifier: Apache-2.0
// What the scheduler counts: batches, the queue, and the KV cache.
#pragma once

#include <cstdint>

namespace colibri {

// The KV cache: blocks now, tokens since the engine was loaded.
struct KvStats {
    int64_t heldBlocks = 0;   // by running requests; one that several share counts once
    int64_t keptBlocks = 0;   // of ended ones, for reuse; given up when memory is needed
    int64_t blocks = 0;       // the most there can be
    int64_t blockTokens = 0;  // positions per block
    uint64_t promptTokens = 0, reusedTokens = 0;  // of admitted requests
    uint64_t preemptions = 0, recomputedTokens = 0;
};

// The queue now, and the batches since the engine was loaded.
struct BatchStats {
    int queued = 0, active = 0;  // requests waiting and in the batch
    int preempted = 0;           // waiting to come back into the batch; not in `queued`
    uint64_t steps = 0;          // forward passes
    uint64_t requests = 0;       // in them, summed: requests / steps is the mean batch
    uint64_t rows = 0;           // tokens that went through them

    double meanBatch() const { return steps ? double(requests) / double(steps) : 0; }
};

}  // namespace colibri
