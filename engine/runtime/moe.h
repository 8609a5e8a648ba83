// SPDX-License-Identifier: Apache-2.0
// The expert part of a layer: route the rows, request the distinct experts from the store, compute
// the shared expert and the resident ones while the others are read, and sum the outputs.
//
// Experts are computed in the order in which they arrive, but every (row, rank) has its own output,
// and the outputs are summed in rank order: the result does not depend on the cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/router.h"
#include "engine/model/router_table.h"
#include "engine/runtime/batch.h"
#include "engine/runtime/compute.h"
#include "engine/store/expert_store.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

struct PrefetchPlan {
    PrefetchSource source = PrefetchSource::NextRouter;
    int64_t depth = 1;  // 0: off
};

// How experts are chosen. With a table its choice is compared with the gate's in every row.
struct RouterPlan {
    std::shared_ptr<const RouterTable> table;  // nullptr: none
    bool useTable = false;                     // the table chooses; the gate gives the weights
};

class MoeStage {
public:
    MoeStage(const ContainerInfo& info, const ModelWeights& weights, ExpertStore& store,
             const Compute& compute, EventRing* ring);

    void setPrefetch(const PrefetchPlan& plan) { m_plan = plan; }
    void setRouter(RouterPlan plan) { m_routerPlan = std::move(plan); }
    // Called once per forward pass, before its first layer. `abort`, if not nullptr, ends the pass
    // early; the thread that sets it then calls ExpertStore::wakeWaiters().
    void beginStep(std::span<const BatchRow> rows, const std::atomic<bool>* abort, uint32_t step);
    // residual (rows, H) += experts(norm(residual)). False: the pass was aborted.
    bool run(int64_t layer, std::span<BatchRow> rows, float* residual, RoutingCapture* capture);

    // Releases every expert of the current layer, after a step that ended early.
    void giveUp();

    // ---- of the current step ----
    uint64_t stallNs() const { return m_stallNs; }
    uint64_t routerNs() const { return m_stepRouterNs; }  // routing, planning, requests, hints
    uint64_t expertsNs() const { return m_expertsNs; }    // computing them
    // What the store has counted since the step began: the causes of the stall.
    StoreStats storeStats() const { return difference(m_store.stats(), m_storeBefore); }

    int64_t scratchBytes() const;
    // Choices of the gate that were compared with the table, and those on which the table agreed.
    uint64_t compared() const { return m_compared.load(std::memory_order_relaxed); }
    uint64_t agreed() const { return m_agreed.load(std::memory_order_relaxed); }

private:
    struct Work {  // one distinct expert and its entries
        uint16_t expert = 0;
        int64_t first = 0, count = 0;  // entries [first, first + count)
        Ticket ticket;
        Pin pin;
        bool failed = false;
    };

    void route(const LayerWeights& w, int64_t rows, const float* residual);
    void gateLogits(const LayerWeights& w, const float* residual, int64_t rows, float* normed,
                    ScratchBuffer& input, float* logits) const;
    void shared(const LayerWeights& w, int64_t rows);
    void compareWithTable(int64_t rows);
    void plan(std::span<BatchRow> rows);
    void residentFirst(int64_t moeLayer);
    void gather(const LayerWeights& w, int64_t rows);
    bool computeAll(const LayerWeights& w, int64_t layer, std::span<BatchRow> rows);
    bool aborted() const { return m_abort && m_abort->load(std::memory_order_relaxed); }
    void refill(int64_t moeLayer, size_t window);
    void take(Work& work, int64_t layer, std::span<BatchRow> rows);
    void collect(int64_t layer, std::span<BatchRow> rows);
    void computeGroup(const LayerWeights& w);
    void warmDown(const ExpertLayer& x) const;
    void warmNextLayer(int64_t layer) const;
    void combine(const LayerWeights& w, std::span<BatchRow> rows, float* residual);
    void hintNextRouter(int64_t moeLayer, std::span<BatchRow> rows, const float* residual);
    void hintPreviousToken(int64_t moeLayer, std::span<BatchRow> rows);
    void hintRouterTable(int64_t first, int64_t last);
    void hintCounted(int64_t moeLayer);
    void remember(int64_t moeLayer, std::span<BatchRow> rows);
    void report(int64_t layer, std::span<BatchRow> rows);
    void capture(int64_t moeLayer, int64_t rows, RoutingCapture& out) const;

    const ContainerInfo& m_info;
    const ModelWeights& m_weights;
    ExpertStore& m_store;
    const Compute& m_compute;
    EventRing* m_ring;
    Router m_router;
    PrefetchPlan m_plan;
    RouterPlan m_routerPlan;
    const GluSpec m_glu;
    const int64_t m_hidden, m_expertSize, m_experts, m_topK, m_moeLayers;

    // The current layer. An entry is one (row, rank) pair; entries are grouped by expert.
    std::vector<int> m_chosen;           // (rows, k)
    std::vector<float> m_chosenWeights;  // (rows, k)
    std::vector<int32_t> m_tokens;       // (rows) of the step, with a table
    std::vector<int> m_tabled;           // (rows, k) the choice of the table
    std::vector<int> m_gates;            // (rows, k) the gate's choice if the table's is used
    std::vector<int64_t> m_entryOf;      // (rows, k) entry; -1: the row has failed
    std::vector<int64_t> m_rowOf;        // (entries)
    std::vector<Work> m_work;            // distinct experts
    std::vector<int> m_workOf;           // (E) index in m_work, -1
    std::vector<int64_t> m_counts;       // (E)
    std::vector<uint8_t> m_seen;         // (E) an earlier row has counted the lookup
    size_t m_nextRequest = 0;            // first of m_work that is not requested yet
    std::vector<Work*> m_waiting, m_group;
    std::vector<Ticket> m_tickets;
    std::vector<uint16_t> m_ids;
    std::vector<Residency> m_residency;
    const std::byte* m_input = nullptr;       // normed rows, prepared for the experts' type
    const std::byte* m_entryInput = nullptr;  // (entries) prepared rows, or nullptr: one row only

    ScratchBuffer m_normed, m_routerIn, m_logits, m_scratch, m_prepared, m_gathered;
    ScratchBuffer m_h, m_up, m_hPrepared, m_y;
    ScratchBuffer m_sharedOut, m_scaled;  // (rows, H), (entries, H)
    FfnScratch m_sharedScratch;
    ScratchBuffer m_hintNormed, m_hintIn, m_hintLogits;
    const std::atomic<bool>* m_abort = nullptr;  // of the step
    bool m_hintsUseful = true;
    uint64_t m_reads = 0;      // of the store so far
    int64_t m_quietSteps = 0;  // consecutive steps without a read
    int64_t m_window = 1;
    std::atomic<uint64_t> m_compared{0}, m_agreed{0};
    uint32_t m_step = 0;
    StoreStats m_storeBefore;                                     // this step
    uint64_t m_stallNs = 0, m_stepRouterNs = 0, m_expertsNs = 0;  // this step
    uint64_t m_routerNs = 0, m_waitNs = 0, m_computeNs = 0;       // this layer
};

}  // namespace colibri
