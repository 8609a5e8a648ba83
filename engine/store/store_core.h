// SPDX-License-Identifier: Apache-2.0
// The inside of ExpertStore: who is resident, who is being read, who waits.
//
// One mutex guards everything but the slots' contents; it is held for bookkeeping only, never over
// a read, an unmapping or a wait. A slot's bytes belong to the reading thread while its record is
// Reading and to all readers once Resident.
//
// An expert goes OnDisk -> [NeedsSlot ->] Queued -> Reading -> Resident -> OnDisk. Demand records
// enter the policy when they get their slot, in the order asked for, so that what is evicted does
// not depend on how fast reads end.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/store/busy_time.h"
#include "engine/store/expert_store.h"
#include "engine/store/link.h"
#include "engine/store/policy.h"
#include "engine/store/store_parts.h"

namespace colibri {

class StoreCore {
public:
    StoreCore(StoreShape shape, const StoreOptions& options, Telemetry* telemetry,
              StoreParts parts);
    ~StoreCore();
    Status start();  // checks memory, starts the threads

    void request(int64_t moeLayer, std::span<const uint16_t> experts, std::vector<Ticket>& out);
    bool ready(const Ticket& ticket);
    // Returns the record's memory and pins it.
    Result<const std::byte*> wait(const Ticket& ticket, uint32_t& key,
                                  const std::atomic<bool>* abort);
    void wakeWaiters();
    void drop(const Ticket& ticket);
    void unpin(uint32_t key);
    void hint(int64_t moeLayer, std::span<const uint16_t> experts);

    KnobState setCacheSize(int64_t expertsPerLayer);
    KnobState cacheSizeState();
    KnobState setPolicy(CachePolicyKind policy);
    KnobState setPrefetchThreads(int64_t threads);
    KnobState setPrefetch(PrefetchSource source, int64_t depth);
    KnobState setIoMode(IoMode mode);
    std::string ioModeProblem(IoMode mode) const;
    KnobState setIoDepth(int64_t reads);
    KnobState setLinkLimit(int64_t megabytesPerSecond);
    KnobState prefetchState();
    Status warm(std::vector<uint32_t> keys);
    std::vector<uint32_t> lookupCounts();
    std::string warning();

    // store_placement.cpp
    void setNuma(NumaMode mode, int64_t node);
    KnobState numaModeState();
    std::string numaModeProblem(NumaMode mode) const;
    KnobState numaNodeState();
    KnobState setPrefetchThreadCore(int64_t thread, int64_t core);
    KnobState prefetchThreadCore(int64_t thread);
    std::vector<int> boundCores();

    StoreStats stats();
    std::string readPath();
    void residency(std::vector<Residency>& out) const;
    int64_t experts() const { return m_shape.experts; }
    int64_t moeLayers() const { return int64_t(m_shape.layers.size()); }

    void settle();
    std::vector<uint32_t> order();

private:
    using Lock = std::unique_lock<std::mutex>;
    enum class State : uint8_t { OnDisk, NeedsSlot, Queued, Reading, Resident, Failed };
    enum class Place : uint8_t { Nowhere, Policy, Pending };

