// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/attention.h"

#include <algorithm>
#include <cmath>

namespace colibri {

AttentionStage::AttentionStage(const ModelConfig& config, const Compute& compute, const KvShape& kv)
    : m_config(config),
      m_compute(compute),
      m_kv(kv),
      m_hidden(config.hiddenSize),
      m_heads(config.numHeads),
      m_queryDim(config.cachedKeyDim()),
      m_valueDim(config.cachedValueDim()),
      m_scale(config.attentionScale > 0 ? float(config.attentionScale)
                                        : 1.0f / std::sqrt(float(config.headDim))),
      m_frequencies(ropeFrequencies(config.rope)) {}

// (cos, sin) pairs of every row's position; the same in all layers.
void AttentionStage::beginStep(std::span<const BatchRow> rows) {
    const auto half = int64_t(m_frequencies.size());
    const RopeSpec& rope = m_config.rope;
    const bool stretched =
        rope.longAttentionFactor > 0 && m_kv.contextLength > rope.originalPositions;
    const auto factor = float(stretched ? rope.longAttentionFactor : rope.attentionFactor);
    auto* table = m_rope.as<float>(int64_t(rows.size()) * 2 * half);
    m_compute.forRows(int64_t(rows.size()), [&](int64_t r) {
        const auto position = float(rows[size_t(r)].position);
        float* out = table + r * 2 * half;
        for (int64_t i = 0; i < half; ++i) {
            const float angle = position * m_frequencies[size_t(i)];
            out[2 * i] = std::cos(angle) * factor;
            out[2 * i + 1] = std::sin(angle) * factor;
        }
    });
}

void AttentionStage::run(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows,
                         float* residual) {
    const auto n = int64_t(rows.size());
    const KernelSet& kernels = m_compute.kernels();
    auto* normed = m_normed.as<float>(n * m_hidden);
    m_compute.forRows(n, [&](int64_t r) {
        m_compute.norm(w.attnNorm, m_config.rmsEps, residual + r * m_hidden, m_hidden,
                       normed + r * m_hidden);
    });
    m_inputs[0] = m_inputs[1] = nullptr;
    const bool latent = m_config.mla.kvRank > 0;
    latent ? projectLatent(w, layer, rows) : project(w, layer, rows);
    attendAll(w, layer, rows);

    const float* mixed = m_mixed.as<float>(0);
    if (latent) {
        auto* values = m_values.as<float>(n * w.vUp.rows);
        m_compute.perHead(w.vUp, m_heads, mixed, m_heads * m_valueDim, m_valueDim, n, m_prepared,
                          values);
        mixed = values;
    }
    auto* out = m_out.as<float>(n * m_hidden);
    const MatmulJob o{&w.o, m_compute.prepare(w.o.type, mixed, n, w.o.cols, m_prepared), n, out};
    m_compute.matmuls({&o, 1});
    const Matrix* const after[] = {w.router ? &w.router : &w.dense.gate};
    m_compute.warm(after);
    const auto scale = float(m_config.residualScale);
    m_compute.forRows(n, [&](int64_t r) {
        if (w.oBias) kernels.axpy(out + r * m_hidden, 1.0f, w.oBias, m_hidden);
        kernels.axpy(residual + r * m_hidden, scale, out + r * m_hidden, m_hidden);
    });
}

// Matrices may be of different types; at most two forms of input exist.
const std::byte* AttentionStage::normedFor(const Matrix& m, int64_t rows) {
    const bool quantised = usesQuantisedInput(m.type);
    const std::byte*& in = m_inputs[quantised];
    if (!in) {
        in = m_compute.prepare(m.type, m_normed.as<float>(0), rows, m_hidden,
                               quantised ? m_quantised : m_prepared);
    }
    return in;
}

void AttentionStage::project(const LayerWeights& w, int64_t layer, std::span<const BatchRow> rows) {
    const auto n = int64_t(rows.size());
    const MatmulJob jobs[3] = {{&w.q, normedFor(w.q, n), n, m_q.as<float>(n * w.q.rows)},
                               {&w.k, normedFor(w.k, n), n, m_k.as<float>(n * w.k.rows)},
                               {&w.v, normedFor(w.v, n), n, m_v.as<float>(n * w.v.rows)}};
    m_compute.matmuls(jobs);
    const Matrix* const next[] = {&w.o};
    m_compute.warm(next);
    m_compute.forRows(n, [&](int64_t r) { finishRow(w, layer, rows[size_t(r)], r); });
}

void AttentionStage::normHeads(const float* weight, float* x, int64_t heads) const {
    const KernelSet& kernels = m_compute.kernels();
    const int64_t d = m_config.headDim;
    if (m_config.qkNorm == QkNorm::FullWidth) {
        kernels.rmsNorm(x, weight, heads * d, m_config.rmsEps, x);
        return;
    }
    for (int64_t h = 0; h < heads; ++h) {
        float* head = x + h * d;
        if (m_config.qkNorm == QkNorm::PerHead) {
            kernels.rmsNorm(head, weight, d, m_config.rmsEps, head);
        } else {  // L2
            const float mean = kernels.dot(head, head, d) / float(d);
            const float inverse = 1.0f / std::sqrt(mean + m_config.rmsEps);
            for (int64_t i = 0; i < d; ++i) head[i] *= inverse;
        }
    }
}

// Rotates the first values of `count` heads, `stride` apart, to the position of row r.
void AttentionStage::rotate(float* heads, int64_t count, int64_t stride, int64_t r) const {
    const int rotary = m_config.rope.rotaryDim;
    if (rotary == 0) return;
    const float* table = static_cast<const float*>(m_rope.data()) + r * rotary;
    for (int64_t h = 0; h < count; ++h) {
        m_compute.kernels().rope(heads + h * stride, rotary, table, m_config.rope.interleaved);
    }
}

// Bias, norm, clip and rotation of one row's q, k and v; k and v go into the cache.
void AttentionStage::finishRow(const LayerWeights& w, int64_t layer, const BatchRow& row,
                               int64_t r) {
    const ModelConfig& c = m_config;
    const KernelSet& kernels = m_compute.kernels();
    const int64_t qWidth = m_heads * c.headDim, kvWidth = c.numKvHeads * c.headDim;
    float* q = m_q.as<float>(0) + r * qWidth;
    float* k = m_k.as<float>(0) + r * kvWidth;
    float* v = m_v.as<float>(0) + r * kvWidth;
    if (w.qBias) {
        kernels.axpy(q, 1.0f, w.qBias, qWidth);
        kernels.axpy(k, 1.0f, w.kBias, kvWidth);
        kernels.axpy(v, 1.0f, w.vBias, kvWidth);
    }
    const bool rotated = c.hasRope(layer);
    // The norm without weights belongs to the rotation and is omitted together with it.
    const bool normed = c.qkNorm != QkNorm::None && (rotated || c.qkNorm != QkNorm::L2);
    const auto normBoth = [&] {
        normHeads(w.qNorm, q, m_heads);
        normHeads(w.kNorm, k, c.numKvHeads);
    };
    if (normed && !c.qkNormAfterRope) normBoth();
    if (c.clipQkv > 0) {
        const auto clip = [&](float* p, int64_t n) {
            for (int64_t i = 0; i < n; ++i) p[i] = std::clamp(p[i], -c.clipQkv, c.clipQkv);
        };
        clip(q, qWidth);
        clip(k, kvWidth);
        clip(v, kvWidth);
    }
    if (rotated) {
        rotate(q, m_heads, c.headDim, r);
        rotate(k, c.numKvHeads, c.headDim, r);
    } else if (c.queryScale > 0) {
        const double steps = std::floor(double(row.position + 1) / c.queryScalePositions);
        const auto factor = float(1 + c.queryScale * std::log1p(steps));
        for (int64_t i = 0; i < qWidth; ++i) q[i] *= factor;
    }
    if (normed && c.qkNormAfterRope) normBoth();
    append(layer, row, k, v);
}

// Into the rows of K or V of a page.
void AttentionStage::store(const float* from, int64_t slot, std::byte* rows) const {
    const int64_t dim = m_kv.headDim, at = slot * dim;
    switch (m_kv.type) {
        case KvType::F32:
            std::copy(from, from + dim, reinterpret_cast<float*>(rows) + at);
            break;
        case KvType::F16:
            m_compute.kernels().toF16(from, dim, reinterpret_cast<uint16_t*>(rows) + at);
            break;
        case KvType::Q8:
            quantiseKv(from, dim, reinterpret_cast<int8_t*>(rows) + at,
                       reinterpret_cast<float*>(rows + kPageTokens * dim) + slot * kvScales(dim));
            break;
    }
}

// v is nullptr if values are part of the keys.
void AttentionStage::append(int64_t layer, const BatchRow& row, const float* k,
                            const float* v) const {
    std::byte* block = row.sequence->blocks[size_t(row.position / kPageTokens)]->data;
    const int64_t slot = row.position % kPageTokens, d = m_kv.headDim;
    for (int64_t h = 0; h < m_kv.kvHeads; ++h) {
        std::byte* page = block + (layer * m_kv.kvHeads + h) * m_kv.pageBytes();
        store(k + h * d, slot, page);
        if (v) store(v + h * d, slot, page + m_kv.rowsBytes());
    }
}

void AttentionStage::attendAll(const LayerWeights& w, int64_t layer,
                               std::span<const BatchRow> rows) {
    const auto n = int64_t(rows.size());
    m_mixed.as<float>(n * m_heads * m_valueDim);
    m_threads.resize(size_t(m_compute.pool().threads()));
    for (ThreadScratch& s : m_threads) s.sequence = nullptr;
    // One item per (KV head, row); with too few of them, the heads of a group are split up.
    const int64_t group = m_heads / m_kv.kvHeads;
    const int64_t wanted = 4 * m_compute.pool().threads();
    const int64_t parts = n * m_kv.kvHeads >= wanted ? 1 : group;
    m_compute.pool().parallelForIndexed(
        m_kv.kvHeads * parts * n, 1, [&](int thread, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t r = i % n, part = i / n % parts, kvHead = i / n / parts;
                attend(w, layer, rows[size_t(r)], r, kvHead,
                       kvHead * group + part * (group / parts), group / parts,
                       m_threads[size_t(thread)]);
            }
        });
}

