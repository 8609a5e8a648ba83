// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/lru_simulation.h"

#include <algorithm>
#include <functional>

namespace colibri {

LruSimulation::LruSimulation(int64_t moeLayers, int64_t experts, const KeySample& sample,
                             const DecodeModel* decode, size_t largestRequest)
    : m_sample(sample),
      m_decode(decode),
      m_experts(experts),
      m_curve(moeLayers, experts, sample),
      m_costNs(decode ? decode->blocks() * size_t(experts + 2) : 0) {
    for (int64_t size = 1; size <= experts; ++size) {
        const int64_t slotCount = simulatedSlots(size, moeLayers, sample);
        if (slotCount >= int64_t(largestRequest)) break;
        m_small.push_back(
            {std::make_unique<PolicyReplay>(CachePolicyKind::Lru, moeLayers * experts, slotCount),
             std::vector<double>(decode ? decode->blocks() : 0)});
    }
}

void LruSimulation::preload(uint32_t key) {
    m_curve.preload(key);
    for (Small& small : m_small)
        if (m_sample.contains(key)) small.replay->preload(key);
}

void LruSimulation::add(uint32_t step, std::span<const uint32_t> keys) {
    addCosts(step, m_curve.add(keys));
    if (m_small.empty()) return;
    m_sampledKeys.clear();
    for (const uint32_t key : keys)
        if (m_sample.contains(key)) m_sampledKeys.push_back(key);
    for (Small& small : m_small) {
        const int64_t misses = small.replay->request(m_sampledKeys);
        if (m_decode) m_decode->addCost(step, misses, m_sample.rate(), small.costNs);
    }
}

// A lookup that hits from size s on is a miss in all smaller caches. In a request whose distances
// are d1 >= d2 >= ..., the k-th miss is that of dk, and adds cost(k) - cost(k - 1).
void LruSimulation::addCosts(uint32_t step, std::span<const uint32_t> distances) {
    if (m_decode == nullptr || m_decode->weightOf(step) == 0) return;
    m_sorted.clear();
    for (const uint32_t distance : distances)
        if (distance != LruCurve::kNotSampled) m_sorted.push_back(distance);
    std::sort(m_sorted.begin(), m_sorted.end(), std::greater<>());
    double* const costs = &m_costNs[m_decode->blockOf(step) * size_t(m_experts + 2)];
    double before = 0;
    for (size_t k = 0; k < m_sorted.size(); ++k) {
        const double cost = m_decode->costOf(int64_t(k) + 1, m_sample.rate());
        const int64_t hitsFrom = std::min(m_curve.sizeThatHits(m_sorted[k]), m_experts + 1);
        costs[size_t(hitsFrom)] += m_decode->weightOf(step) * (cost - before);
        before = cost;
    }
}

std::vector<CurvePoint> LruSimulation::points() const {
    const std::vector<double> hitRates = m_curve.hitRates();
    std::vector<CurvePoint> out(hitRates.size());
    std::vector<double> costNs(m_decode ? m_decode->blocks() : 0);
    for (size_t size = out.size(); size >= 1; --size) {
        for (size_t b = 0; b < costNs.size(); ++b)
            costNs[b] += m_costNs[b * size_t(m_experts + 2) + size + 1];
        const bool small = size <= m_small.size();
        const std::vector<double>& costs = small ? m_small[size - 1].costNs : costNs;
        CurvePoint& point = out[size - 1];
        point.cacheSize = int64_t(size);
        point.hitRate = hitRates[size - 1];
        if (small && m_curve.lookups() > 0)
            point.hitRate = std::clamp(1 - double(m_small[size - 1].replay->misses()) /
                                               (double(m_curve.lookups()) * m_sample.rate()),
                                       0.0, 1.0);
        point.decode = rateOrUnknown(m_decode, costs);
    }
    return out;
}

}  // namespace colibri
