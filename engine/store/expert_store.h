// SPDX-License-Identifier: Apache-2.0
// The expert store: routed experts are stored on disk, and a bounded set of slots in memory holds
// the ones in use. The store owns its memory and fills it with explicit reads (O_DIRECT); it does
// not map files.
//
//   request()  takes the experts that one layer needs and starts all missing reads at once
//   wait()     returns a Pin once the record is usable; a pinned slot is never evicted
//   hint()     takes experts that a coming layer may need; the store reads them while idle
//
// A miss causes one read, shared by all threads that wait for it. Demand reads have priority over
// prefetches. The cache is global over all MoE layers: slots = cacheSize * MoE layers; the policy
// chooses which to evict.
// A failed read is retried once; then wait() returns the error with file and offset. The store
// continues to work.
//
// Any size works, down to one slot: request() gives slots to as many misses as fit, in order; the
// rest start as pins are released. The caller processes its tickets in order (best with `hit`
// first, which overlaps the reads), releases each pin before it waits for many more, and holds
// fewer pins than there are slots. If it holds more, the store grows beyond its size by the records
// needed until pins are released; otherwise the wait would never end. If hits hold all slots, a
// waiting ticket takes the slot of one that no thread waits for yet, and that expert is read again.
//
// A prefetch takes a free slot, or the slot of the coldest unpinned record outside the layers from
// the current one to the target, but never that of the hottest records up to half of the slots.
// Unread or unused prefetches hold at most a quarter of the slots. A prefetched record keeps its
// slot until its layer is requested; if the record is not requested then, it is evicted next.
// Prefetching pauses itself when its outcomes show no benefit: see PrefetchJudge.
//
// Files are held open: a model folder that is renamed or deleted can still be read. If a file is
// truncated, the tickets that need the missing part fail.
//
// Threads: request, wait, hint and Pin belong to the engine's thread(s); all other functions may
// be called from any thread. The store runs its own threads: the read queue's (ReadQueue), one for
// a limited link, the prefetch threads, and temporarily one each for warm start, for preparing
// memory and for moving slots. Two locks: m_startMutex (starting and joining threads) before
// m_mutex (everything else). m_mutex is held for bookkeeping only, never during a read, an
// unmapping or a wait. The parts (SlotTable, ExpertReads, Prefetcher, PrefetchJudge) have no locks.
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
#include "engine/store/store_conditions.h"
#include "engine/store/store_options.h"
#include "engine/store/store_parts.h"
#include "engine/store/store_stats.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

class ExpertStore;

// Keeps one expert in memory during its lifetime. Move-only.
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

// The result of request() for one expert.
struct Ticket {
    uint16_t moeLayer = 0, expert = 0;
    bool hit = false;         // resident at first touch (a late prefetch is a miss)
    bool byPrefetch = false;  // hit because of a prefetch since its last use
    uint64_t requestedNs = 0;
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
    // pin. Prefetches of this or earlier layers that have not started are cancelled. `step`: number
    // of the forward pass, for the events of its reads.
    void request(int64_t moeLayer, std::span<const uint16_t> experts, std::vector<Ticket>& out,
                 uint32_t step = 0);
    bool ready(const Ticket& ticket) const;  // wait() would not block
    // Blocks until usable. The pin holds the slot. Each ticket must be waited for or dropped, once.
    // `abort`, if not nullptr, ends the wait with Cancelled and drops the ticket once it is true;
    // the thread that sets it then calls wakeWaiters(). A record that is already resident is
    // returned anyway.
    Result<Pin> wait(const Ticket& ticket, const std::atomic<bool>* abort = nullptr);
    void wakeWaiters();
    // Drops a ticket (a step that ends early). A read in flight completes and stays in the cache.
    void drop(const Ticket& ticket);
    // Prefetch candidates for a coming MoE layer, most likely first; replaces earlier ones of that
    // layer. They are read once the layer is at most the prefetch depth ahead. Never blocks.
    void hint(int64_t moeLayer, std::span<const uint16_t> experts);
    // Reads these experts (moeLayer * experts + expert, most used first) while the link is idle
    // into free slots; evicts nothing and counts as WarmStart. Does not wait.
    Status warm(std::vector<uint32_t> keys);

