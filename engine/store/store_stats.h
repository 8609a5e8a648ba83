// SPDX-License-Identifier: Apache-2.0
// The counters of the expert store, and the options it was opened with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace colibri {

// Where every expert is, for the experts map: one byte per (MoE layer, expert).
enum class Residency : uint8_t { OnDisk, Reading, Resident };

struct PrefetchCounts {
    // Issued: reads begun. Useful: resident at first touch. Late: requested while being read.
    // Wasted: evicted or failed before use. The others are being read or are not used yet.
    // Cancelled: predicted, but not issued before the layer was requested.
    uint64_t issued = 0, useful = 0, late = 0, wasted = 0, cancelled = 0;
};
constexpr size_t kPrefetchSources = 4;  // of PrefetchSource

// Since the store was opened; 64-bit counters only.
struct StoreCounters {
    uint64_t lookups = 0, hits = 0;               // misses = lookups - hits
    uint64_t demandReads = 0, prefetchReads = 0;  // successful reads, by what started them
    uint64_t warmReads = 0;                       // experts of earlier runs, preloaded
    uint64_t evictions = 0;
    uint64_t failedReads = 0;  // every attempt counts
    uint64_t bytesRead = 0;
    uint64_t prefetchIssued = 0, prefetchUseful = 0, prefetchLate = 0, prefetchWasted = 0;  // sums
    std::array<PrefetchCounts, kPrefetchSources> bySource;
    uint64_t stallNs = 0;  // time that wait() blocked
    // The parts of stallNs besides freshStallNs: no slot or no place in the read queue, the disk,
    // the link limit, a prefetch that was still being read.
    uint64_t slotStallNs = 0, diskStallNs = 0, linkStallNs = 0, prefetchStallNs = 0;
    // Slots whose memory was prepared in advance, and the time it took. A fresh load is a demand
    // read into memory that was not prepared: it also waited for the system to allocate pages.
    // freshStallNs is the part of stallNs spent on such loads.
    uint64_t slotsPrepared = 0, prepareNs = 0;
    uint64_t freshReads = 0, freshStallNs = 0;
};
struct StoreStats : StoreCounters {
    int64_t slotCount = 0, slotsUsed = 0;  // now; slotsUsed is larger while pins delay a shrink
    int64_t slotsReady = 0, slotsToPrepare = 0;  // prepared; still to prepare
    int64_t slotBytes = 0;                       // memory of all slots now, prepared ones included
};

// The difference of two snapshots of the counters; current values are those of `after`.
StoreStats difference(const StoreStats& after, const StoreStats& before);
StoreCounters& operator+=(StoreCounters& to, const StoreCounters& more);

}  // namespace colibri
