// SPDX-License-Identifier: Apache-2.0
// The expert store: routed experts live on disk; a bounded set of slots in memory holds the ones
// in use. Memory is owned and read explicitly (O_DIRECT), never mapped and faulted in.
//
//   request()  the engine names the experts one layer needs; all missing reads start at once
//   wait()     gives a Pin once the record is usable; a pinned slot is never evicted
//   hint()     names experts a coming layer may need; read only while the link is idle
//
// A miss is one read, shared by all who wait for it. Demand reads go before prefetches. The cache
// is global over all MoE layers: slots = cacheSize * MoE layers, evicted by the policy.
// A failed read is retried once, then wait() returns the error naming file and offset; the store
// lives on.
//
// Threads: request, wait, hint and Pin belong to the engine's thread(s); setters and stats may be
// called from any thread. Reads run on the store's own I/O and prefetch threads: through io_uring
// where the kernel offers it, else by pread on threads (readPath() tells).
//
// Any size works, down to one slot: request() gives slots to as many misses as fit, in order; the
// rest start as pins are released. So the caller works through its tickets in order (those with
// `hit` first is best: it overlaps the reads), releases each pin before it waits for many more,
// and holds fewer pins than there are slots. If it holds more, the store grows past its size by
// the records needed until they are released, rather than wait for ever. When hits hold all
// slots, a waiting ticket takes the slot of one not waited for yet, which is then read again.
//
// A prefetch takes a free slot, or that of the coldest unpinned record that is not of a layer from
// the current one to the target, and never that of the hottest records up to half of the slots;
// unread or unused prefetches hold at most a quarter of the slots. A prefetched record keeps its
// slot until its layer is requested; not asked for then, it becomes the next to be evicted.
//
// Prefetch is judged by its outcomes: see prefetchState().
//
// Files are held open: a model folder renamed or deleted is still read. A file cut short is an
// error of the tickets that need what is missing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

class ExpertStore;
class StoreCore;

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

struct StoreOptions {
    int64_t cacheSize = 0;  // experts per MoE layer
    CachePolicyKind policy = CachePolicyKind::Lru;
    PrefetchSource prefetchSource = PrefetchSource::NextRouter;
    int64_t prefetchDepth = 1;    // layers ahead, 0..4
    int64_t prefetchThreads = 1;  // 0: no prefetch
    IoMode ioMode = IoMode::Direct;
    int64_t ioDepth = 8;    // demand reads in flight, 1..64
    int64_t linkLimit = 0;  // MB/s (10^6), 0 = none
    // Has the system give the memory of all slots ahead of need, in the background: at once while
    // nothing is asked for, else little by little.
    bool prepareMemory = false;
};

// Where every expert is, for the experts map: one byte per (MoE layer, expert).
enum class Residency : uint8_t { OnDisk, Loading, Resident };

struct PrefetchCounts {
    // Issued: reads begun. Useful: resident at first touch. Late: asked for while being read.
    // Wasted: evicted or failed before use. The rest is being read or not used yet.
    uint64_t issued = 0, useful = 0, late = 0, wasted = 0;
};
constexpr size_t kPrefetchSources = 4;  // of PrefetchSource

// Since the store was opened; 64-bit counters only.
struct StoreCounters {
    uint64_t lookups = 0, hits = 0;               // misses = lookups - hits
    uint64_t demandLoads = 0, prefetchLoads = 0;  // reads that ended well, by who began them
    uint64_t warmLoads = 0;                       // experts of earlier runs, read ahead of need
    uint64_t evictions = 0;
    uint64_t failedReads = 0;  // every attempt counts
    uint64_t bytesLoaded = 0;
    uint64_t prefetchIssued = 0, prefetchUseful = 0, prefetchLate = 0, prefetchWasted = 0;  // sums
    std::array<PrefetchCounts, kPrefetchSources> bySource;
    uint64_t stallNs = 0;  // wait() blocked
    // Slots whose memory was prepared ahead of need, and the time of it. A fresh load is a demand
    // read into memory that was not: it had to wait for the system's pages as well; freshStallNs of
    // stallNs was for such.
    uint64_t slotsPrepared = 0, prepareNs = 0;
    uint64_t freshLoads = 0, freshStallNs = 0;
};
struct StoreStats : StoreCounters {
    int64_t slotCount = 0, slotsUsed = 0;  // now; more are used while pins delay a shrink
    int64_t slotsReady = 0, slotsToPrepare = 0;  // their memory is prepared, or still to be
    int64_t slotBytes = 0;  // memory of all slots now, those that are ready included
};

