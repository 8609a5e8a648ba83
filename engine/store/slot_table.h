// SPDX-License-Identifier: Apache-2.0
// The state of every expert, and the slots of memory for the resident ones: which expert has which
// slot, the order of eviction, and the number of slots.
//
// An expert goes OnDisk -> [NeedsSlot ->] Queued -> Reading -> Resident -> OnDisk. A
// requested expert enters the eviction order when it gets its slot, in request order, so that
// evictions do not depend on the duration of reads. A prefetched expert keeps its slot outside that
// order until its layer is requested.
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

#include "engine/store/link.h"
#include "engine/store/policy.h"
#include "engine/store/prefetch_judge.h"
#include "engine/store/prepared_slots.h"
#include "engine/store/slot_mover.h"
#include "engine/store/store_parts.h"
#include "engine/store/store_stats.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

enum class ExpertState : uint8_t { OnDisk, NeedsSlot, Queued, Reading, Resident, Failed };

// One expert of one MoE layer. `key` below is moeLayer * experts + expert.
struct ExpertEntry {
    enum class Order : uint8_t { None, Policy, UntilLayer };  // UntilLayer: a prefetch, see above

    ExpertState state = ExpertState::OnDisk;
    Order order = Order::None;
    ReadReason reason = ReadReason::Demand;       // what started the read
    PrefetchSource source = PrefetchSource::Off;  // the source of a prefetch
    bool unused = false;                          // a prefetch that was not requested yet
    bool askedLate = false;                       // a prefetch that was requested while being read
    bool demanded = false;                        // being read, and requested
    bool retried = false;
    bool fresh = false;              // last read into memory that had not been touched before
    bool waitsForSlot = false;       // in the list of experts that need a slot
    bool prefetchOnDisk = false;     // a prefetch, not requested, is being read from the disk
    bool ledReads = false;           // a demand read that began while no other was in flight
    uint32_t tickets = 0, pins = 0;  // evictable only if both are 0
    uint32_t waiting = 0;            // threads in wait()
    uint32_t uses = 0;               // lookups since it became resident
    uint32_t prefetchStep = 0;       // requests of its layer when the prefetch began
    uint32_t usedStep = 0;           // requests of its layer at its last use
    uint8_t lane = 0;                // of a demand read in flight
    LinkLimiter::Transfer transfer = 0;
    std::byte* memory = nullptr;  // its slot
    uint64_t ticketNumber = 0;    // of its oldest ticket
    uint64_t askedNs = 0;         // first requested, or prefetch hinted
    uint64_t submittedNs = 0;     // start of the current read
    uint64_t diskTimeNs = 0;      // PrefetchJudge::diskTime() when a demand read began
    uint64_t residentNs = 0;

    bool held() const { return tickets + pins > 0; }
    bool evictable() const { return state == ExpertState::Resident && !held(); }
    bool usable() const { return state == ExpertState::Resident || state == ExpertState::Failed; }
};

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

    // ---- experts ----
    int64_t layers() const { return int64_t(m_parts.shape.layers.size()); }
    int64_t size() const { return int64_t(m_entries.size()); }  // MoE layers * experts
    uint32_t keyOf(int64_t moeLayer, int64_t expert) const {
        return uint32_t(moeLayer * m_parts.shape.experts + expert);
    }
    int64_t layerOf(uint32_t key) const { return int64_t(key) / m_parts.shape.experts; }
    ExpertEntry& operator[](uint32_t key) { return m_entries[key]; }
    void setState(uint32_t key, ExpertState state);

    // ---- layers ----
    void requestLayer(int64_t moeLayer);  // it becomes the current layer, one step further
    int64_t currentLayer() const { return m_layer; }
    uint32_t stepOf(int64_t moeLayer) const { return m_steps[size_t(moeLayer)]; }
    int64_t distance(int64_t moeLayer) const;  // layers after the current one, 1..M

    // ---- order of eviction ----
    void setPolicy(CachePolicyKind policy);
    CachePolicyKind policy() const { return m_policyKind; }
    std::vector<uint32_t> order() const { return m_policy->order(); }  // coldest first
    void use(uint32_t key);               // it has a slot and was requested
    void keepUntilLayer(uint32_t key);    // a prefetch has been read
    void endKeep(uint32_t key);           // it is requested
    void releaseLayer(int64_t moeLayer);  // its unused prefetches: evicted first
    void addColdest(uint32_t key);

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

    // Released memory, which the caller unmaps without the lock.
    bool hasFreed() const { return !m_freed.empty(); }
    std::vector<std::byte*> takeFreed();

    void setEvents(EventRing* ring) { m_ring = ring; }  // for evictions

private:
    std::byte* takeSlot(uint32_t key);  // removes it from the order and its entry
    void giveBack(std::byte* memory);
    void freeLater(std::byte* memory);
    int64_t coldest() const;  // an expert whose slot may be taken; -1: none
    int64_t slotsNotPrepared() const;
    void reportEviction(uint32_t key);

    const Parts m_parts;
    int64_t m_slotBytes = 0;             // the largest record
    std::vector<ExpertEntry> m_entries;  // (MoE layers * E)
    CachePolicyKind m_policyKind;
    std::unique_ptr<CachePolicy> m_policy;
    std::vector<uint32_t> m_untilLayer;  // Order::UntilLayer, oldest first
    std::vector<std::byte*> m_freed;

    int64_t m_layer = -1;           // the last requested layer
    std::vector<uint32_t> m_steps;  // (MoE layers) requests so far

    int64_t m_capacity = 0;       // slots allowed
    int64_t m_used = 0;           // slots in use; prepared ones not included
    int64_t m_requestedSize = 0;  // experts per layer
    std::string m_sizeReason;     // why the capacity is less than requested
    PreparedSlots m_prepared;
    SlotMover m_mover;
    EventRing* m_ring = nullptr;
};

}  // namespace colibri
