// SPDX-License-Identifier: Apache-2.0
// What the expert store counts, and what it was opened with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace colibri {

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
    // Slots whose memory was prepared ahead of need, and the time it took. A fresh load is a demand
    // read into memory that was not prepared: it waited for the system's pages as well.
    // freshStallNs is the part of stallNs spent on such loads.
    uint64_t slotsPrepared = 0, prepareNs = 0;
    uint64_t freshLoads = 0, freshStallNs = 0;
};
struct StoreStats : StoreCounters {
    int64_t slotCount = 0, slotsUsed = 0;        // now; more are used while pins delay a shrink
    int64_t slotsReady = 0, slotsToPrepare = 0;  // their memory is prepared, or still to be
    int64_t slotBytes = 0;                       // memory of all slots now, prepared ones included
};

// What was counted between two moments; the values of the present are those of `after`.
StoreStats difference(const StoreStats& after, const StoreStats& before);
StoreCounters& operator+=(StoreCounters& to, const StoreCounters& more);

}  // namespace colibri
