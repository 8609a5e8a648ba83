// SPDX-License-Identifier: Apache-2.0
// The state of every expert, and the slots of memory for the resident ones: which expert has which
// slot, and the number of slots.
//
// Not thread-safe: the store calls it under its lock. A slot's bytes belong to the reading thread
// while its expert is Reading, and to all readers once it is Resident.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/store/eviction_order.h"
#include "engine/store/expert_entry.h"
#include "engine/store/layer_steps.h"
#include "engine/store/prefetch_judge.h"
#include "engine/store/prepared_slots.h"
#include "engine/store/slot_mover.h"
#include "engine/store/store_parts.h"
#include "engine/store/store_stats.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

// The state of every expert as the experts map shows it. Any thread; for display, unordered.
class ResidencyMap {
public:
    explicit ResidencyMap(size_t experts) : m_states(experts) {}
    void set(uint32_t key, Residency state) {
        m_states[key].store(state, std::memory_order_relaxed);
    }
    bool empty() const { return m_states.empty(); }
    void copyTo(std::vector<Residency>& out) const {
        out.resize(m_states.size());
        for (size_t i = 0; i < out.size(); ++i)
            out[i] = m_states[i].load(std::memory_order_relaxed);
    }

private:
    std::vector<std::atomic<Residency>> m_states;
};

// Memory for one expert.
struct Slot {
    std::byte* memory = nullptr;  // nullptr: none available
    bool fresh = false;  // never touched: the system allocates its pages while they are filled
    explicit operator bool() const { return memory != nullptr; }
};

class SlotTable {
public:
    // All must outlive the table.
    struct Parts {
        const StoreShape& shape;
        ResidencyMap& residency;
        SlotMemory& memory;
        ReadQueue& queue;
        StoreClock& clock;
        PrefetchJudge& judge;
        StoreCounters& counters;
    };
    SlotTable(const Parts& parts, Numa& numa, const StoreOptions& options);
    ~SlotTable();  // returns all memory
    SlotTable(const SlotTable&) = delete;
    SlotTable& operator=(const SlotTable&) = delete;

    // ---- experts, by key (StoreShape::keyOf) ----
    ExpertEntry& operator[](uint32_t key) { return m_entries[key]; }
    void setState(uint32_t key, ExpertState state);
    LayerSteps& steps() { return m_steps; }
    EvictionOrder& order() { return m_order; }

    // ---- slots: taken here, assigned to an entry with fill() ----
    Slot newSlot();        // none: at capacity, or out of memory
    Slot slotForDemand();  // new or evicted; none: all are held
    Slot slotForPrefetch(int64_t moeLayer);
    void fill(uint32_t key, const Slot& slot);
    // Takes the slot of a resident expert, which goes to state `next`.
    std::byte* evict(uint32_t key, ExpertState next);
    // A resident and requested expert without pins, whose slot a thread waiting for `key` may take.
    // Never that of an older ticket, so the oldest always makes progress. -1: none.
    int64_t stealable(uint32_t key) const;
    void dropSlot(uint32_t key);  // after a failed read
    int64_t used() const { return m_used; }

    // ---- size ----
    int64_t capacity() const { return m_capacity; }  // slots
    // `freeBytes`: memory that may still be allocated; 0: unknown. Does not evict the slots above
    // the new size: trim() does that.
    void setSize(int64_t expertsPerLayer, int64_t freeBytes);
    KnobState sizeState() const;
    void trim(int64_t most = INT64_MAX);  // evicts down to the capacity, as far as possible
    int64_t slotBytes() const { return m_slotBytes; }
    int64_t bytes() const { return (m_used + m_prepared.held()) * m_slotBytes; }

    // ---- prepared memory and NUMA nodes ----
    PreparedSlots& prepared() { return m_prepared; }
    int64_t slotsToPrepare() const;  // 0 while there is no memory for more
    void addPrepared(std::byte* memory, uint64_t tookNs);
    void dropPrepared(int64_t keep);
    SlotMover& mover() { return m_mover; }
    // A resident expert whose slot has to move, searching from `from`; -1: none now.
    int64_t nextMisplaced(size_t& from) const;

    // Released memory, which the caller unmaps without the lock; often none.
    std::vector<std::byte*> takeFreed();

    void setEvents(EventRing* ring) { m_ring = ring; }  // for evictions

private:
    std::byte* takeSlot(uint32_t key);  // removes it from the order and its entry
    void giveBack(std::byte* memory);
    void freeLater(std::byte* memory);
    int64_t slotsNotPrepared() const;
    void reportEviction(uint32_t key);

    const Parts m_parts;
    const int64_t m_layers;              // MoE layers
    int64_t m_slotBytes = 0;             // the largest record
    std::vector<ExpertEntry> m_entries;  // (MoE layers * E)
    EvictionOrder m_order;
    LayerSteps m_steps;
    std::vector<std::byte*> m_freed;

    int64_t m_capacity = 0;       // slots allowed
    int64_t m_used = 0;           // slots in use; prepared ones not included
    int64_t m_requestedSize = 0;  // experts per layer
    std::string m_sizeReason;     // why the capacity is less than requested
    PreparedSlots m_prepared;
    SlotMover m_mover;
    EventRing* m_ring = nullptr;
};

}  // namespace colibri
