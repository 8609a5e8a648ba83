// SPDX-License-Identifier: Apache-2.0
// The outputs of the expert stage: prefetch hints for coming layers, routing events, captures.
#include <algorithm>

#include "engine/runtime/moe.h"

namespace colibri {

// Passes the counted experts to the store, most frequent first, and clears the counts.
void MoeStage::hintCounted(int64_t moeLayer) {
    m_ids.clear();
    for (int64_t e = 0; e < m_experts; ++e) {
        if (m_counts[size_t(e)] > 0) m_ids.push_back(uint16_t(e));
    }
    std::stable_sort(m_ids.begin(), m_ids.end(),
                     [&](uint16_t a, uint16_t b) { return m_counts[a] > m_counts[b]; });
    if (!m_ids.empty()) m_store.hint(moeLayer, m_ids);
    std::fill(m_counts.begin(), m_counts.end(), 0);
}

// The coming layers' routers, applied to the state before this layer's experts: the residual
// stream changes slowly, so most of their choices are already right.
void MoeStage::hintNextRouter(int64_t moeLayer, std::span<BatchRow> rows, const float* residual) {
    const auto n = int64_t(rows.size());
    m_counts.resize(size_t(m_experts));
    const int64_t last = std::min(moeLayer + m_plan.depth, m_moeLayers - 1);
    std::vector<int> chosen(size_t(n * m_topK));
    for (int64_t next = moeLayer + 1; next <= last; ++next) {
        const LayerWeights& w = m_weights.layer(m_weights.layerOfMoe(next));
        auto* logits = m_hintLogits.as<float>(n * m_experts);
        gateLogits(w, residual, n, m_hintNormed.as<float>(n * m_hidden), m_hintIn, logits);
        // Every score function is monotonic in the logit; only selection biases and groups are
        // left out here.
        m_compute.forRows(n, [&](int64_t r) {
            topK(logits + r * m_experts, int(m_experts), int(m_topK), &chosen[size_t(r * m_topK)]);
        });
        for (size_t i = 0; i < chosen.size(); ++i) {
            // Ranks weigh a little, so that one row's hints keep their order.
            m_counts[size_t(chosen[i])] += 2 * m_topK - int64_t(i) % m_topK;
        }
        hintCounted(next);
    }
}

// The experts that the previous token of each sequence used in the coming layers.
void MoeStage::hintPreviousToken(int64_t moeLayer, std::span<BatchRow> rows) {
    m_counts.resize(size_t(m_experts));
    const int64_t last = std::min(moeLayer + m_plan.depth, m_moeLayers - 1);
    for (int64_t next = moeLayer + 1; next <= last; ++next) {
        for (const BatchRow& row : rows) {
            if (row.prefill || row.sequence->lastExperts.empty()) continue;
            const uint16_t* used = &row.sequence->lastExperts[size_t(next * m_topK)];
            for (int64_t i = 0; i < m_topK; ++i) m_counts[used[i]] += 2 * m_topK - i;
        }
        hintCounted(next);
    }
}

// The table's experts for the step's tokens in layers [first, last]: known before the step.
void MoeStage::hintRouterTable(int64_t first, int64_t last) {
    if (!m_routerPlan.table) return;
    m_counts.resize(size_t(m_experts));
    std::vector<int> named(m_tokens.size() * size_t(m_topK));
    for (int64_t next = first; next <= std::min(last, m_moeLayers - 1); ++next) {
        m_routerPlan.table->lookup(m_compute.kernels(), next, m_tokens, named.data());
        for (size_t i = 0; i < named.size(); ++i) {
            m_counts[size_t(named[i])] += 2 * m_topK - int64_t(i) % m_topK;
        }
        hintCounted(next);
    }
}

void MoeStage::remember(int64_t moeLayer, std::span<BatchRow> rows) {
    for (size_t r = 0; r < rows.size(); ++r) {
        BatchRow& row = rows[r];
        if (!row.status.ok()) continue;
        row.lookups += uint32_t(m_topK);
        for (int64_t i = 0; i < m_topK; ++i) {
            const int e = m_chosen[r * size_t(m_topK) + size_t(i)];
            row.hits += m_work[size_t(m_workOf[size_t(e)])].ticket.hit ? 1 : 0;
        }
        // Only the last row of a sequence is the token before the next one.
        if (r + 1 < rows.size() && rows[r + 1].sequence == row.sequence) continue;
        row.sequence->lastExperts.resize(size_t(m_moeLayers * m_topK));
        for (int64_t i = 0; i < m_topK; ++i) {
            row.sequence->lastExperts[size_t(moeLayer * m_topK + i)] =
                uint16_t(m_chosen[r * size_t(m_topK) + size_t(i)]);
        }
    }
}

void MoeStage::report(int64_t layer, std::span<BatchRow> rows) {
    if (!m_ring) return;
    const uint64_t now = monotonicNs();
    bool firstRow = true;
    m_seen.assign(size_t(m_experts), 0);
    for (size_t r = 0; r < rows.size(); ++r) {
        for (int64_t from = 0; from < m_topK; from += kEventExperts) {
            Event event{};
            event.timeNs = now;
            event.type = EventType::LayerStep;
            LayerStepEvent& s = event.layerStep;
            s = {};
            s.request = rows[r].request;
            s.position = uint32_t(rows[r].position);
            s.layer = uint16_t(layer);
            s.count = uint8_t(std::min<int64_t>(kEventExperts, m_topK - from));
            s.rows = uint16_t(rows.size());
            s.prefill = rows[r].prefill ? 1 : 0;
            s.step = m_step;
            if (firstRow) {
                s.firstRow = 1;
                s.routerNs = uint32_t(std::min<uint64_t>(m_routerNs, UINT32_MAX));
                s.waitNs = uint32_t(std::min<uint64_t>(m_waitNs, UINT32_MAX));
                s.computeNs = uint32_t(std::min<uint64_t>(m_computeNs, UINT32_MAX));
                firstRow = false;
            }
            for (int i = 0; i < s.count; ++i) {
                const int e = m_chosen[r * size_t(m_topK) + size_t(from + i)];
                s.experts[i] = uint16_t(e);
                if (!rows[r].status.ok()) continue;
                if (!m_seen[size_t(e)]) s.firstBits |= uint16_t(1u << i);
                m_seen[size_t(e)] = 1;
                const Ticket& t = m_work[size_t(m_workOf[size_t(e)])].ticket;
                if (t.hit) s.hitBits |= uint16_t(1u << i);
                if (t.byPrefetch) s.prefetchBits |= uint16_t(1u << i);
            }
            m_ring->write(event);
        }
    }
}

void MoeStage::capture(int64_t moeLayer, int64_t rows, RoutingCapture& out) const {
    out.layers.resize(size_t(m_moeLayers));
    RoutingCapture::Layer& layer = out.layers[size_t(moeLayer)];
    for (int64_t r = 0; r < rows; ++r) {
        const auto at = size_t(r * m_topK);
        layer.experts.emplace_back(m_chosen.begin() + std::ptrdiff_t(at),
                                   m_chosen.begin() + std::ptrdiff_t(at) + m_topK);
        layer.weights.emplace_back(m_chosenWeights.begin() + std::ptrdiff_t(at),
                                   m_chosenWeights.begin() + std::ptrdiff_t(at) + m_topK);
    }
}

}  // namespace colibri
