// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/moe.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace colibri {

namespace {

// Fewer entries than this are prepared faster by one thread than by a parallel region.
constexpr int64_t kSerialEntries = 32;
// Steps without a read after which prefetch hints pause.
constexpr int64_t kQuietSteps = 64;

}  // namespace

MoeStage::MoeStage(const ContainerInfo& info, const ModelWeights& weights, ExpertStore& store,
                   const Compute& compute, EventRing* ring)
    : m_info(info),
      m_weights(weights),
      m_store(store),
      m_compute(compute),
      m_ring(ring),
      m_router(info.config.routing, int(info.config.numExperts), int(info.config.topK),
               compute.kernels()),
      m_glu{info.config.activation, float(info.config.activationLimit),
            float(info.config.activationAlpha)},
      m_hidden(info.config.hiddenSize),
      m_expertSize(info.config.expertSize),
      m_experts(info.config.numExperts),
      m_topK(info.config.topK),
      m_moeLayers(weights.moeLayers()) {}

void MoeStage::beginStep(std::span<const BatchRow> rows, const std::atomic<bool>* abort,
                         uint32_t step) {
    m_stallNs = m_stepRouterNs = m_expertsNs = 0;
    m_abort = abort;
    m_step = step;
    m_storeBefore = m_store.stats();
    const StoreStats& s = m_storeBefore;
    // If all experts in use are in memory, hints only cost time. The first read that happens anyway
    // turns them on again.
    const uint64_t reads = s.demandReads + s.prefetchReads;
    m_quietSteps = reads == m_reads ? m_quietSteps + 1 : 0;
    m_reads = reads;
    m_hintsUseful = s.slotsUsed < m_experts * m_moeLayers && m_quietSteps < kQuietSteps;
    m_window = std::max<int64_t>(1, s.slotCount);
    if (!m_routerPlan.table) return;
    m_tokens.clear();
    for (const BatchRow& row : rows) m_tokens.push_back(row.token);
    if (m_plan.source == PrefetchSource::RouterTable && m_hintsUseful) {
        hintRouterTable(0, m_plan.depth - 1);
    }
}

bool MoeStage::run(int64_t layer, std::span<BatchRow> rows, float* residual, RoutingCapture* sink) {
    const LayerWeights& w = m_weights.layer(layer);
    const auto n = int64_t(rows.size());
    const uint64_t start = monotonicNs();
    route(w, n, residual);
    m_routerNs = monotonicNs() - start;
    m_waitNs = 0;
    plan(rows);
    residentFirst(w.moeIndex);
    if (sink) capture(w.moeIndex, n, *sink);

    m_nextRequest = 0;
    m_waiting.clear();
    refill(w.moeIndex, size_t(m_window));
    const uint64_t hintStart = monotonicNs();
    if (m_plan.depth > 0 && m_hintsUseful) {
        if (m_plan.source == PrefetchSource::NextRouter) hintNextRouter(w.moeIndex, rows, residual);
        if (m_plan.source == PrefetchSource::PreviousToken) hintPreviousToken(w.moeIndex, rows);
        if (m_plan.source == PrefetchSource::RouterTable) {
            hintRouterTable(w.moeIndex + 1, w.moeIndex + m_plan.depth);
        }
    }
    m_routerNs += monotonicNs() - hintStart;

    const uint64_t computeStart = monotonicNs();
    m_stepRouterNs += computeStart - start;
    if (w.shared) shared(w, n);
    if (!computeAll(w, layer, rows)) return false;
    warmNextLayer(layer);
    combine(w, rows, residual);
    m_computeNs = monotonicNs() - computeStart - m_waitNs;
    m_stallNs += m_waitNs;
    m_expertsNs += m_computeNs;
    remember(w.moeIndex, rows);
    if (!sink) report(layer, rows);
    return true;
}

// The layer's router applied to a residual stream: normed (rows, H) and logits (rows, E).
void MoeStage::gateLogits(const LayerWeights& w, const float* residual, int64_t rows, float* normed,
                          ScratchBuffer& input, float* logits) const {
    m_compute.forRows(rows, [&](int64_t r) {
        m_compute.norm(w.ffnNorm, m_info.config.rmsEps, residual + r * m_hidden, m_hidden,
                       normed + r * m_hidden);
    });
    const MatmulJob job{&w.router, m_compute.prepare(DType::F32, normed, rows, m_hidden, input),
                        rows, logits};
    m_compute.matmuls({&job, 1});
    if (!w.logitBias) return;
    for (int64_t r = 0; r < rows; ++r) {
        m_compute.kernels().axpy(logits + r * m_experts, 1.0f, w.logitBias, m_experts);
    }
}

