// SPDX-License-Identifier: Apache-2.0
// The expert store: routed experts live on disk, and a bounded set of slots in memory holds the
// ones in use. Memory is owned and read explicitly (O_DIRECT), never mapped and faulted in.
//
//   request()  the engine names the experts one layer needs; all missing reads start at once
//   wait()     returns a Pin once the record is usable; a pinned slot is never evicted
//   hint()     names experts a coming layer may need; they are read only while the link is idle
//
// A miss is one read, shared by all who wait for it. Demand reads go before prefetches. The cache
// is global over all MoE layers: slots = cacheSize * MoE layers, evicted by the policy.
// A failed read is retried once; then wait() returns the error with file and offset. The store goes
// on working.
//
// Any size works, down to one slot: request() gives slots to as many misses as fit, in order; the
// rest start as pins are released. The caller works through its tickets in order (those with `hit`
// first is best: it overlaps the reads), releases each pin before it waits for many more, and holds
// fewer pins than there are slots. If it holds more, the store grows past its size by the records
// needed until they are released, rather than wait for ever. When hits hold all slots, a waiting
// ticket takes the slot of one that no thread waits for yet, which is then read again.
//
// A prefetch takes a free slot, or that of the coldest unpinned record that is not of a layer from
// the current one to the target, and never that of the hottest records up to half of the slots.
// Unread or unused prefetches hold at most a quarter of the slots. A prefetched record keeps its
// slot until its layer is requested; if it is not asked for then, it is evicted next. Prefetching
// is judged by its outcomes and pauses itself when it does not pay: see PrefetchJudge.
//
// Files are held open: a model folder that is renamed or deleted is still read. A file cut short is
// an error of the tickets that need the missing part.
//
// Threads: request, wait, hint and Pin belong to the engine's thread(s); all else may be called
// from any thread. The store runs threads of its own: the read queue's (ReadQueue), one for a
// limited link, the prefetch threads, and at times one each for warming, for preparing memory and
// for moving slots. Two locks: m_startMutex (starting and joining threads) before m_mutex
// (everything else). m_mutex is held for bookkeeping only, never over a read, an unmapping or a
// wait. The parts (SlotTable, ExpertReads, Prefetcher, PrefetchJudge) have no locks of their own.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"
#include "engine/store/expert_reads.h"
#include "engine/store/prefetch_judge.h"
#include "engine/store/prefetcher.h"
#include "engine/store/slot_table.h"
#include "engine/store/store_options.h"
#include "engine/store/store_parts.h"
#include "engine/store/store_conditions.h"
#include "engine/store/store_stats.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

class ExpertStore;

// Keeps one expert in memory while it lives. Move-only.
class Pin {
public:
    Pin() = default;
    Pin(Pin&& other) noexcept;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin() { release(); }

    explicit operator bool() const { return m_store != nullptr; }
    const std::byte* record() const { return m_record; }  // recordBytes, [w1 | w3 | w2]
    void release();

private:
    friend class ExpertStore;
    ExpertStore* m_store = nullptr;
    const std::byte* m_record = nullptr;
    uint32_t m_key = 0;
};

// What request() found for one expert.
struct Ticket {
    uint16_t moeLayer = 0, expert = 0;
    bool hit = false;         // resident at first touch (a late prefetch is a miss)
    bool byPrefetch = false;  // hit, and a prefetch had brought it since its last use
    uint64_t askedNs = 0;
};

class ExpertStore {
public:
    // Opens the expert files. Errors: BadInput or IoError with the file, OutOfMemory with the size.
    static Result<std::unique_ptr<ExpertStore>> open(const ContainerInfo& info,
                                                     const StoreOptions& options,
                                                     Telemetry* telemetry);
    ~ExpertStore();