    struct Entry {  // one expert of one MoE layer
        State state = State::OnDisk;
        Place place = Place::Nowhere;
        LoadReason reason = LoadReason::Demand;       // who began the read
        PrefetchSource source = PrefetchSource::Off;  // ... of a prefetch
        bool unused = false;                          // ... and nobody has asked for it yet
        bool joined = false;                          // a prefetch being read that was asked for
        bool demanded = false;                        // being read, and asked for
        bool retried = false;
        bool fresh = false;              // read last into memory that had not been touched
        bool lined = false;              // in m_needSlot
        bool onDisk = false;             // a prefetch nobody has asked for, not read yet
        bool leads = false;              // a demand read begun when no other was under way
        uint32_t tickets = 0, pins = 0;  // neither: may be evicted
        uint32_t waiting = 0;            // threads in wait()
        uint32_t uses = 0;               // lookups since it became resident
        uint32_t epoch = 0;              // of its layer when the prefetch began
        uint32_t usedEpoch = 0;          // ... when it was last asked for
        uint8_t lane = 0;                // of a demand read under way
        LinkLimiter::Transfer transfer = 0;
        std::byte* memory = nullptr;  // its slot
        uint64_t order = 0;           // of its oldest ticket
        uint64_t askedNs = 0;         // first asked for, or prefetch hinted
        uint64_t submittedNs = 0;     // the read under way began
        uint64_t prefetchNs = 0;      // m_prefetchDisk when a demand read began
        uint64_t residentNs = 0;
    };
    struct Slot {
        std::byte* memory = nullptr;
        bool fresh = false;  // never touched: the system gives its pages while they are filled
    };
    struct Worker {  // a prefetch thread
        std::thread thread;
        EventRing* ring = nullptr;
        int core = -1;  // to run on; -1: any. This and the next: of m_startMutex
        std::string coreReason;
        bool running = false;  // false: has ended or is about to
        uint64_t seen = 0;     // m_wakes when it last found nothing to do
    };

    static constexpr int64_t kMaxPrefetchThreads = 64;
    static constexpr int64_t kMaxDepth = 64;
    static constexpr int64_t kTrimBatch = 8;  // slots let go per hold of the lock

    // store_cache.cpp: slots, eviction, tickets. All REQUIRE the lock.
    uint32_t keyOf(int64_t moeLayer, int64_t expert) const {
        return uint32_t(moeLayer * m_shape.experts + expert);
    }
    int64_t layerOf(uint32_t key) const { return int64_t(key) / m_shape.experts; }
    bool valid(const Ticket& ticket) const;
    static bool held(const Entry& e) { return e.tickets + e.pins > 0; }
    bool evictable(uint32_t key) const {
        const Entry& e = m_entries[key];
        return e.state == State::Resident && !held(e);
    }
    void setState(uint32_t key, State state);
    void passLayers(int64_t moeLayer);
    void clearHints(int64_t moeLayer);
    void lookUp(uint32_t key, uint64_t now, Ticket& ticket);
    void demotePassed(int64_t moeLayer);  // prefetches of the layer nobody asked for
    void place(uint32_t key);             // orders an asked-for key in the policy, or lines it up
    void join(Entry& e, uint64_t now);    // a prefetch under way is asked for
    static bool usable(const Entry& e) {
        return e.state == State::Resident || e.state == State::Failed;
    }
    int64_t ahead(int64_t moeLayer) const;  // layers from the current one, 1..M
    Slot newSlot();                         // no memory: at capacity or there is none
    Slot slotForDemand();                   // new or evicted; no memory: all held
    Slot slotForPrefetch(uint32_t key);
    void queueRead(uint32_t key, Slot slot);
    std::byte* evict(uint32_t key, State next);  // returns its slot
    std::byte* takeSlot(uint32_t key);           // out of policy, pending list and entry
    void dropSlot(uint32_t key);                 // after a failed read
    void letGo(uint32_t key);                    // the last ticket or pin has gone
    void feedWaiting();                          // slots to records that need one
    void forceSlot(uint32_t key);                // for a waiting thread, when nothing is evictable
    int64_t stealable(uint32_t key) const;
    void fail(uint32_t key, Status status);
    Status errorOf(uint32_t key) const;
    void endTicket(uint32_t key);
    void trim(int64_t most);           // evicts down to capacity
    void giveBack(std::byte* memory);  // a slot, to be unmapped after unlocking
    void freeLater(std::byte* memory);
    void unlockAndFree(Lock& lock);  // unmaps what trim() let go
    KnobState sizeState() const;

    // store_memory.cpp. REQUIRES the lock, but startMemoryThread().
    Status startMemoryThread();
    void memoryLoop();
    void prepareSlot(Lock& lock);
    int64_t slotsToPrepare() const;
    bool computing(uint64_t now) const;
    void tellPrepared();
    void dropReady(int64_t keep);
    std::byte* readySlot();  // now in use; nullptr: none is ready
    bool reuseFirst(uint32_t coldest) const;
    int64_t coldestSlot() const;                     // whose slot may be taken; -1: none
    void measureRead(const Entry& e, uint64_t now);  // a demand read has ended

