// SPDX-License-Identifier: Apache-2.0
// The reads of experts: who waits for a slot, who is queued, what is being read and what the link
// still carries. Demand reads go to the read queue, as many at once as the depth allows; a prefetch
// is read by the thread that found it, through begin() and finish().
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

    // All are used as long as this lives.
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

    // ---- asking: an expert in state NeedsSlot gets a slot, then its read starts ----
    void need(uint32_t key);
    void giveSlots();              // to those in need, while there are any
    void forceSlot(uint32_t key);  // for a waiting thread, when nothing may be evicted
    void withdraw(
        uint32_t key);  // the last ticket of one that needs a slot, or has failed, is gone
    void startReads();
    void join(uint32_t key, uint64_t now);  // a prefetch being read is asked for

    // ---- reads of both kinds ----
    // The slot's bytes belong to the read from here on.
    RecordRead begin(uint32_t key);
    bool carried(uint32_t key, uint64_t now);  // over the link
    uint64_t carriedAt(uint32_t key, uint64_t now);
    void leaveDisk(uint32_t key);  // of a prefetch: it is read, or asked for
    // The read has ended, well or not; events go to `ring`.
    void finish(uint32_t key, const Status& status, EventRing* ring);

    // ---- demand reads ----
    // The queue has read a record. False: the link still carries it.
    bool endOfDisk(uint32_t key, const ReadOutcome& outcome);
    void finishDemand(uint32_t key, const Status& status);
    // The one that the link will have carried first; -1: none is waiting for the link.
    int64_t nextOnLink(uint64_t now);

    Status errorOf(uint32_t key) const;  // why a wait ended without the record
    void forgetError(uint32_t key) { m_errors.erase(key); }

    // ---- load ----
    bool demandWaits() const {
        return !m_queued.empty() || !m_needSlot.empty() || m_demandReading > 0;
    }
    bool reading() const { return m_demandReading + m_prefetchReading > 0; }
    bool quiet() const { return m_queued.empty() && !reading(); }
    int64_t prefetchesReading() const { return m_prefetchReading; }
    void prefetchBegins() { ++m_prefetchReading; }
    bool linkIdle(uint64_t now) { return m_link.idle(now); }

    // ---- settings ----
    int64_t depth() const { return m_depth; }
    int64_t lanes() const { return int64_t(m_laneRings.size()); }
    void addLane(EventRing* ring) { m_laneRings.push_back(ring); }  // one per read in flight
    void setDepth(int64_t reads) { m_depth = reads; }
    IoMode mode() const { return m_mode; }
    void setMode(IoMode mode) { m_mode = mode; }
    void setLinkRate(int64_t bytesPerSecond, uint64_t now);
    void stop() { m_stopping = true; }  // no further read starts, and none is tried again

private:
    void queueRead(uint32_t key, const Slot& slot);
    void fail(uint32_t key, Status status);
    void report(uint32_t key, const Status& status, uint64_t now, EventRing* ring);
    void keepRecord(uint32_t key, uint64_t now);
    void loseRecord(uint32_t key, const Status& status);

    const Parts m_parts;
    SlotTable& m_slots;
    IoMode m_mode;
    int64_t m_depth;
    bool m_stopping = false;
    uint64_t m_lanes = 0;                 // bits: demand reads begun and not ended
    std::vector<EventRing*> m_laneRings;  // (depth so far)
    int64_t m_demandReading = 0;          // being read and asked for
    int64_t m_prefetchReading = 0;        // being read and not asked for
    // These have room for every record from the start: nothing is half done for want of memory.
    std::vector<uint32_t> m_needSlot;  // in ticket order
    std::vector<uint32_t> m_queued;
    std::vector<uint32_t> m_onLink;  // read, waiting for the link; in order of arrival
    std::unordered_map<uint32_t, Status> m_errors;  // of failed experts with tickets
    LinkLimiter m_link;
};

}  // namespace colibri