// Router logits and choice of every row.
void MoeStage::route(const LayerWeights& w, int64_t rows, const float* residual) {
    const KernelSet& k = m_compute.kernels();
    auto* normed = m_normed.as<float>(rows * m_hidden);
    auto* logits = m_logits.as<float>(rows * m_experts);
    gateLogits(w, residual, rows, normed, m_routerIn, logits);
    m_chosen.resize(size_t(rows * m_topK));
    m_chosenWeights.resize(size_t(rows * m_topK));
    auto* scratch = m_scratch.as<float>(rows * m_experts);
    if (m_routerPlan.table) {
        m_tabled.resize(size_t(rows * m_topK));
        m_routerPlan.table->lookup(k, w.moeIndex, m_tokens, m_tabled.data());
    }
    const bool byTable = m_routerPlan.useTable;
    if (byTable) {
        m_chosen = m_tabled;
        m_gates.resize(size_t(rows * m_topK));
    }
    m_compute.forRows(rows, [&](int64_t r) {
        float* x = logits + r * m_experts;
        float* space = scratch + r * m_experts;
        const auto at = size_t(r * m_topK);
        if (byTable) {
            m_router.weigh(x, w.selectBias, space, &m_chosen[at], &m_gates[at],
                           &m_chosenWeights[at]);
        } else {
            m_router.select(x, w.selectBias, space, &m_chosen[at], &m_chosenWeights[at]);
        }
    });
    if (m_routerPlan.table) compareWithTable(rows);
}

// The expert that every token uses, while others are read.
void MoeStage::shared(const LayerWeights& w, int64_t rows) {
    const float* normed = m_normed.as<float>(0);
    auto* out = m_sharedOut.as<float>(rows * m_hidden);
    m_compute.ffn(w.shared, normed, rows, m_sharedScratch, out);
    if (!w.sharedGate) return;
    m_compute.forRows(rows, [&](int64_t r) {
        const float x = m_compute.kernels().dot(normed + r * m_hidden, w.sharedGate, m_hidden);
        const float gate = 1.0f / (1.0f + std::exp(-x));
        for (int64_t i = 0; i < m_hidden; ++i) out[r * m_hidden + i] *= gate;
    });
}

void MoeStage::compareWithTable(int64_t rows) {
    const std::vector<int>& gates = m_routerPlan.useTable ? m_gates : m_chosen;
    uint64_t agreed = 0;
    for (int64_t r = 0; r < rows; ++r) {
        const int* named = &m_tabled[size_t(r * m_topK)];
        for (int64_t i = 0; i < m_topK; ++i) {
            agreed +=
                std::find(named, named + m_topK, gates[size_t(r * m_topK + i)]) != named + m_topK;
        }
    }
    m_compared.fetch_add(uint64_t(rows * m_topK), std::memory_order_relaxed);
    m_agreed.fetch_add(agreed, std::memory_order_relaxed);
}

// Groups the (row, rank) pairs by expert, in order of first use.
void MoeStage::plan(std::span<BatchRow> rows) {
    m_workOf.assign(size_t(m_experts), -1);
    m_work.clear();
    m_nextRequest = 0;
    m_entryOf.assign(rows.size() * size_t(m_topK), -1);
    for (size_t r = 0; r < rows.size(); ++r) {
        if (!rows[r].status.ok()) continue;
        for (int64_t i = 0; i < m_topK; ++i) {
            const int e = m_chosen[r * size_t(m_topK) + size_t(i)];
            if (m_workOf[size_t(e)] < 0) {
                m_workOf[size_t(e)] = int(m_work.size());
                m_work.emplace_back();
                m_work.back().expert = uint16_t(e);
            }
            ++m_work[size_t(m_workOf[size_t(e)])].count;
        }
    }
    int64_t next = 0;
    for (Work& w : m_work) {
        w.first = next;
        next += w.count;
        w.count = 0;
    }
    m_rowOf.resize(size_t(next));
    for (size_t r = 0; r < rows.size(); ++r) {
        if (!rows[r].status.ok()) continue;
        for (int64_t i = 0; i < m_topK; ++i) {
            const size_t at = r * size_t(m_topK) + size_t(i);
            Work& w = m_work[size_t(m_workOf[size_t(m_chosen[at])])];
            m_entryOf[at] = w.first + w.count++;
            m_rowOf[size_t(m_entryOf[at])] = int64_t(r);
        }
    }
}

