// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/prefetch_replay.h"

#include <algorithm>
#include <utility>

namespace colibri {

PrefetchReplay::PrefetchReplay(CachePolicyKind policy, PrefetchSource source, int64_t moeLayers,
                               int64_t experts, int64_t slotCount)
    : m_policy(makePolicy(policy, moeLayers * experts, slotCount)),
      m_steps(moeLayers),
      m_source(source),
      m_experts(experts),
      m_slotCount(std::max<int64_t>(1, slotCount)),
      m_held(size_t(moeLayers * experts)),
      m_waits(m_held.size()),
      m_unused(m_held.size()) {}

int64_t PrefetchReplay::request(int64_t moeLayer, std::span<const uint32_t> keys) {
    const uint64_t before = m_misses;
    m_steps.request(moeLayer);
    m_judge.layerRequested();
    m_lookups += keys.size();
    // More experts than slots: in turns, without the order that PolicyReplay follows.
    for (size_t from = 0; from < keys.size(); from += size_t(m_slotCount)) {
        const auto some = keys.subspan(from, std::min(keys.size() - from, size_t(m_slotCount)));
        find(some);
        if (from == 0) releaseLayer(moeLayer);
        for (const uint32_t key : some) {
            if (m_policy->contains(key)) {
                m_policy->touch(key);
            } else {
                giveSlot(key);
            }
        }
        for (const uint32_t key : some) m_held[key] = 0;
    }
    return int64_t(m_misses - before);
}

// Counts hits and misses. A prefetched expert leaves its place outside the policy, and takes one
// inside when it is used.
void PrefetchReplay::find(std::span<const uint32_t> keys) {
    for (const uint32_t key : keys) {
        m_held[key] = 1;
        m_misses += !contains(key);
        if (!m_unused[key]) continue;
        m_unused[key] = 0;
        ++m_prefetched;
        m_judge.useful(m_source, m_readNs);
    }
}

void PrefetchReplay::releaseLayer(int64_t moeLayer) {
    std::erase_if(m_untilLayer, [&](uint32_t key) {
        if (layerOf(key) != moeLayer) return false;
        m_waits[key] = 0;
        m_policy->insertCold(key);
        return true;
    });
}

void PrefetchReplay::giveSlot(uint32_t key) {
    if (used() >= m_slotCount) {
        const int64_t victim = m_policy->coldest(
            m_policy->size(), [&](uint32_t candidate) { return m_held[candidate] == 0; });
        if (victim >= 0) {
            evict(uint32_t(victim));
        } else if (!m_untilLayer.empty()) {
            evict(m_untilLayer.front());
        }
    }
    m_policy->insert(key);
}

void PrefetchReplay::evict(uint32_t key) {
    if (std::exchange(m_unused[key], 0)) m_judge.wasted(m_source);
    if (std::exchange(m_waits[key], 0)) {
        std::erase(m_untilLayer, key);
    } else {
        m_policy->remove(key);
    }
}

bool PrefetchReplay::slotForPrefetch(int64_t moeLayer) {
    if (used() < m_slotCount) return true;
    const int64_t target = m_steps.distance(moeLayer);
    const int64_t colderHalf = m_policy->size() - (m_slotCount + 1) / 2;
    const int64_t victim = m_policy->coldest(colderHalf, [&](uint32_t key) {
        if (m_unused[key]) return true;
        const int64_t layer = layerOf(key);
        return layer != m_steps.current() && m_steps.distance(layer) > target;
    });
    if (victim >= 0) evict(uint32_t(victim));
    return victim >= 0;
}

int64_t PrefetchReplay::prefetch(std::span<const uint32_t> hints, int64_t reads, uint64_t readNs) {
    m_readNs = readNs;
    int64_t done = 0;
    if (m_judge.paused()) return done;
    for (const uint32_t key : hints) {
        if (done >= reads || m_judge.open() >= m_slotCount / 4) break;
        if (contains(key)) continue;
        if (!slotForPrefetch(layerOf(key))) break;
        m_waits[key] = m_unused[key] = 1;
        m_untilLayer.push_back(key);
        m_judge.issued(m_source);
        ++m_reads;
        ++done;
    }
    return done;
}

void PrefetchReplay::late(uint64_t aheadNs) {
    if (m_judge.paused()) return;
    m_judge.issued(m_source);
    m_judge.late(m_source);
    m_judge.lateReadEnded(aheadNs, m_readNs);
}

}  // namespace colibri
