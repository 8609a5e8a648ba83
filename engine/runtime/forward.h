// SPDX-License-Identifier: Apache-2.0
// One forward pass over a batch of rows from any number of sequences. Each row's results depend
// only on its own sequence: never on the rest of the batch, the number of threads or the cache.
// Used by one thread at a time.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "engine/runtime/attention.h"
#include "engine/runtime/batch.h"
#include "engine/runtime/compute.h"
#include "engine/runtime/kv_cache.h"
#include "engine/runtime/moe.h"
#include "engine/runtime/weights.h"

namespace colibri {

class Forward {
public:
    // Everything must outlive this. `ring` may be nullptr: no events.
    Forward(const ContainerInfo& info, const ModelWeights& weights, ExpertStore& store,
            ThreadPool& pool, const KernelSet& kernels, const KvShape& kv, EventRing* ring);

    void setPrefetch(const PrefetchPlan& plan) { m_moe.setPrefetch(plan); }
    void setRouter(RouterPlan plan) { m_moe.setRouter(std::move(plan)); }
    const MoeStage& moe() const { return m_moe; }

    // Rows of one sequence are adjacent, in ascending positions without gaps, the first at the
    // length of its sequence; the sequence has blocks for all of them. Results are stored in the
    // rows. False: `abort` was set during the run; nothing was appended to any sequence.
    // `step`: its number, for events.
    bool run(std::span<BatchRow> rows, const std::atomic<bool>* abort = nullptr,
             RoutingCapture* capture = nullptr, uint32_t step = 0);

    // After run() has thrown: releases everything the step holds.
    void giveUp() { m_moe.giveUp(); }
    // ---- of the last run ----
    struct Times {
        uint64_t attentionNs = 0, denseNs = 0, headNs = 0;
    };
    const Times& times() const { return m_times; }  // those of the experts: moe()
    int64_t scratchBytes() const;
    const KvShape& kvShape() const { return m_attention.kvShape(); }

private:
    void denseFfn(const LayerWeights& w, int64_t rows);
    void head(std::span<BatchRow> rows);

    const ContainerInfo& m_info;
    const ModelWeights& m_weights;
    Compute m_compute;
    AttentionStage m_attention;
    MoeStage m_moe;
    const int64_t m_hidden;

    FfnScratch m_ffn;
    ScratchBuffer m_x;              // (rows, H) the residual stream
    ScratchBuffer m_normed, m_out;  // (rows, H)
    ScratchBuffer m_prepared;
    ScratchBuffer m_logits;  // (requested rows, vocab)
    Times m_times;
};

}  // namespace colibri