// More experts than slots: those in memory come first, before this layer's reads evict them.
void MoeStage::residentFirst(int64_t moeLayer) {
    if (int64_t(m_work.size()) <= m_window) return;
    m_store.residency(m_residency);
    const size_t base = size_t(moeLayer * m_experts);
    std::stable_partition(m_work.begin(), m_work.end(), [&](const Work& w) {
        return m_residency[base + w.expert] != Residency::OnDisk;
    });
    for (size_t i = 0; i < m_work.size(); ++i) m_workOf[m_work[i].expert] = int(i);
}

// Each entry's prepared input row, contiguous per expert.
void MoeStage::gather(const LayerWeights& w, int64_t rows) {
    const DType type = w.experts->types.w1;
    const auto entries = int64_t(m_rowOf.size());
    const float* normed = m_normed.as<float>(0);
    if (m_info.config.routing.scaleInput) {
        auto* scaled = m_scaled.as<float>(entries * m_hidden);
        m_compute.forRows(rows * m_topK, [&](int64_t at) {
            const int64_t entry = m_entryOf[size_t(at)];
            if (entry < 0) return;
            const float* from = normed + at / m_topK * m_hidden;
            for (int64_t i = 0; i < m_hidden; ++i) {
                scaled[entry * m_hidden + i] = from[i] * m_chosenWeights[size_t(at)];
            }
        });
        m_entryInput = m_compute.prepare(type, scaled, entries, m_hidden, m_gathered);
        return;
    }
    m_input = m_compute.prepare(type, normed, rows, m_hidden, m_prepared);
    if (rows == 1) {
        m_entryInput = nullptr;
        return;
    }
    const int64_t bytes = inputRowBytes(type, m_hidden);
    auto* out = m_gathered.as<std::byte>(entries * bytes);
    m_compute.pool().parallelFor(entries, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(out + i * bytes, m_input + m_rowOf[size_t(i)] * bytes, size_t(bytes));
        }
    });
    m_entryInput = out;
}

// Requests more experts from the store, so that at most `window` are pinned or in flight.
void MoeStage::refill(int64_t moeLayer, size_t window) {
    if (m_nextRequest == m_work.size() || m_waiting.size() >= window) return;
    const size_t n = std::min(m_work.size() - m_nextRequest, window - m_waiting.size());
    // If memory runs out anywhere: giveUp() releases every ticket.
    m_waiting.reserve(m_work.size());
    m_group.reserve(m_work.size());
    m_tickets.reserve(n);
    m_ids.clear();
    for (size_t i = 0; i < n; ++i) m_ids.push_back(m_work[m_nextRequest + i].expert);
    m_tickets.clear();
    m_store.request(moeLayer, m_ids, m_tickets, m_step);
    for (size_t i = 0; i < n; ++i) {
        Work& w = m_work[m_nextRequest + i];
        w.ticket = m_tickets[i];
        m_waiting.push_back(&w);
    }
    m_tickets.clear();
    m_nextRequest += n;
}

// False: the step was aborted.
bool MoeStage::computeAll(const LayerWeights& w, int64_t layer, std::span<BatchRow> rows) {
    m_h.as<float>(int64_t(m_rowOf.size()) * m_expertSize);
    m_y.as<float>(int64_t(m_rowOf.size()) * m_hidden);
    bool gathered = false;
    while (!m_waiting.empty() || m_nextRequest < m_work.size()) {
        collect(layer, rows);
        if (aborted()) {
            giveUp();
            return false;
        }
        if (!m_group.empty()) {
            if (!gathered) gather(w, int64_t(rows.size()));
            gathered = true;
            computeGroup(w);
            for (Work* work : m_group) work->pin.release();
        }
        // Also when every read of the group has failed: the other experts are not requested yet.
        refill(w.moeIndex, size_t(m_window));
    }
    return true;
}

void MoeStage::giveUp() {
    // A ticket that was waited for is dropped in vain.
    for (size_t i = 0; i < m_nextRequest; ++i) m_store.drop(m_work[i].ticket);
    for (const Ticket& ticket : m_tickets) m_store.drop(ticket);
    m_tickets.clear();
    m_nextRequest = 0;
    m_waiting.clear();
    m_group.clear();
    m_work.clear();
}