    // ---- experts ----
    // Looks up `experts` (distinct) of one MoE layer, counts hits, starts all missing reads. `out`
    // is cleared first and gets one ticket per expert, in order. A ticket holds its expert like a
    // pin. Prefetches of this or earlier layers that have not started are cancelled.
    void request(int64_t moeLayer, std::span<const uint16_t> experts, std::vector<Ticket>& out);
    bool ready(const Ticket& ticket) const;  // wait() would not block
    // Blocks until usable. The pin holds the slot. Each ticket is waited for or dropped, once.
    // `abort`, if not nullptr, ends the wait with Cancelled and drops the ticket once it is true;
    // the thread that sets it then calls wakeWaiters(). A record that is resident by then is
    // returned all the same.
    Result<Pin> wait(const Ticket& ticket, const std::atomic<bool>* abort = nullptr);
    void wakeWaiters();
    // Gives a ticket up (a step that ends early). A read under way is finished for the cache.
    void drop(const Ticket& ticket);
    // Prefetch candidates for a coming MoE layer, most likely first; replaces earlier ones of that
    // layer. They are read once the layer is at most the prefetch depth ahead. Never blocks.
    void hint(int64_t moeLayer, std::span<const uint16_t> experts);
    // Reads these experts (moeLayer * experts + expert, most wanted first) in idle link time into
    // slots that are free; evicts nothing and counts as WarmStart. Does not wait.
    Status warm(std::vector<uint32_t> keys);

    // ---- knobs. Values are within the ranges of the knob table; each takes effect between two
    // reads. Those that may differ from what was asked for return what is in force, and why.
    KnobState setCacheSize(int64_t expertsPerLayer);  // shrinks as pins allow; returns memory
    void setPolicy(CachePolicyKind policy);
    void setPrefetch(PrefetchSource source, int64_t depth);
    KnobState setPrefetchThreads(int64_t threads);
    KnobState setIoMode(IoMode mode);
    KnobState setIoDepth(int64_t reads);
    void setLinkLimit(int64_t megabytesPerSecond);  // 0: none
    // New slots are placed there; those in use are moved in the background.
    void setNuma(NumaMode mode, int64_t node);
    // The knobs that go on changing after they were set: ExpertCacheSize (a shrink waits for pins),
    // PrefetchSource (off while it pauses itself), NumaMode and NumaNode (what the kernel reports).
    KnobState state(KnobId knob) const;
    // Why a value of IoMode or NumaMode cannot work with these files on this machine; "" if it can.
    std::string problem(KnobId knob, int64_t value) const;

    // Binds a prefetch thread (from 0) to a processor core; -1: any. Also for threads that do not
    // run yet. Effective is the kernel's answer, -1 when not bound.
    KnobState setPrefetchThreadCore(int64_t thread, int64_t core);
    KnobState prefetchThreadCore(int64_t thread) const;
    std::vector<int> boundCores() const;  // of running prefetch threads

    // ---- figures ----
    StoreStats stats() const;
    void residency(std::vector<Residency>& out) const;  // (MoE layers * E)
    std::vector<uint32_t> lookupCounts() const;         // (MoE layers * E) so far
    // What is wrong with the settings: a cache smaller than what one token uses. "" when nothing.
    std::string warning() const;
    // How reads are done and why: "io_uring, registered buffers, direct", "pread on threads
    // (no io_uring: Operation not permitted), buffered".
    std::string readPath() const;

private:
    friend class Pin;
    friend struct StoreFactory;  // engine/store/store_factory.h
    struct Worker {              // a prefetch thread
        std::thread thread;
        EventRing* ring = nullptr;
        int core = -1;  // to run on; -1: any
        std::string coreReason;
    };
    struct WorkerState {
        bool running = false;  // false: has ended or is about to
        uint64_t seen = 0;     // Prefetcher::wakes() when it last found nothing to do
    };

    ExpertStore(StoreShape shape, const StoreOptions& options, Telemetry* telemetry,
                StoreParts parts);
    Status start();  // checks memory, starts the threads

