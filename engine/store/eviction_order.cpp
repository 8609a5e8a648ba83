// SPDX-License-Identifier: Apache-2.0
#include "engine/store/eviction_order.h"

#include <utility>

namespace colibri {

using Order = ExpertEntry::Order;

EvictionOrder::EvictionOrder(const StoreShape& shape, std::vector<ExpertEntry>& entries,
                             CachePolicyKind policy)
    : m_shape(shape),
      m_entries(entries),
      m_kind(policy),
      m_policy(makePolicy(policy, shape.expertCount(), 0)) {
    m_untilLayer.reserve(entries.size());
}

void EvictionOrder::setSlots(int64_t slots) {
    m_slots = slots;
    m_policy->setSlots(slots);
}

void EvictionOrder::setPolicy(CachePolicyKind policy) {
    if (policy == m_kind) return;
    auto next = makePolicy(policy, m_shape.expertCount(), m_slots);
    next->adopt(m_policy->order());
    m_policy = std::move(next);
    m_kind = policy;
}

void EvictionOrder::use(uint32_t key) {
    ExpertEntry& e = m_entries[key];
    if (e.order == Order::Policy) {
        m_policy->touch(key);
    } else {
        m_policy->insert(key);
        e.order = Order::Policy;
    }
}

void EvictionOrder::addColdest(uint32_t key) {
    m_entries[key].order = Order::Policy;
    m_policy->insertCold(key);
}

void EvictionOrder::keepUntilLayer(uint32_t key) {
    m_entries[key].order = Order::UntilLayer;
    m_untilLayer.push_back(key);
}

void EvictionOrder::endKeep(uint32_t key) {
    if (m_entries[key].order != Order::UntilLayer) return;
    std::erase(m_untilLayer, key);
    m_entries[key].order = Order::None;
}

void EvictionOrder::releaseLayer(int64_t moeLayer) {
    std::erase_if(m_untilLayer, [&](uint32_t key) {
        if (m_shape.layerOf(key) != moeLayer) return false;
        addColdest(key);
        return true;
    });
}

void EvictionOrder::remove(uint32_t key) {
    ExpertEntry& e = m_entries[key];
    if (e.order == Order::Policy) m_policy->remove(key);
    if (e.order == Order::UntilLayer) std::erase(m_untilLayer, key);
    e.order = Order::None;
}

int64_t EvictionOrder::next() const {
    const int64_t key = m_policy->coldest(
        m_policy->size(), [&](uint32_t candidate) { return m_entries[candidate].evictable(); });
    return key < 0 && !m_untilLayer.empty() ? int64_t(m_untilLayer.front()) : key;
}

}  // namespace colibri
