// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/forward.h"

namespace colibri {

Forward::Forward(const ContainerInfo& info, const ModelWeights& weights, ExpertStore& store,
                 ThreadPool& pool, const KernelSet& kernels, const KvShape& kv, EventRing* ring)
    : m_info(info),
      m_weights(weights),
      m_compute(pool, kernels),
      m_attention(info.config, m_compute, kv),
      m_moe(info, weights, store, m_compute, ring),
      m_hidden(info.config.hiddenSize) {}

bool Forward::run(std::span<BatchRow> rows, const std::atomic<bool>* abort, RoutingCapture* capture,
                  uint32_t step) {
    m_times = {};
    const auto n = int64_t(rows.size());
    const auto scale = float(m_info.config.embeddingScale);
    auto* x = m_x.as<float>(n * m_hidden);
    m_compute.forRows(n, [&](int64_t r) {
        float* to = x + r * m_hidden;
        m_weights.embed(rows[size_t(r)].token, to);
        if (scale != 1) {
            for (int64_t i = 0; i < m_hidden; ++i) to[i] *= scale;
        }
    });
    for (BatchRow& row : rows) {
        row.status = {};
        row.lookups = row.hits = 0;
        row.worstWaitNs = 0;
        row.worstLayer = row.worstExpert = 0;
        row.logits = nullptr;
    }
    m_attention.beginStep(rows);
    m_moe.beginStep(rows, abort, step);
    for (int64_t l = 0; l < m_info.config.numLayers; ++l) {
        if (abort && abort->load(std::memory_order_relaxed)) return false;
        const LayerWeights& w = m_weights.layer(l);
        const uint64_t attention = monotonicNs();
        m_attention.run(w, l, rows, x);
        const uint64_t ffn = monotonicNs();
        m_times.attentionNs += ffn - attention;
        if (w.moeIndex >= 0) {
            if (!m_moe.run(l, rows, x, capture)) return false;
        } else {
            denseFfn(w, n);
            m_times.denseNs += monotonicNs() - ffn;
        }
    }
    for (BatchRow& row : rows) row.sequence->tokens.push_back(row.token);
    const uint64_t start = monotonicNs();
    head(rows);
    m_times.headNs = monotonicNs() - start;
    return true;
}

void Forward::denseFfn(const LayerWeights& w, int64_t rows) {
    auto* x = m_x.as<float>(rows * m_hidden);
    auto* normed = m_normed.as<float>(rows * m_hidden);
    m_compute.forRows(rows, [&](int64_t r) {
        m_compute.norm(w.ffnNorm, m_info.config.rmsEps, x + r * m_hidden, m_hidden,
                       normed + r * m_hidden);
    });
    auto* out = m_out.as<float>(rows * m_hidden);
    m_compute.ffn(w.dense, normed, rows, m_ffn, out);
    const auto scale = float(m_info.config.residualScale);
    m_compute.forRows(rows, [&](int64_t r) {
        m_compute.kernels().axpy(x + r * m_hidden, scale, out + r * m_hidden, m_hidden);
    });
}

// Final norm and vocabulary product of the rows whose logits are requested.
void Forward::head(std::span<BatchRow> rows) {
    std::vector<int64_t> wanted;
    for (size_t r = 0; r < rows.size(); ++r) {
        if (rows[r].wantLogits && rows[r].status.ok()) wanted.push_back(int64_t(r));
    }
    if (wanted.empty()) return;
    const auto n = int64_t(wanted.size());
    const auto* x = m_x.as<float>(0);
    auto* normed = m_normed.as<float>(n * m_hidden);
    m_compute.forRows(n, [&](int64_t i) {
        m_compute.norm(m_weights.norm(), m_info.config.rmsEps, x + wanted[size_t(i)] * m_hidden,
                       m_hidden, normed + i * m_hidden);
    });
    const Matrix& head = m_weights.head();
    auto* logits = m_logits.as<float>(n * head.rows);
    const MatmulJob job{&head, m_compute.prepare(head.type, normed, n, m_hidden, m_prepared), n,
                        logits};
    m_compute.matmuls({&job, 1});
    const auto divisor = float(m_info.config.logitScale);
    for (int64_t i = 0; i < n; ++i) {
        float* row = logits + i * head.rows;
        if (m_weights.headBias()) {
            m_compute.kernels().axpy(row, 1.0f, m_weights.headBias(), head.rows);
        }
        if (divisor != 1) {
            for (int64_t v = 0; v < head.rows; ++v) row[v] /= divisor;
        }
        rows[size_t(wanted[size_t(i)])].logits = row;
    }
}

int64_t Forward::scratchBytes() const {
    int64_t n = m_moe.scratchBytes() + m_attention.scratchBytes() + m_ffn.bytes();
    for (const ScratchBuffer* b : {&m_x, &m_normed, &m_out, &m_prepared, &m_logits}) {
        n += b->bytes();
    }
    return n;
}

}  // namespace colibri