// Waits for one expert and puts it into the group; a failed read fails the rows that need it.
void MoeStage::take(Work& work, int64_t layer, std::span<BatchRow> rows) {
    Result<Pin> pin = m_store.wait(work.ticket, m_abort);
    if (pin.ok()) {
        work.pin = std::move(*pin);
        m_group.push_back(&work);
        return;
    }
    if (aborted()) return;
    work.failed = true;
    const Status status = pin.status().in("layer " + std::to_string(layer) + ", expert " +
                                          std::to_string(work.expert));
    for (int64_t i = work.first; i < work.first + work.count; ++i) {
        const BatchRow& failed = rows[size_t(m_rowOf[size_t(i)])];
        // A sequence with one failed row fails in all following rows.
        for (BatchRow& row : rows) {
            if (row.sequence == failed.sequence && row.status.ok()) row.status = status;
        }
    }
}

// Fills m_group with the resident experts; if there are none, waits for the oldest read.
void MoeStage::collect(int64_t layer, std::span<BatchRow> rows) {
    m_group.clear();
    const auto takeReady = [&] {
        size_t kept = 0;
        for (Work* work : m_waiting) {
            if (m_store.ready(work->ticket)) {
                take(*work, layer, rows);
            } else {
                m_waiting[kept++] = work;
            }
        }
        m_waiting.resize(kept);
    };
    takeReady();
    if (!m_group.empty() || m_waiting.empty()) return;
    Work* oldest = m_waiting.front();
    m_waiting.erase(m_waiting.begin());
    const uint64_t start = monotonicNs();
    take(*oldest, layer, rows);
    const uint64_t ns = monotonicNs() - start;
    m_waitNs += ns;
    for (int64_t i = oldest->first; i < oldest->first + oldest->count; ++i) {
        BatchRow& row = rows[size_t(m_rowOf[size_t(i)])];
        if (ns <= row.worstWaitNs) continue;
        row.worstWaitNs = ns;
        row.worstLayer = uint16_t(layer);
        row.worstExpert = oldest->expert;
    }
    takeReady();
}

// Idle workers fetch the w2 that they will read first while the caller prepares its input.
void MoeStage::warmDown(const ExpertLayer& x) const {
    ThreadPool& pool = m_compute.pool();
    const int64_t panels = panelCount(m_hidden);
    const int64_t items = int64_t(m_group.size()) * panels;
    for (int thread = 1; thread < pool.threads(); ++thread) {
        const int64_t at = pool.chunkBegin(items, 1, thread);
        if (at >= items) continue;
        pool.warm(thread, m_group[size_t(at / panels)]->pin.record() + x.w2Offset +
                              at % panels * panelBytes(x.types.w2, m_expertSize));
    }
    pool.warmed();
}

void MoeStage::warmNextLayer(int64_t layer) const {
    if (layer + 1 < int64_t(m_weights.layers().size())) {
        const LayerWeights& next = m_weights.layer(layer + 1);
        if (next.kvA) {
            const Matrix* const latent[] = {next.qA ? &next.qA : &next.q, &next.kvA};
            m_compute.warm(latent);
            return;
        }
        const Matrix* const matrices[] = {&next.q, &next.k, &next.v};
        m_compute.warm(matrices);
    } else {
        const Matrix* const matrices[] = {&m_weights.head()};
        m_compute.warm(matrices);
    }
}