    // store_placement.cpp
    void placeNew(std::byte* memory);
    int64_t misplaced(size_t& from) const;
    void moverLoop();
    std::vector<std::byte*> someSlots() const;       // REQUIRES the lock
    std::string movedText() const;                   // ... too
    void bindToCore(Worker& worker, int64_t index);  // REQUIRES m_startMutex
    KnobState coreState(int64_t thread);             // ... without the lock

    // store_reads.cpp: reads and threads.
    void startReads();               // demand reads, as many as the depth allows
    RecordRead begin(uint32_t key);  // now Reading, on the link
    void landed(uint32_t key, const ReadOutcome& outcome);  // of a demand read; takes the lock
    void linkLoop();  // ends demand reads when the link has carried them
    void prefetchLoop(int index);
    void readHere(Lock& lock, uint32_t key, EventRing* ring);  // on this thread
    void report(uint32_t key, const Status& status, uint64_t now, EventRing* ring);
    void endDemand(Lock& lock, uint32_t key, const Status& status);
    void finishRead(uint32_t key, const Status& status, uint64_t now);
    void keepRecord(uint32_t key, uint64_t now);          // of finishRead, after a good read
    void loseRecord(uint32_t key, const Status& status);  // ... after a failed one
    int64_t nextPrefetch();                               // a key with its slot taken, or -1
    bool mayPrefetch(uint64_t now);
    bool idle();  // nothing to read for anybody
    void warmLoop();
    void count(uint64_t PrefetchCounts::*what, PrefetchSource source) {
        ++(m_stats.bySource[size_t(source)].*what);
    }
    void judge(bool bad, uint64_t savedNs = 0);  // one prefetch outcome, for the back-off
    std::string verdict() const;                 // why prefetch must pause; "" when it need not
    void leaveDisk(Entry& e);                    // a prefetch is read, or asked for
    void measureDelay(const Entry& e, uint64_t now);  // a demand read has left the disk
    void passPause();                                 // one layer request of a pause
    void endPause();
    KnobState prefetchSourceNow() const;
    void tellPrefetch();
    void wakePrefetch();
    Status openLanes(int64_t depth);       // REQUIRES m_startMutex, without the lock
    Status startWorkers(int64_t threads);  // REQUIRES m_startMutex, without the lock
    void flushOutcome(uint64_t now, bool force);

    const StoreShape m_shape;
    const StoreParts m_parts;
    Telemetry* const m_telemetry;
    int64_t m_slotBytes = 0;  // the largest record

    mutable std::mutex m_mutex;                           // guards all below, but m_residency
    std::vector<Entry> m_entries;                         // (MoE layers * E)
    std::unique_ptr<std::atomic<uint8_t>[]> m_residency;  // (MoE layers * E) read without lock
    std::unique_ptr<CachePolicy> m_policy;
    CachePolicyKind m_policyKind;
    std::vector<uint32_t> m_pending;  // prefetched for a layer still to come, oldest first
    std::unordered_map<uint32_t, Status> m_errors;
    std::vector<std::byte*> m_freed;  // to unmap after unlocking

    int64_t m_capacity = 0;           // slots allowed
    int64_t m_used = 0;               // slots taken; those in m_ready come on top
    int64_t m_requestedSize = 0;      // experts per layer
    std::string m_sizeReason;         // why the capacity is less than requested
    const bool m_prepares;            // slots ahead of need
    std::vector<std::byte*> m_ready;  // prepared and not in use
    int64_t m_preparing = 0;          // 1: one is being prepared
    bool m_memoryFull = false;        // no more can be prepared
    uint64_t m_requestNs = 0;         // of the last request()
    uint64_t m_restUntilNs = 0;       // of the memory thread, while tokens are computed
    uint64_t m_prepareFromNs = 0;     // start of the phase; 0: nothing is prepared
    int64_t m_preparedNow = 0;        // slots in the phase
    int64_t m_touchNs = 0;            // mean time that preparing a slot takes
    int64_t m_readNs = 0;             // ... and a demand read into touched memory
    uint64_t m_tickets = 0;           // given out, to order them

