// SPDX-License-Identifier: Apache-2.0
// Latent attention: the cache holds [latent | rotated key] per position, and the query of a head is
// [q . k_up | rotated query].
#include <algorithm>

#include "engine/runtime/attention.h"

namespace colibri {

namespace {

constexpr float kLatentEps = 1e-6f;  // of the latents' norms, regardless of rms_norm_eps

}  // namespace

void AttentionStage::projectLatent(const LayerWeights& w, int64_t layer,
                                   std::span<const BatchRow> rows) {
    const ModelConfig& c = m_config;
    const auto n = int64_t(rows.size());
    const int64_t qWidth = m_heads * c.headDim;
    auto* kv = m_k.as<float>(n * w.kvA.rows);
    auto* queries = m_v.as<float>(n * qWidth);
    if (w.qA) {
        auto* latent = m_latent.as<float>(n * w.qA.rows);
        const MatmulJob jobs[2] = {{&w.qA, normedFor(w.qA, n), n, latent},
                                   {&w.kvA, normedFor(w.kvA, n), n, kv}};
        m_compute.matmuls(jobs);
        m_compute.forRows(n, [&](int64_t r) {
            float* x = latent + r * w.qA.rows;
            m_compute.kernels().rmsNorm(x, w.qANorm, w.qA.rows, kLatentEps, x);
        });
        const MatmulJob up{&w.qB, m_compute.prepare(w.qB.type, latent, n, w.qB.cols, m_mixed), n,
                           queries};
        m_compute.matmuls({&up, 1});
    } else {
        const MatmulJob jobs[2] = {{&w.q, normedFor(w.q, n), n, queries},
                                   {&w.kvA, normedFor(w.kvA, n), n, kv}};
        m_compute.matmuls(jobs);
    }
    // Into the space of the latent, by head; the rotated parts follow in finishLatentRow.
    auto* lifted = m_latent.as<float>(n * w.kUp.rows);
    m_compute.perHead(w.kUp, m_heads, queries, qWidth, c.headDim, n, m_mixed, lifted);
    m_q.as<float>(n * m_heads * m_queryDim);
    m_compute.forRows(n, [&](int64_t r) { finishLatentRow(w, layer, rows[size_t(r)], r); });
}

void AttentionStage::finishLatentRow(const LayerWeights& w, int64_t layer, const BatchRow& row,
                                     int64_t r) {
    const ModelConfig& c = m_config;
    const int64_t rank = c.mla.kvRank, rotary = c.rope.rotaryDim;
    float* k = m_k.as<float>(0) + r * m_queryDim;
    m_compute.kernels().rmsNorm(k, w.kvANorm, rank, kLatentEps, k);
    rotate(k + rank, 1, 0, r);
    append(layer, row, k, nullptr);

    const float* lifted = m_latent.as<float>(0) + r * m_heads * rank;
    const float* query = m_v.as<float>(0) + r * m_heads * c.headDim;
    float* q = m_q.as<float>(0) + r * m_heads * m_queryDim;
    for (int64_t h = 0; h < m_heads; ++h) {
        float* to = q + h * m_queryDim;
        std::copy(lifted + h * rank, lifted + (h + 1) * rank, to);
        const float* turned = query + h * c.headDim + c.mla.nopeDim;
        std::copy(turned, turned + rotary, to + rank);
    }
    rotate(q + rank, m_heads, m_queryDim, r);
}

}  // namespace colibri
