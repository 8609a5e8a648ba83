// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/read_matcher.h"

#include <algorithm>
#include <cmath>

namespace colibri {
namespace {

// Events of several threads are drained together 30 times a second: an event can be stored before
// an older one of another thread, but by less than this.
constexpr int64_t kDisorderNs = 200'000'000;
constexpr size_t kReadsToKeep = 1 << 14;
constexpr unsigned kFirst = 1, kHit = 2;  // bits of a routing entry

uint64_t keyOf(int64_t layer, int64_t expert) {
    return uint64_t(layer) << 32 | uint64_t(expert);
}

// Calls `take` for each expert that the step looked up and did not find in memory.
template <class Take>
void eachMiss(std::span<const uint8_t> routing, Take take) {
    constexpr size_t kHead = 8 + 4 + 1, kEntry = 2 + 1;  // see session-file.md
    while (routing.size() >= kHead) {
        const size_t count = routing[kHead - 1];
        if (routing.size() < kHead + count * kEntry) return;
        for (size_t i = 0; i < count; ++i) {
            const uint8_t* entry = routing.data() + kHead + i * kEntry;
            if ((entry[2] & (kFirst | kHit)) == kFirst) take(int64_t(entry[0] | entry[1] << 8));
        }
        routing = routing.subspan(kHead + count * kEntry);
    }
}

}  // namespace

Status ReadMatcher::prepare(const SessionDb& db, const TimeRange& range) {
    COLIBRI_TRY(
        m_rows.prepare(db,
                       "SELECT rowid, t, layer, expert FROM loads WHERE need_ns > 0 AND failed = 0 "
                       "AND t >= ? AND t - (queue_ns + read_ns) * 1e-9 <= ? ORDER BY rowid"));
    m_rows.bind(range);
    return {};
}

Status ReadMatcher::advance(int64_t untilNs) {
    while (m_more && m_newestNs < untilNs) {
        m_more = m_rows.next();
        if (!m_more) return m_rows.status();
        const int64_t endNs = std::llround(m_rows.real(1) * 1e9);
        m_newestNs = std::max(m_newestNs, endNs);
        const int64_t expert = m_rows.integer(3);
        m_reads[keyOf(m_rows.integer(2), expert)] = {uint64_t(m_rows.integer(0)), expert, endNs};
    }
    return {};
}

Result<std::vector<ReadMatcher::Match>> ReadMatcher::match(int64_t layer, int64_t beginNs,
                                                           int64_t endNs,
                                                           std::span<const uint8_t> routing) {
    // An expert can be read again within the time of disorder only if it was evicted in between.
    COLIBRI_TRY(advance(endNs));
    std::vector<Match> matches;
    eachMiss(routing, [&](int64_t expert) {
        const auto it = m_reads.find(keyOf(layer, expert));
        if (it == m_reads.end()) return;
        if (it->second.endNs >= beginNs && it->second.endNs <= endNs) {
            matches.push_back(it->second);
            m_reads.erase(it);
        }
    });
    if (m_reads.size() > kReadsToKeep) {
        std::erase_if(m_reads,
                      [&](const auto& read) { return read.second.endNs < beginNs - kDisorderNs; });
    }
    std::sort(matches.begin(), matches.end(),
              [](const Match& a, const Match& b) { return a.endNs < b.endNs; });
    return matches;
}

}  // namespace colibri
