// SPDX-License-Identifier: Apache-2.0
// The input and output of one forward pass, row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/status.h"
#include "engine/runtime/kv_cache.h"

namespace colibri {

struct BatchRow {
    KvSequence* sequence = nullptr;  // has blocks for `position`; its token is appended by run
    int32_t token = 0;
    int64_t position = 0;
    bool wantLogits = false;
    bool prefill = false;
    uint64_t request = 0;

    // Filled by the forward pass.
    Status status;  // not ok: a needed expert could not be read
    uint32_t lookups = 0, hits = 0;
    uint16_t worstLayer = 0, worstExpert = 0;
    uint64_t worstWaitNs = 0;       // the longest wait for an expert this row needs
    const float* logits = nullptr;  // (vocab) if requested and ok; valid until the next run
};

// Routing of every row in every MoE layer, for the logits command.
struct RoutingCapture {
    struct Layer {
        std::vector<std::vector<int>> experts;    // (rows, k)
        std::vector<std::vector<float>> weights;  // (rows, k)
    };
    std::vector<Layer> layers;  // one per MoE layer; rows are appended
};

}  // namespace colibri
