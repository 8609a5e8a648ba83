// SPDX-License-Identifier: Apache-2.0
// Whether prefetching pays. Counts what became of each prefetch, and pauses prefetching while most
// prefetches come late or are wasted, or while they delay demand reads by more than they save.
// After a pause of so many layer requests it probes again; each failed probe doubles the pause.
//
// A prefetch begins while no demand read is under way, but may still be read when one comes: the
// disk then serves both. The delay is how much longer the demand read took than those that met no
// prefetch; at most the time both were under way. Of demand reads begun together the first stands
// for all, as they wait together. A limited link adds nothing: demand reads overtake on it.
//
// Pure arithmetic on times handed in (nanoseconds, never going back). Not thread-safe: the store
// calls it under its lock.
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
    // It was resident when it was asked for; its read had taken `savedNs`.
    void useful(PrefetchSource source, uint64_t savedNs);
    // It was asked for while being read. Its verdict follows with lateReadEnded().
    void late(PrefetchSource source);
    // The late read took `readNs` in all, `aheadNs` of them before it was asked for.
    void lateReadEnded(uint64_t aheadNs, uint64_t readNs);
    void wasted(PrefetchSource source);
    const std::array<PrefetchCounts, kPrefetchSources>& counts() const { return m_counts; }
    int64_t open() const { return m_open; }  // issued and no outcome yet

    // ---- the disk ----
    void diskReadBegins(uint64_t now) { m_disk.begin(now); }
    void diskReadEnds(uint64_t now) { m_disk.end(now); }
    // For demandReadEnded(): to be kept when a demand read begins.
    uint64_t diskTime(uint64_t now) const { return m_disk.at(now); }
    // A demand read that began when no other was under way has left the disk after `tookNs`.
    void demandReadEnded(uint64_t tookNs, uint64_t diskTimeAtBegin, uint64_t now);

    // ---- pauses ----
    bool paused() const { return m_pauseLeft > 0; }
    // Why prefetching pauses: "backed off: 80 % late or wasted in the last 400"; "" when it goes
    // on.
    const std::string& reason() const { return m_reason; }
    void layerRequested();  // one step of a pause
    void restart();         // the settings changed: forgets pauses and outcomes judged so far

private:
    void judge(bool bad, uint64_t savedNs);
    std::string verdict() const;
    void clearWindow();

    std::array<PrefetchCounts, kPrefetchSources> m_counts;
    int64_t m_open = 0;
    BusyTime m_disk;                     // prefetches are being read from the disk
    int64_t m_alone = 0, m_aloneNs = 0;  // demand reads that met no prefetch; their mean time

    int64_t m_window = kWindow;  // outcomes until the next verdict
    int64_t m_judged = 0, m_judgedBad = 0;
    int64_t m_savedNs = 0, m_delayedNs = 0;  // in the window: by prefetches; of demand reads
    int64_t m_nextPause = kFirstPause, m_pauseLeft = 0;  // layer requests
    std::string m_reason;

    static constexpr int64_t kWindow = 400,
                             kProbeWindow = 100;  // outcomes; the latter after a pause
    static constexpr int64_t kFirstPause = 2048, kLongestPause = 64 * kFirstPause;
};

}  // namespace colibri