    // ---- knobs. Values are within the ranges of the knob table; each takes effect between two
    // reads. Setters whose effective value may differ from the requested one return it and the
    // reason.
    KnobState setCacheSize(int64_t expertsPerLayer);  // shrinks as pins are released; frees memory
    void setPolicy(CachePolicyKind policy);
    void setPrefetch(PrefetchSource source, int64_t depth);
    KnobState setPrefetchThreads(int64_t threads);
    KnobState setIoMode(IoMode mode);
    KnobState setIoDepth(int64_t reads);
    void setLinkLimit(int64_t megabytesPerSecond);  // 0: none
    // New slots are bound there; slots in use are moved in the background.
    void setNuma(NumaMode mode, int64_t node);
    // The knobs whose value changes after they were set: ExpertCacheSize (a shrink waits for pins),
    // PrefetchSource (off while it pauses itself), NumaMode and NumaNode (what the kernel reports).
    KnobState state(KnobId knob) const;
    // Why a value of IoMode or NumaMode cannot work with these files on this machine; "" if it can.
    std::string problem(KnobId knob, int64_t value) const;

    // Binds a prefetch thread (from 0) to a processor core; -1: any. Also works for threads that
    // are not running yet. The effective value is what the kernel reports, -1 if not bound.
    KnobState setPrefetchThreadCore(int64_t thread, int64_t core);
    KnobState prefetchThreadCore(int64_t thread) const;
    std::vector<int> boundCores() const;  // of running prefetch threads

    // ---- figures ----
    StoreStats stats() const;
    void residency(std::vector<Residency>& out) const;  // (MoE layers * E)
    std::vector<uint32_t> lookupCounts() const;         // (MoE layers * E) so far
    // A warning about the settings: the cache is smaller than one token's experts. "" if none.
    std::string warning() const;
    // How experts are read and why: "io_uring, registered buffers, direct", "pread on threads
    // (no io_uring: Operation not permitted), buffered".
    std::string readPath() const;

private:
    friend class Pin;
    friend struct StoreFactory;  // engine/store/store_factory.h
    struct Worker {              // a prefetch thread
        std::thread thread;
        EventRing* ring = nullptr;
        int core = -1;  // core to run on; -1: any
        std::string coreReason;
    };
    struct WorkerState {
        bool running = false;  // false: the thread has ended or is ending
        uint64_t seen = 0;     // Prefetcher::wakes() when it last found nothing to do
    };

    ExpertStore(StoreShape shape, const StoreOptions& options, Telemetry* telemetry,
                StoreParts parts);
    Status start();  // checks memory, starts the threads

    // ---- expert_store.cpp ----
    bool valid(const Ticket& ticket) const;
    void lookUp(uint32_t key, uint64_t now, Ticket& ticket) REQUIRES(m_mutex);
    void countStall(const ExpertEntry& e, uint64_t from) REQUIRES(m_mutex);
    void endTicket(uint32_t key) REQUIRES(m_mutex);
    void releaseUnheld(uint32_t key) REQUIRES(m_mutex);  // the last ticket or pin was released
    void unpin(uint32_t key);
    // Unmaps released memory, without the lock. False: there was none.
    bool freeMemory() REQUIRES(m_mutex);
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
    bool idle() REQUIRES(m_mutex);  // no read is wanted or in flight
    void memoryLoop();
    void prepareSlot() REQUIRES(m_mutex);
    bool computing(uint64_t now) REQUIRES(m_mutex);
    void noteEndOfPhase() REQUIRES(m_mutex);  // reports how many slots were prepared
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
    uint64_t m_tickets GUARDED_BY(m_mutex) = 0;           // tickets issued, to order them
    uint64_t m_requestNs GUARDED_BY(m_mutex) = 0;         // of the last request()
    std::vector<uint32_t> m_warm GUARDED_BY(m_mutex);     // still to preload, hottest last
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