    // ---- expert_store.cpp ----
    bool valid(const Ticket& ticket) const;
    void lookUp(uint32_t key, uint64_t now, Ticket& ticket) REQUIRES(m_mutex);
    void endTicket(uint32_t key) REQUIRES(m_mutex);
    void letGo(uint32_t key) REQUIRES(m_mutex);  // the last ticket or pin has gone
    void unpin(uint32_t key);
    // Unmaps memory that was given up. Lets go of the lock meanwhile.
    void freeMemory() REQUIRES(m_mutex);
    void reportPrefetches(uint64_t now, bool force) const REQUIRES(m_mutex);
    void settle();

    // ---- store_threads.cpp ----
    Status openLanes(int64_t depth) REQUIRES(m_startMutex);
    Status startWorkers(int64_t threads) REQUIRES(m_startMutex);
    void onRead(uint32_t key, const ReadOutcome& outcome);  // the queue has read a record
    void afterRead() REQUIRES(m_mutex);
    void linkLoop();
    void prefetchLoop(size_t index, EventRing* ring);
    void warmLoop(EventRing* ring);
    // Reads one record on this thread, without the lock.
    void readHere(uint32_t key, EventRing* ring) REQUIRES(m_mutex);
    bool idle() REQUIRES(m_mutex);  // nothing to read for anybody
    void memoryLoop();
    void prepareSlot() REQUIRES(m_mutex);
    bool computing(uint64_t now) REQUIRES(m_mutex);
    void noteEndOfPhase() REQUIRES(m_mutex);  // slots were prepared: says how many
    void moverLoop();
    bool moveSlot(uint32_t key, bool lastTry) REQUIRES(m_mutex);
    void bindToCore(int64_t thread) REQUIRES(m_startMutex);
    KnobState coreState(int64_t thread) const REQUIRES(m_startMutex);

    const StoreShape m_shape;
    const StoreParts m_parts;
    Telemetry* const m_telemetry;
    ResidencyMap m_residency;
    const int64_t m_slotBytes;  // of the largest record

    mutable Mutex m_startMutex ACQUIRED_BEFORE(m_mutex);
    mutable Mutex m_mutex;

    StoreCounters m_counters GUARDED_BY(m_mutex);
    StoreConditions m_conditions;
    PrefetchJudge m_judge GUARDED_BY(m_mutex);
    mutable SlotTable m_slots GUARDED_BY(m_mutex);
    ExpertReads m_reads GUARDED_BY(m_mutex);
    Prefetcher m_prefetcher GUARDED_BY(m_mutex);

    std::vector<uint32_t> m_lookups GUARDED_BY(m_mutex);  // (MoE layers * E) since the start
    uint64_t m_tickets GUARDED_BY(m_mutex) = 0;           // given out, to order them
    uint64_t m_requestNs GUARDED_BY(m_mutex) = 0;         // of the last request()
    std::vector<uint32_t> m_warm GUARDED_BY(m_mutex);     // to be read ahead of need, hottest last
    bool m_warming GUARDED_BY(m_mutex) = false;
    std::vector<WorkerState> m_workerStates GUARDED_BY(m_mutex);
    mutable std::array<PrefetchCounts, kPrefetchSources> m_reported GUARDED_BY(m_mutex);
    mutable uint64_t m_reportedNs GUARDED_BY(m_mutex) = 0;
    EventRing* m_ring = nullptr;  // evictions, outcomes; written under the lock
    bool m_stopping GUARDED_BY(m_mutex) = false;

    cpu_set_t m_allowedCores{};  // of this process
    std::thread m_linkThread GUARDED_BY(m_startMutex), m_memoryThread GUARDED_BY(m_startMutex);
    std::thread m_moverThread GUARDED_BY(m_startMutex), m_warmThread GUARDED_BY(m_startMutex);
    EventRing* m_warmRing GUARDED_BY(m_startMutex) = nullptr;
    mutable std::vector<Worker> m_workers GUARDED_BY(m_startMutex);
};

}  // namespace colibri
