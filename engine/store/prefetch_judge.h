// SPDX-License-Identifier: Apache-2.0
// Decides whether prefetching helps. Counts the outcome of each prefetch, and pauses prefetching
// while most prefetches are late or wasted, or while they delay demand reads by more than they
// save. A pause lasts a number of layer requests, then prefetching is tried again; each failed
// probe doubles the pause.
//
// A prefetch begins while no demand read is in flight, but one may arrive before the prefetch ends:
// the disk then serves both. The delay is how much longer that demand read took than demand reads
// without a concurrent prefetch; at most the time both were in flight. Of demand reads that begin
// together only the first counts, as they wait together. A limited link adds no delay: demand reads
// overtake prefetches on it.
//
// Pure arithmetic on the times that the caller passes (nanoseconds, never decreasing). Not
// thread-safe: the store calls it under its lock.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/knobs/knobs.h"
#include "engine/store/busy_time.h"
#include "engine/store/store_stats.h"

namespace colibri {

class PrefetchJudge {
public:
    // ---- outcomes of one prefetch: issued, then one of useful, late, wasted ----
    void issued(PrefetchSource source);
    // The expert was resident when it was requested; its read had taken `savedNs`.
    void useful(PrefetchSource source, uint64_t savedNs);
    // The expert was requested while being read. lateReadEnded() follows with the times.
    void late(PrefetchSource source);
    // The late read took `readNs` in total, `aheadNs` of them before the request.
    void lateReadEnded(uint64_t aheadNs, uint64_t readNs);
    void wasted(PrefetchSource source);
    // `experts` were predicted, but their layer is requested before they were read.
    void cancelled(PrefetchSource source, size_t experts) {
        m_counts[size_t(source)].cancelled += experts;
    }
    const std::array<PrefetchCounts, kPrefetchSources>& counts() const { return m_counts; }
    int64_t open() const { return m_open; }  // issued, no outcome yet

    // ---- the disk ----
    void diskReadBegins(uint64_t now) { m_disk.begin(now); }
    void diskReadEnds(uint64_t now) { m_disk.end(now); }
    // The caller stores this when a demand read begins and passes it to demandReadEnded().
    uint64_t diskTime(uint64_t now) const { return m_disk.at(now); }
    // A demand read that began while no other was in flight has left the disk after `tookNs`.
    void demandReadEnded(uint64_t tookNs, uint64_t diskTimeAtBegin, uint64_t now);

    // ---- pauses ----
    bool paused() const { return m_pauseLeft > 0; }
    // Why prefetching pauses: "backed off: 80 % late or wasted in the last 400"; "" if it
    // does not.
    const std::string& reason() const { return m_reason; }
    void layerRequested();  // counts down a pause
    void restart();         // after a change of settings: discards pauses and outcomes

private:
    void judge(bool bad, uint64_t savedNs);
    std::string verdict() const;
    void clearWindow();

    std::array<PrefetchCounts, kPrefetchSources> m_counts;
    int64_t m_open = 0;
    BusyTime m_disk;  // prefetches are being read from the disk
    // Demand reads without a concurrent prefetch, and their mean time.
    int64_t m_alone = 0, m_aloneNs = 0;

    int64_t m_window = kWindow;  // outcomes until the next verdict
    int64_t m_judged = 0, m_judgedBad = 0;
    // In the window: time saved by prefetches, delays of demand reads.
    int64_t m_savedNs = 0, m_delayedNs = 0;
    int64_t m_nextPause = kFirstPause, m_pauseLeft = 0;  // layer requests
    std::string m_reason;

    static constexpr int64_t kWindow = 400,
                             kProbeWindow = 100;  // outcomes; the latter after a pause
    static constexpr int64_t kFirstPause = 2048, kLongestPause = 64 * kFirstPause;
};

}  // namespace colibri
