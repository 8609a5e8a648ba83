// SPDX-License-Identifier: Apache-2.0
#include "engine/run/forward.h"

#include <algorithm>
#include <cmath>

namespace colibri {

Forward::Forward(const ContainerInfo& info, const ModelWeights& weights, ExpertStore& store,
                 ThreadPool& pool, const KernelSet& kernels, const KvShape& kv, EventRing* ring)
    : m_info(info),
      m_weights(weights),
      m_compute(pool, kernels),
      m_kv(kv),
      m_moe(info, weights, store, m_compute, ring),
      m_hidden(info.config.hiddenSize),
      m_headDim(info.config.headDim),
      m_heads(info.config.numHeads),
      m_kvHeads(info.config.numKvHeads) {
    // In f32, as the reference evaluates them: the rounding of the angles is part of the model.
    const RopeSpec& rope = info.config.rope;
    for (int i = 0; i < rope.rotaryDim; i += 2) {
        float f = 1.0f / float(std::pow(rope.theta, double(float(i) / float(rope.rotaryDim))));
        if (rope.type == "linear") f /= float(rope.factor);
        m_inverseFrequencies.push_back(f);
    }
}

bool Forward::run(std::span<BatchRow> rows, const std::atomic<bool>* abort,
                  RoutingCapture* capture) {
    const auto n = int64_t(rows.size());
    auto* x = m_x.as<float>(n * m_hidden);
    m_compute.forRows(n,
                      [&](int64_t r) { m_weights.embed(rows[size_t(r)].token, x + r * m_hidden); });
    for (BatchRow& row : rows) {
        row.status = {};
        row.lookups = row.hits = 0;
        row.worstWaitNs = 0;
        row.worstLayer = row.worstExpert = 0;
        row.logits = nullptr;
    }
    fillRope(rows);
    m_moe.beginStep(rows);
    for (int64_t l = 0; l < m_info.config.numLayers; ++l) {
        if (abort && abort->load(std::memory_order_relaxed)) return false;
        const LayerWeights& w = m_weights.layer(l);
        attention(w, l, rows);
        if (w.moeIndex >= 0) {
            m_moe.run(l, rows, x, capture);
        } else {
            denseFfn(w, n);
        }
    }
    for (BatchRow& row : rows) row.sequence->tokens.push_back(row.token);
    head(rows);
    return true;
}

// (cos, sin) pairs of every row's position; the same in all layers.
void Forward::fillRope(std::span<BatchRow> rows) {
    const auto half = int64_t(m_inverseFrequencies.size());
    auto* table = m_rope.as<float>(int64_t(rows.size()) * 2 * half);
    m_compute.forRows(int64_t(rows.size()), [&](int64_t r) {
        const auto position = float(rows[size_t(r)].position);
        float* out = table + r * 2 * half;
        for (int64_t i = 0; i < half; ++i) {
            const float angle = position * m_inverseFrequencies[size_t(i)];
            out[2 * i] = std::cos(angle);
            out[2 * i + 1] = std::sin(angle);
        }
    });
}

void Forward::attention(const LayerWeights& w, int64_t layer, std::span<BatchRow> rows) {
    const auto n = int64_t(rows.size());
    const KernelSet& kernels = m_compute.kernels();
    auto* x = m_x.as<float>(n * m_hidden);
    auto* normed = m_normed.as<float>(n * m_hidden);
    m_compute.forRows(n, [&](int64_t r) {
        kernels.rmsNorm(x + r * m_hidden, w.attnNorm, m_hidden, m_info.config.rmsEps,
                        normed + r * m_hidden);
    });
    // q, k and v may be of different types; at most two forms of input exist.
    const std::byte* inputs[2] = {};
    const auto inputFor = [&](const Matrix& m) {
        const bool quantised = usesQuantisedInput(m.type);
        const std::byte*& in = inputs[quantised];
        if (!in) {
            in = m_compute.prepare(m.type, normed, n, m_hidden,
                                   quantised ? m_prepared : m_prepared2);
        }
        return in;
    };
    const MatmulJob jobs[3] = {{&w.q, inputFor(w.q), n, m_q.as<float>(n * m_heads * m_headDim)},
                               {&w.k, inputFor(w.k), n, m_k.as<float>(n * m_kvHeads * m_headDim)},
                               {&w.v, inputFor(w.v), n, m_v.as<float>(n * m_kvHeads * m_headDim)}};
    m_compute.matmuls(jobs);
    const Matrix* const next[] = {&w.o};
    m_compute.warm(next);
    m_compute.forRows(n, [&](int64_t r) { finishQkv(w, layer, rows[size_t(r)], r); });

    m_mixed.as<float>(n * m_heads * m_headDim);
    m_attention.resize(size_t(m_compute.pool().threads()));
    for (AttentionScratch& s : m_attention) s.sequence = nullptr;
    // One item per (KV head, row); with too few of them, the heads of a group are split up.
    const int64_t group = m_heads / m_kvHeads;
    const int64_t wanted = 4 * m_compute.pool().threads();
    const int64_t parts = n * m_kvHeads >= wanted ? 1 : group;
    m_compute.pool().parallelForIndexed(
        m_kvHeads * parts * n, 1, [&](int thread, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t r = i % n, part = i / n % parts, kvHead = i / n / parts;
                attend(layer, rows[size_t(r)], r, kvHead, kvHead * group + part * (group / parts),
                       group / parts, m_attention[size_t(thread)]);
            }
        });

