// SPDX-License-Identifier: Apache-2.0
#include "engine/store/prefetch_judge.h"

#include <algorithm>
#include <new>

#include "engine/base/format.h"

namespace colibri {

namespace {

constexpr int64_t kWorstPercent = 75;  // of outcomes that are late or wasted
constexpr int64_t kAloneReads = 64;    // number of reads in the mean time of a read alone

}  // namespace

void PrefetchJudge::issued(PrefetchSource source) {
    ++m_counts[size_t(source)].issued;
    ++m_open;
}

void PrefetchJudge::useful(PrefetchSource source, uint64_t savedNs) {
    ++m_counts[size_t(source)].useful;
    --m_open;
    judge(false, savedNs);
}

void PrefetchJudge::late(PrefetchSource source) {
    ++m_counts[size_t(source)].late;
    --m_open;
}

// A prefetch that was requested before half of its read was done saved little.
void PrefetchJudge::lateReadEnded(uint64_t aheadNs, uint64_t readNs) {
    judge(2 * aheadNs < readNs, aheadNs);
}

void PrefetchJudge::wasted(PrefetchSource source) {
    ++m_counts[size_t(source)].wasted;
    --m_open;
    judge(true, 0);
}

void PrefetchJudge::demandReadEnded(uint64_t tookNs, uint64_t diskTimeAtBegin, uint64_t now) {
    const auto took = int64_t(tookNs);
    const auto shared = int64_t(m_disk.at(now) - diskTimeAtBegin);
    if (shared == 0) {
        m_alone = std::min(m_alone + 1, kAloneReads);
        m_aloneNs += (took - m_aloneNs) / m_alone;
    } else if (m_alone > 0) {
        m_delayedNs += std::clamp(took - m_aloneNs, -shared, shared);
    }
}

std::string PrefetchJudge::verdict() const {
    const std::string window = " in the last " + formatCount(m_judged);
    if (m_judgedBad * 100 >= m_judged * kWorstPercent) {
        return "backed off: " + formatPercent(double(m_judgedBad) / double(m_judged), 0) +
               " late or wasted" + window;
    }
    if (m_delayedNs <= m_savedNs) return {};
    return "backed off: delayed other reads by " + formatMs(double(m_delayedNs) * 1e-6) +
           " and saved " + formatMs(double(m_savedNs) * 1e-6) + window;
}

void PrefetchJudge::judge(bool bad, uint64_t savedNs) {
    if (paused()) return;  // the prefetch began before the pause
    ++m_judged;
    m_judgedBad += bad;
    m_savedNs += int64_t(savedNs);
    if (m_judged < m_window) return;
    try {
        m_reason = verdict();
    } catch (const std::bad_alloc&) {  // the next outcome is judged instead
        return;
    }
    if (m_reason.empty()) {
        m_window = kWindow;
        m_nextPause = kFirstPause;
        for (int64_t* sum : {&m_judged, &m_judgedBad, &m_savedNs, &m_delayedNs}) {
            *sum /= 2;  // the window slides by halves
        }
        return;
    }
    m_pauseLeft = m_nextPause;
    m_nextPause = std::min(2 * m_nextPause, kLongestPause);
}

void PrefetchJudge::layerRequested() {
    if (m_pauseLeft == 0 || --m_pauseLeft > 0) return;
    m_window = kProbeWindow;
    clearWindow();
}

void PrefetchJudge::restart() {
    m_window = kWindow;
    m_nextPause = kFirstPause;
    m_pauseLeft = 0;
    clearWindow();
}

void PrefetchJudge::clearWindow() {
    m_judged = m_judgedBad = m_savedNs = m_delayedNs = 0;
    m_reason.clear();
}

}  // namespace colibri
