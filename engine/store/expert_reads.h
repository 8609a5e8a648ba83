// SPDX-License-Identifier: Apache-2.0
// The reads of experts: which wait for a slot, which are queued, which are being read and which the
// link still carries. Demand reads go to the read queue, as many at once as the depth allows; the
// prefetch thread that found a prefetch also reads it, between begin() and finish().
//
// Not thread-safe: the store calls it under its lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/store/link.h"
#include "engine/store/read_queue.h"
#include "engine/store/slot_table.h"
#include "engine/store/store_conditions.h"

namespace colibri {

class ExpertReads {
public:
    static constexpr int64_t kMostDepth = 64;  // knob io_depth

    // All must outlive this.
    struct Parts {
        const StoreShape& shape;
        SlotTable& table;
        ReadQueue& queue;
        StoreClock& clock;
        PrefetchJudge& judge;
        StoreCounters& counters;
        StoreConditions& conditions;
    };
    ExpertReads(const Parts& parts, IoMode mode, int64_t depth);

    // ---- requests: an expert in state NeedsSlot gets a slot, then its read starts ----
    void need(uint32_t key);
    void giveSlots();  // to the experts that need one, while slots are available; starts no read
    void forceSlot(uint32_t key);  // for a waiting thread, if nothing may be evicted
    // The last ticket of an expert that needs a slot, or has failed, was dropped.
    void withdraw(uint32_t key);
    void startReads();  // of the experts that have a slot, as many as the depth allows
    void join(uint32_t key, uint64_t now);  // a prefetch that is being read was requested

    // ---- reads of both kinds ----
    // A prefetch thread reads the expert itself. From here on the slot's bytes belong to the read.
    RecordRead beginPrefetch(uint32_t key);
    void leaveDisk(uint32_t key);  // of a prefetch: it was read, or requested
    // The read queue has read a record, which ends the read unless the link still carries it.
    void endDiskRead(uint32_t key, const ReadOutcome& outcome);
    // When the link has carried the record; `now` or earlier: it has.
    uint64_t carriedAt(uint32_t key, uint64_t now);
    // The expert of the read queue that the link will deliver first; -1: none waits for the link.
    int64_t nextOnLink(uint64_t now);
    // The read has ended, successfully or not. `ring` takes the event of a prefetch thread's read.
    void finish(uint32_t key, const Status& status, EventRing* ring = nullptr);

    Status errorOf(uint32_t key) const;  // why a wait ended without the record

    // ---- load of disk and link ----
    bool demandWaits() const {
        return !m_queued.empty() || !m_needSlot.empty() || m_demandReading > 0;
    }
    bool quiet() const { return m_queued.empty() && m_demandReading + m_prefetchReading == 0; }
    int64_t prefetchesReading() const { return m_prefetchReading; }
    bool linkIdle(uint64_t now) { return m_link.idle(now); }

    // ---- settings ----
    int64_t depth() const { return m_depth; }
    int64_t lanes() const { return int64_t(m_laneRings.size()); }
    void addLane(EventRing* ring) { m_laneRings.push_back(ring); }  // one per read in flight
    void setDepth(int64_t reads) { m_depth = reads; }
    IoMode mode() const { return m_mode; }
    void setMode(IoMode mode) { m_mode = mode; }
    void setLinkRate(int64_t bytesPerSecond, uint64_t now);
    void stop() { m_stopping = true; }  // no further read starts, and none is retried

private:
    void assign(uint32_t key, const Slot& slot);  // queues its read; without a slot it fails
    RecordRead begin(uint32_t key);
    void fail(uint32_t key, Status status);
    void report(uint32_t key, const Status& status, uint64_t now, EventRing* ring);
    void keepRecord(uint32_t key, uint64_t now);
    void loseRecord(uint32_t key, const Status& status);

    const Parts m_parts;
    SlotTable& m_slots;
    IoMode m_mode;
    int64_t m_depth;
    bool m_stopping = false;
    uint64_t m_lanes = 0;                 // bits: demand reads in flight
    std::vector<EventRing*> m_laneRings;  // (depth so far)
    int64_t m_demandReading = 0;          // in flight and requested
    int64_t m_prefetchReading = 0;        // in flight and not requested
    // These reserve room for every record at the start, so no operation fails halfway for lack of
    // memory.
    std::vector<uint32_t> m_needSlot;  // in ticket order
    std::vector<uint32_t> m_queued;
    std::vector<uint32_t> m_onLink;  // read, waiting for the link; in order of arrival
    std::unordered_map<uint32_t, Status> m_errors;  // of failed experts with tickets
    LinkLimiter m_link;
};

}  // namespace colibri