    auto* out = m_out.as<float>(n * m_hidden);
    const MatmulJob o{
        &w.o, m_compute.prepare(w.o.type, m_mixed.as<float>(0), n, m_heads * m_headDim, m_prepared),
        n, out};
    m_compute.matmuls({&o, 1});
    const Matrix* const after[] = {w.router ? &w.router : &w.gate};
    m_compute.warm(after);
    addRows(x, out, n);
    if (w.oBias) {
        for (int64_t r = 0; r < n; ++r) kernels.axpy(x + r * m_hidden, 1.0f, w.oBias, m_hidden);
    }
}

void Forward::normHeads(const float* weight, float* x, int64_t heads) const {
    const ModelConfig& c = m_info.config;
    if (c.qkNorm == QkNorm::FullWidth) {
        m_compute.kernels().rmsNorm(x, weight, heads * m_headDim, c.rmsEps, x);
    } else if (c.qkNorm == QkNorm::PerHead) {
        for (int64_t h = 0; h < heads; ++h) {
            m_compute.kernels().rmsNorm(x + h * m_headDim, weight, m_headDim, c.rmsEps,
                                        x + h * m_headDim);
        }
    }
}

// Bias, norm, clip and rotation of one row's q, k and v; k and v go into the cache.
void Forward::finishQkv(const LayerWeights& w, int64_t layer, const BatchRow& row, int64_t r) {
    const ModelConfig& c = m_info.config;
    const KernelSet& kernels = m_compute.kernels();
    const int64_t qWidth = m_heads * m_headDim, kvWidth = m_kvHeads * m_headDim;
    float* q = m_q.as<float>(0) + r * qWidth;
    float* k = m_k.as<float>(0) + r * kvWidth;
    float* v = m_v.as<float>(0) + r * kvWidth;
    if (w.qBias) {
        kernels.axpy(q, 1.0f, w.qBias, qWidth);
        kernels.axpy(k, 1.0f, w.kBias, kvWidth);
        kernels.axpy(v, 1.0f, w.vBias, kvWidth);
    }
    normHeads(w.qNorm, q, m_heads);
    normHeads(w.kNorm, k, m_kvHeads);
    if (c.clipQkv > 0) {
        const auto clip = [&](float* p, int64_t n) {
            for (int64_t i = 0; i < n; ++i) p[i] = std::clamp(p[i], -c.clipQkv, c.clipQkv);
        };
        clip(q, qWidth);
        clip(k, kvWidth);
        clip(v, kvWidth);
    }
    if (const int rotary = c.rope.rotaryDim; rotary > 0) {
        const float* table = m_rope.as<float>(0) + r * rotary;
        for (int64_t h = 0; h < m_heads; ++h) {
            kernels.rope(q + h * m_headDim, rotary, table, c.rope.interleaved);
        }
        for (int64_t h = 0; h < m_kvHeads; ++h) {
            kernels.rope(k + h * m_headDim, rotary, table, c.rope.interleaved);
        }
    }
    appendKv(layer, row, k, v);
}

