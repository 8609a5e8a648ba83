// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/read_matcher.h"

#include <algorithm>

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

void ReadMatcher::add(int64_t layer, const Match& read) {
    m_reads[keyOf(layer, read.expert)] = read;
}

std::vector<ReadMatcher::Match> ReadMatcher::match(const Step& step,
                                                   std::span<const uint8_t> routing) {
    std::vector<Match> matches;
    eachMiss(routing, [&](int64_t expert) {
        const auto it = m_reads.find(keyOf(step.layer, expert));
        if (it == m_reads.end()) return;
        Match read = it->second;
        const bool during = read.endNs >= step.beginNs && read.endNs <= step.endNs;
        if (read.step > 0 && step.number > 0 ? read.step != step.number : !during) return;
        read.endNs = std::clamp(read.endNs, step.beginNs, step.endNs);
        matches.push_back(read);
        m_reads.erase(it);
    });
    if (m_reads.size() > kReadsToKeep) {
        std::erase_if(m_reads, [&](const auto& read) {
            return read.second.endNs < step.beginNs - kDisorderNs;
        });
    }
    std::sort(matches.begin(), matches.end(),
              [](const Match& a, const Match& b) { return a.endNs < b.endNs; });
    return matches;
}

}  // namespace colibri