// What was counted between two moments; what is told of now is `after`'s.
StoreStats difference(const StoreStats& after, const StoreStats& before);
StoreCounters& operator+=(StoreCounters& to, const StoreCounters& more);

class ExpertStore {
public:
    // Opens the expert files. Errors: BadInput/IoError with the file, OutOfMemory with the size.
    static Result<std::unique_ptr<ExpertStore>> open(const ContainerInfo& info,
                                                     const StoreOptions& options,
                                                     Telemetry* telemetry);
    ~ExpertStore();

    // Looks up `experts` (distinct) of one MoE layer, counts hits, starts all missing reads. `out`
    // is cleared first and gets one ticket per expert, in order. A ticket holds its expert like a
    // pin. Prefetches of this or earlier layers that have not started are cancelled.
    void request(int64_t moeLayer, std::span<const uint16_t> experts, std::vector<Ticket>& out);
    bool ready(const Ticket& ticket) const;  // wait() would not block
    // Blocks until usable. The pin holds the slot. Each ticket is waited for or dropped, once.
    // `abort`, where not nullptr, ends the wait with Cancelled and drops the ticket once it is
    // true; whoever sets it then calls wakeWaiters(). A record that is there is given all the same.
    Result<Pin> wait(const Ticket& ticket, const std::atomic<bool>* abort = nullptr);
    void wakeWaiters();
    // Gives a ticket up (a step that ends early). A read under way is finished for the cache.
    void drop(const Ticket& ticket);

    // Prefetch candidates for a coming MoE layer, most likely first; replaces earlier ones of that
    // layer. They are read once the layer is at most `prefetchDepth` ahead. Never blocks.
    void hint(int64_t moeLayer, std::span<const uint16_t> experts);

    // Live settings; each takes effect between two reads. setCacheSize shrinks as pins allow and
    // really returns memory to the system; it never blocks a token for more than one read.
    // Returns the effective value and, when it differs, why.
    KnobState setCacheSize(int64_t expertsPerLayer);
    KnobState cacheSizeState() const;  // now, as a shrink converges
    KnobState setPolicy(CachePolicyKind policy);
    KnobState setPrefetchThreads(int64_t threads);
    KnobState setPrefetch(PrefetchSource source, int64_t depth);
    // The source in force. Prefetch that mostly comes late or is wasted, or delays other reads by
    // more than it saves, suspends itself for a while and then tries again: off meanwhile, with
    // the figures as the reason. Each change is also told as a KnobChanged event.
    KnobState prefetchState() const;
    KnobState setIoMode(IoMode mode);
    KnobState setIoDepth(int64_t reads);
    KnobState setLinkLimit(int64_t megabytesPerSecond);

    // Where slots lie: new ones are taken there, those in use are moved in the background. The
    // states tell what the kernel answers, and why it differs from what was asked for.
    void setNuma(NumaMode mode, int64_t node);
    KnobState numaModeState() const;
    KnobState numaNodeState() const;

    // Binds a prefetch thread (from 0) to a processor core; -1: any. Kept for threads that do not
    // run yet. Effective is what the kernel answers, -1 when not bound.
    KnobState setPrefetchThreadCore(int64_t thread, int64_t core);
    KnobState prefetchThreadCore(int64_t thread) const;
    std::vector<int> boundCores() const;  // that running prefetch threads hold

    // Reads these experts (moeLayer * experts + expert, most wanted first) in idle link time into
    // slots that are free; displaces nothing and counts as WarmStart. Does not wait.
    Status warm(std::vector<uint32_t> keys);
    std::vector<uint32_t> lookupCounts() const;  // (MoE layers * E) so far

    StoreStats stats() const;
    // What is wrong with the settings: a cache smaller than what one token uses. "" when nothing.
    std::string warning() const;
    // How reads are done and why: "io_uring, registered buffers, direct", "pread on threads
    // (no io_uring: Operation not permitted), buffered".
    std::string readPath() const;
    // Why a choice cannot work with these files on this machine, "" when it can.
    std::string ioModeProblem(IoMode mode) const;
    std::string numaModeProblem(NumaMode mode) const;
    void residency(std::vector<Residency>& out) const;  // (MoE layers * E)
    int64_t experts() const;                            // per layer
    int64_t moeLayers() const;

private:
    friend class Pin;
    friend struct StoreFactory;  // engine/store/store_parts.h
    explicit ExpertStore(std::unique_ptr<StoreCore> core);
    std::unique_ptr<StoreCore> m_core;
};

}  // namespace colibri