void Forward::appendKv(int64_t layer, const BatchRow& row, const float* k, const float* v) const {
    std::byte* block = row.sequence->blocks[size_t(row.position / kPageTokens)];
    const int64_t slot = row.position % kPageTokens, element = m_kv.elementBytes();
    for (int64_t h = 0; h < m_kvHeads; ++h) {
        std::byte* page = block + (layer * m_kvHeads + h) * m_kv.pageBytes();
        std::byte* toK = page + slot * m_headDim * element;
        std::byte* toV = toK + kPageTokens * m_headDim * element;
        const float* fromK = k + h * m_headDim;
        const float* fromV = v + h * m_headDim;
        if (m_kv.f16) {
            m_compute.kernels().toF16(fromK, m_headDim, reinterpret_cast<uint16_t*>(toK));
            m_compute.kernels().toF16(fromV, m_headDim, reinterpret_cast<uint16_t*>(toV));
        } else {
            std::copy(fromK, fromK + m_headDim, reinterpret_cast<float*>(toK));
            std::copy(fromV, fromV + m_headDim, reinterpret_cast<float*>(toV));
        }
    }
}

void Forward::attend(int64_t layer, const BatchRow& row, int64_t r, int64_t kvHead,
                     int64_t firstHead, int64_t heads, AttentionScratch& scratch) const {
    if (scratch.sequence != row.sequence || scratch.kvHead != kvHead) {
        scratch.pages.clear();
        for (const std::byte* block : row.sequence->blocks) {
            scratch.pages.push_back(block + (layer * m_kvHeads + kvHead) * m_kv.pageBytes());
        }
        scratch.sequence = row.sequence;
        scratch.kvHead = kvHead;
    }
    const int64_t width = m_heads * m_headDim, end = row.position + 1;
    const int64_t window = m_info.config.slidingWindow;
    AttentionArgs args{};
    args.q = static_cast<const float*>(m_q.data()) + r * width + firstHead * m_headDim;
    args.heads = int(heads);
    args.headDim = int(m_headDim);
    args.pages = scratch.pages.data();
    args.kvF16 = m_kv.f16;
    args.begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
    args.end = end;
    args.scale = 1.0f / std::sqrt(float(m_headDim));
    args.sinks = nullptr;
    args.scratch = scratch.scores.as<float>(heads * (args.end - args.begin));
    args.out = static_cast<float*>(m_mixed.data()) + r * width + firstHead * m_headDim;
    m_compute.kernels().attention(args);
}

void Forward::denseFfn(const LayerWeights& w, int64_t rows) {
    const KernelSet& kernels = m_compute.kernels();
    auto* x = m_x.as<float>(rows * m_hidden);
    auto* normed = m_normed.as<float>(rows * m_hidden);
    m_compute.forRows(rows, [&](int64_t r) {
        kernels.rmsNorm(x + r * m_hidden, w.ffnNorm, m_hidden, m_info.config.rmsEps,
                        normed + r * m_hidden);
    });
    const int64_t inner = w.gate.rows;
    auto* h = m_out.as<float>(rows * std::max(inner, m_hidden));
    m_compute.gateUp(w.gate, w.up,
                     m_compute.prepare(w.gate.type, normed, rows, m_hidden, m_prepared), rows, h);
    const std::byte* in = m_compute.prepare(w.down.type, h, rows, inner, m_prepared2);
    const MatmulJob down{&w.down, in, rows, normed};
    m_compute.matmuls({&down, 1});
    addRows(x, normed, rows);
}

void Forward::addRows(float* to, const float* from, int64_t rows) const {
    m_compute.forRows(rows, [&](int64_t r) {
        m_compute.kernels().axpy(to + r * m_hidden, 1.0f, from + r * m_hidden, m_hidden);
    });
}

// Final norm and vocabulary product of the rows whose logits are wanted.
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
        m_compute.kernels().rmsNorm(x + wanted[size_t(i)] * m_hidden, m_weights.norm(), m_hidden,
                                    m_info.config.rmsEps, normed + i * m_hidden);
    });
    const Matrix& head = m_weights.head();
    auto* logits = m_logits.as<float>(n * head.rows);
    const MatmulJob job{&head, m_compute.prepare(head.type, normed, n, m_hidden, m_prepared), n,
                        logits};
    m_compute.matmuls({&job, 1});
    for (int64_t i = 0; i < n; ++i) rows[size_t(wanted[size_t(i)])].logits = logits + i * head.rows;
}

int64_t Forward::scratchBytes() const {
    int64_t n = m_moe.scratchBytes();
    for (const ScratchBuffer* b : {&m_x, &m_normed, &m_prepared, &m_prepared2, &m_q, &m_k, &m_v,
                                   &m_mixed, &m_out, &m_rope, &m_logits}) {
        n += b->bytes();
    }
    for (const AttentionScratch& s : m_attention) n += s.scores.bytes();
    return n;
}

}  // namespace colibri
