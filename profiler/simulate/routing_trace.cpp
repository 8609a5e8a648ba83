// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/routing_trace.h"

#include <algorithm>

namespace colibri {

RoutingTrace::RoutingTrace(int64_t moeLayers, int64_t experts, const KeySample& sample)
    : m_moeLayers(moeLayers), m_experts(experts), m_sample(sample) {}

void RoutingTrace::addRequest(int64_t moeLayer, std::span<const uint16_t> experts) {
    if (m_steps == 0) beginStep();
    m_lookups += experts.size();
    m_begin.push_back(m_keys.size());
    m_stepOf.push_back(uint32_t(m_steps - 1));
    for (const uint16_t expert : experts) {
        const auto key = uint32_t(moeLayer * m_experts + expert);
        if (m_sample.contains(key)) m_keys.push_back(key);
    }
    m_largest = std::max(m_largest, size_t(m_keys.size() - m_begin.back()));
    m_largestOfAll = std::max(m_largestOfAll, experts.size());
}

void RoutingTrace::addPreload(int64_t moeLayer, int64_t expert) {
    const auto key = uint32_t(moeLayer * m_experts + expert);
    if (m_sample.contains(key)) m_preloads.push_back({m_begin.size(), key});
}

std::span<const uint32_t> RoutingTrace::request(size_t index) const {
    const uint64_t end = index + 1 < m_begin.size() ? m_begin[index + 1] : m_keys.size();
    return {m_keys.data() + m_begin[index], size_t(end - m_begin[index])};
}

}  // namespace colibri
