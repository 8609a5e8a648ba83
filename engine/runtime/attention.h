// SPDX-License-Identifier: Apache-2.0
// The attention part of a layer, over the paged KV cache: projections, norms and rotation of
// queries and keys, one kernel call per (KV head, row), output projection. Latent attention (MLA)
// runs in its absorbed form: queries are projected into the space of the cached latent, all heads
// share one "KV head" of it, and the mixed latents are projected back per head.
#pragma once

#include <span>
#include <vector>

#include "engine/runtime/batch.h"
#include "engine/runtime/compute.h"
#include "engine/runtime/kv_cache.h"
#include "engine/runtime/weights.h"

namespace colibri {

class AttentionStage {
public:
    // Everything must outlive this.
    AttentionStage(const ModelConfig& config, const Compute& compute, const KvShape& kv);

    // Once per forward pass: the rotation of every row's position.
    void beginStep(std::span<const BatchRow> rows);
    // residual (rows, H) += scale * attention(norm(residual)); K and V go into the cache.
    void run(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows, float* residual);

    const KvShape& kvShape() const { return m_kv; }
    int64_t scratchBytes() const;

private:
    struct ThreadScratch {
        std::vector<const void*> pages;
        const KvSequence* sequence = nullptr;
        int64_t kvHead = -1;
        ScratchBuffer scores;
    };

    // m_q and m_k, m_v from m_normed; rows' keys and values into the cache.
    void project(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows);
    void projectLatent(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows);
    void finishRow(const LayerWeights& w, int64_t layer, const BatchRow& row, int64_t r);
    void finishLatentRow(const LayerWeights& w, int64_t layer, const BatchRow& row, int64_t r);
    void normHeads(const float* weight, float* x, int64_t heads) const;
    void rotate(float* heads, int64_t count, int64_t stride, int64_t r) const;
    void append(int64_t layer, const BatchRow& row, const float* k, const float* v) const;
    void store(const float* from, int64_t slot, std::byte* rows) const;
    void attendAll(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows);
    void attend(const LayerWeights& w, int64_t layer, const BatchRow& row, int64_t r,
                int64_t kvHead, int64_t firstHead, int64_t heads, ThreadScratch& scratch) const;
    int64_t firstVisible(int64_t layer, int64_t position) const;
    // The normed rows in the form that a matrix needs; each form is computed once per layer.
    const std::byte* normedFor(const Matrix& m, int64_t rows);

    const ModelConfig& m_config;
    const Compute& m_compute;
    const KvShape m_kv;
    const int64_t m_hidden, m_heads;
    const int64_t m_queryDim, m_valueDim;  // per head, as the kernel sees them
    const float m_scale;
    const std::vector<float> m_frequencies;  // (rotaryDim / 2)
    std::vector<ThreadScratch> m_threads;

    const std::byte* m_inputs[2] = {};  // of the current layer: as floats, quantised
    ScratchBuffer m_rope;               // (rows, rotaryDim) cos, sin pairs
    ScratchBuffer m_normed;             // (rows, H)
    ScratchBuffer m_prepared, m_quantised;
    ScratchBuffer m_q, m_k, m_v;  // (rows, heads * queryDim), (rows, KV heads * d) twice
    ScratchBuffer m_latent;       // of queries: (rows, qRank), then (rows, heads * headDim)
    ScratchBuffer m_mixed;        // (rows, heads * valueDim) output of attention
    ScratchBuffer m_values;       // (rows, heads * MLA's valueDim)
    ScratchBuffer m_out;          // (rows, H)
};

}  // namespace colibri