// Gate, up and activation of all experts of the group in one region, then down in another.
void MoeStage::computeGroup(const LayerWeights& w) {
    const ExpertLayer& x = *w.experts;
    const KernelSet& k = m_compute.kernels();
    const int64_t inBytes = inputRowBytes(x.types.w1, m_hidden);
    auto* h = m_h.as<float>(0);
    auto* y = m_y.as<float>(0);
    // body(work, first panel, last panel) over the panels of all experts of the group
    const auto overPanels = [&](int64_t panels, const auto& body) {
        m_compute.pool().parallelFor(
            int64_t(m_group.size()) * panels, 1, [&](int64_t begin, int64_t end) {
                while (begin < end) {
                    const int64_t at = begin / panels, first = begin % panels;
                    const int64_t last = std::min(panels, first + end - begin);
                    body(*m_group[size_t(at)], first, last);
                    begin += last - first;
                }
            });
    };
    const bool fused = m_glu.activation == Activation::Silu && !w.expertGateBias;
    auto* up = fused ? nullptr : m_up.as<float>(int64_t(m_rowOf.size()) * m_expertSize);
    overPanels(panelCount(m_expertSize), [&](const Work& work, int64_t first, int64_t last) {
        const std::byte* in = m_entryInput ? m_entryInput + work.first * inBytes : m_input;
        const std::byte* record = work.pin.record();
        const int64_t at = work.first * m_expertSize;
        if (fused) {
            k.gateUp(x.types.w1, record + x.w1Offset, x.types.w3, record + x.w3Offset, m_expertSize,
                     m_hidden, first, last, in, work.count, h + at, m_expertSize);
            return;
        }
        k.matmul(x.types.w1, record + x.w1Offset, m_expertSize, m_hidden, first, last, in,
                 work.count, h + at, m_expertSize);
        k.matmul(x.types.w3, record + x.w3Offset, m_expertSize, m_hidden, first, last, in,
                 work.count, up + at, m_expertSize);
    });
    warmDown(x);
    const int64_t hBytes = inputRowBytes(x.types.w2, m_expertSize);
    auto* prepared = m_hPrepared.as<std::byte>(int64_t(m_rowOf.size()) * hBytes);
    const auto prepare = [&](int64_t i) {
        const Work& work = *m_group[size_t(i)];
        const int64_t at = work.first * m_expertSize;
        for (int64_t i = 0; !fused && i < work.count; ++i) {
            const int64_t row = at + i * m_expertSize, bias = work.expert * m_expertSize;
            applyGlu(m_glu, w.expertGateBias ? w.expertGateBias + bias : nullptr,
                     w.expertUpBias ? w.expertUpBias + bias : nullptr, m_expertSize, h + row,
                     up + row);
        }
        k.prepareInput(x.types.w2, h + at, m_expertSize, work.count, m_expertSize,
                       prepared + work.first * hBytes);
    };
    if (fused && int64_t(m_rowOf.size()) < kSerialEntries) {
        for (size_t i = 0; i < m_group.size(); ++i) prepare(int64_t(i));
    } else {
        m_compute.forRows(int64_t(m_group.size()), prepare);
    }
    overPanels(panelCount(m_hidden), [&](const Work& work, int64_t first, int64_t last) {
        k.matmul(x.types.w2, work.pin.record() + x.w2Offset, m_hidden, m_expertSize, first, last,
                 prepared + work.first * hBytes, work.count, y + work.first * m_hidden, m_hidden);
    });
}

// residual += scale * (shared expert + sum over ranks of weight * output), always in rank order.
void MoeStage::combine(const LayerWeights& w, std::span<BatchRow> rows, float* residual) {
    const KernelSet& k = m_compute.kernels();
    const auto n = int64_t(rows.size());
    const auto scale = float(m_info.config.residualScale);
    const bool weighed = !m_info.config.routing.scaleInput;
    auto* sums = m_normed.as<float>(n * m_hidden);  // the normed rows are no longer needed
    const auto* y = m_y.as<float>(0);
    m_compute.forRows(n, [&](int64_t r) {
        if (!rows[size_t(r)].status.ok()) return;
        float* sum = sums + r * m_hidden;
        std::fill(sum, sum + m_hidden, 0.0f);
        for (int64_t i = 0; i < m_topK; ++i) {
            const auto at = size_t(r * m_topK + i);
            const float weight = weighed ? m_chosenWeights[at] : 1.0f;
            k.axpy(sum, weight, y + m_entryOf[at] * m_hidden, m_hidden);
            if (w.expertDownBias) {
                k.axpy(sum, weight, w.expertDownBias + m_chosen[at] * m_hidden, m_hidden);
            }
        }
        if (w.shared) {
            k.axpy(sum, 1.0f, static_cast<float*>(m_sharedOut.data()) + r * m_hidden, m_hidden);
        }
        k.axpy(residual + r * m_hidden, scale, sum, m_hidden);
    });
}

int64_t MoeStage::scratchBytes() const {
    int64_t n = 0;
    for (const ScratchBuffer* b :
         {&m_normed, &m_routerIn, &m_logits, &m_scratch, &m_prepared, &m_gathered, &m_h, &m_up,
          &m_hPrepared, &m_y, &m_sharedOut, &m_scaled, &m_hintNormed, &m_hintIn, &m_hintLogits}) {
        n += b->bytes();
    }
    return n + m_sharedScratch.bytes();
}

}  // namespace colibri