int64_t AttentionStage::firstVisible(int64_t layer, int64_t position) const {
    if (!m_config.hasWindow(layer)) return 0;
    const int64_t window = m_config.slidingWindow;
    if (m_config.chunkedWindow) return position / window * window;
    return std::max<int64_t>(0, position + 1 - window);
}

void AttentionStage::attend(const LayerWeights& w, int64_t layer, const BatchRow& row, int64_t r,
                            int64_t kvHead, int64_t firstHead, int64_t heads,
                            ThreadScratch& scratch) const {
    if (scratch.sequence != row.sequence || scratch.kvHead != kvHead) {
        scratch.pages.clear();
        for (const KvBlock* block : row.sequence->blocks) {
            scratch.pages.push_back(block->data +
                                    (layer * m_kv.kvHeads + kvHead) * m_kv.pageBytes());
        }
        scratch.sequence = row.sequence;
        scratch.kvHead = kvHead;
    }
    const int64_t first = r * m_heads + firstHead;
    AttentionArgs args{};
    args.q = static_cast<const float*>(m_q.data()) + first * m_queryDim;
    args.heads = int(heads);
    args.headDim = int(m_queryDim);
    args.latentDim = int(m_kv.latentDim);
    args.pages = scratch.pages.data();
    args.kvType = m_kv.type;
    args.begin = firstVisible(layer, row.position);
    args.end = row.position + 1;
    args.scale = m_scale;
    args.sinks = w.sinks ? w.sinks + firstHead : nullptr;
    args.scratch = scratch.scores.as<float>(heads * (args.end - args.begin));
    args.out = static_cast<float*>(m_mixed.data()) + first * m_valueDim;
    m_compute.kernels().attention(args);
}

int64_t AttentionStage::scratchBytes() const {
    int64_t n = 0;
    for (const ScratchBuffer* b : {&m_rope, &m_normed, &m_prepared, &m_quantised, &m_q, &m_k, &m_v,
                                   &m_latent, &m_mixed, &m_values, &m_out}) {
        n += b->bytes();
    }
    for (const ThreadScratch& s : m_threads) n += s.scores.bytes();
    return n;
}

}  // namespace colibri