    int64_t m_layer = -1;                        // requested last
    std::vector<uint32_t> m_epochs;              // (MoE layers) requests so far
    std::vector<std::vector<uint32_t>> m_hints;  // (MoE layers) keys, most likely last
    std::vector<uint64_t> m_hintNs;              // (MoE layers) time of the last hint
    int64_t m_hinted = 0;                        // keys in m_hints

    std::vector<uint32_t> m_lookups;  // (MoE layers * E) since the start
    std::vector<uint32_t> m_warm;     // still to be read ahead of need, hottest last
    bool m_warming = false;

    // These have room for every record from the start: nothing is half done for want of memory.
    std::vector<uint32_t> m_needSlot;     // in ticket order
    std::vector<uint32_t> m_demand;       // Queued
    std::vector<uint32_t> m_landed;       // read, waiting for the link; in order of arrival
    uint64_t m_lanes = 0;                 // bits: demand reads begun and not ended
    std::vector<EventRing*> m_laneRings;  // (depth so far) one lane per read in flight
    int64_t m_demandReading = 0;          // Reading and asked for
    int64_t m_prefetchReading = 0;        // Reading and not asked for
    int64_t m_unusedPrefetches = 0;       // being read or resident, not asked for

    NumaPlace m_numaRequested, m_place;                 // asked for, and in force for new slots
    std::string m_numaReason;                           // why it is not
    uint32_t m_placeSerial = 0;                         // of m_place
    std::unordered_map<std::byte*, uint32_t> m_placed;  // (slots) serial they were placed with
    int64_t m_misplaced = 0;                            // slots with an older serial

    PrefetchSource m_source;
    int64_t m_depth = 0;
    int64_t m_window = 0, m_nextPause = 0;   // back-off: outcomes judged, requests paused
    int64_t m_judged = 0, m_judgedBad = 0;   // outcomes in the window
    int64_t m_savedNs = 0, m_delayedNs = 0;  // by prefetches, of demand reads; in the window
    int64_t m_alone = 0, m_aloneNs = 0;      // demand reads that met no prefetch; their mean time
    BusyTime m_prefetchDisk;                 // prefetches are being read from the disk
    int64_t m_pauseLeft = 0;                 // layer requests until the next probe
    std::string m_backOff;                   // why prefetch pauses
    int64_t m_prefetchThreads = 0;
    int64_t m_ioDepth = 0;
    IoMode m_ioMode;
    LinkLimiter m_link;
    StoreStats m_stats;
    std::array<PrefetchCounts, kPrefetchSources>
        m_outcome;  // prefetch counters at the last PrefetchOutcome
    uint64_t m_outcomeNs = 0;
    EventRing* m_ring = nullptr;  // evictions, outcomes; written under the lock
    bool m_stopping = false;

    std::condition_variable m_prefetchCv;  // prefetch threads: one may begin
    std::condition_variable m_linkCv;      // transfers: the link changed
    std::condition_variable m_doneCv;      // wait(), settle(): a read ended or a slot moved
    int64_t m_doneWaiters = 0;

    std::condition_variable m_memoryCv;  // slots are to be prepared
    std::condition_variable m_moverCv;   // the slots' place changed
    cpu_set_t m_allowedCores{};          // of this process
    std::thread m_linkThread, m_memoryThread, m_moverThread, m_warmThread;
    EventRing* m_warmRing = nullptr;
    std::vector<Worker> m_workers;  // (kMaxPrefetchThreads)
    uint64_t m_wakes = 0;           // times prefetch threads were told to look
    std::mutex m_startMutex;        // starting, joining threads; before m_mutex
};

}  // namespace colibri
