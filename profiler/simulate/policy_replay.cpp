// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/policy_replay.h"

#include <algorithm>

namespace colibri {

PolicyReplay::PolicyReplay(CachePolicyKind policy, int64_t keys, int64_t slotCount)
    : m_policy(makePolicy(policy, keys, slotCount)),
      m_slotCount(std::max<int64_t>(1, slotCount)),
      m_held(size_t(keys)) {}

void PolicyReplay::preload(uint32_t key) {
    if (m_policy->size() < m_slotCount && !m_policy->contains(key)) m_policy->insertCold(key);
}

int64_t PolicyReplay::request(std::span<const uint32_t> keys) {
    int64_t misses = 0;
    if (int64_t(keys.size()) > m_slotCount) {
        misses = askInTurns(keys);
    } else {
        misses = lookUp(keys);
        release(keys);
    }
    m_lookups += keys.size();
    m_misses += uint64_t(misses);
    return misses;
}

// Looks all keys up and holds them, then gives slots. REQUIRES: that many slots are not held.
int64_t PolicyReplay::lookUp(std::span<const uint32_t> keys) {
    int64_t misses = 0;
    for (const uint32_t key : keys) {
        misses += !m_policy->contains(key);
        m_held[key] = 1;
    }
    for (const uint32_t key : keys) {
        if (m_policy->contains(key)) {
            m_policy->touch(key);
        } else {
            giveSlot(key);
        }
    }
    return misses;
}

void PolicyReplay::giveSlot(uint32_t key) {
    if (m_policy->size() >= m_slotCount) {
        const int64_t victim = m_policy->coldest(
            m_policy->size(), [&](uint32_t candidate) { return m_held[candidate] == 0; });
        if (victim >= 0) m_policy->remove(uint32_t(victim));
    }
    m_policy->insert(key);
}

void PolicyReplay::release(std::span<const uint32_t> keys) {
    for (const uint32_t key : keys) m_held[key] = 0;
}

// As many experts as there are slots are requested or computed at any time. The resident ones are
// computed at once, the others one after the other.
int64_t PolicyReplay::askInTurns(std::span<const uint32_t> keys) {
    m_order.assign(keys.begin(), keys.end());
    const auto firstMiss = std::stable_partition(
        m_order.begin(), m_order.end(), [&](uint32_t key) { return m_policy->contains(key); });
    const std::span<const uint32_t> order(m_order);
    const size_t resident = size_t(firstMiss - m_order.begin());
    size_t requested = size_t(m_slotCount), released = 0;
    int64_t misses = lookUp(order.first(requested));
    while (requested < order.size()) {
        const size_t done = released == 0 && resident > 0 ? resident : 1;
        release(order.subspan(released, done));
        released += done;
        const size_t next = std::min(done, order.size() - requested);
        misses += lookUp(order.subspan(requested, next));
        requested += next;
    }
    release(order.subspan(released));
    return misses;
}

}  // namespace colibri
