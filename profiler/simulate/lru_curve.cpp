// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/lru_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace colibri {

LruCurve::LruCurve(int64_t moeLayers, int64_t experts, const KeySample& sample)
    : m_sample(sample),
      m_moeLayers(moeLayers),
      m_experts(experts),
      m_stack(size_t(moeLayers * experts)),
      m_hits(size_t(sample.all() ? 1 : KeySample::kGroups),
             std::vector<uint64_t>(size_t(experts) + 1)) {}

void LruCurve::preload(uint32_t key) {
    if (m_sample.contains(key)) m_stack.addColdest(key);
}

std::span<const uint32_t> LruCurve::add(std::span<const uint32_t> keys) {
    m_distances.clear();
    for (const uint32_t key : keys) {
        ++m_lookups;
        if (!m_sample.contains(key)) {
            m_distances.push_back(kNotSampled);
            continue;
        }
        const uint32_t distance = m_stack.distance(key);
        m_distances.push_back(distance);
        const int64_t size = std::min(sizeThatHits(distance), m_experts + 1);
        ++m_hits[size_t(m_sample.group(key))][size_t(size) - 1];
    }
    for (const uint32_t key : keys)
        if (m_sample.contains(key)) m_stack.use(key);
    return m_distances;
}

int64_t LruCurve::sizeThatHits(uint32_t distance) const {
    if (distance == StackDistances::kNever) return m_experts + 1;
    if (m_sample.all()) return distance / m_moeLayers + 1;
    return int64_t(double(distance) / m_sample.rate() / double(m_moeLayers)) + 1;
}

// From the misses at one cache size, and the lookups, of each group of sampled keys.
LruCurve::Estimate LruCurve::estimate(const std::vector<double>& misses,
                                      const std::vector<double>& lookups) const {
    const auto groups = double(misses.size());
    const double expected = double(m_lookups) * m_sample.rate();
    const double missed = std::accumulate(misses.begin(), misses.end(), 0.0);
    if (m_sample.all()) return {1 - missed / expected, 0};
    const double seen = std::accumulate(lookups.begin(), lookups.end(), 0.0);
    double xx = 0, xy = 0, squares = 0;
    for (size_t g = 0; g < misses.size(); ++g) {
        const double x = lookups[g] - seen / groups;
        xx += x * x;
        xy += x * (misses[g] - missed / groups);
    }
    const double slope = xx > 0 ? std::clamp(xy / xx, 0.0, 1.0) : 0;
    for (size_t g = 0; g < misses.size(); ++g) {
        const double off = misses[g] - missed / groups - slope * (lookups[g] - seen / groups);
        squares += off * off;
    }
    const double finite = 1 - m_sample.rate();  // the correction for a finite population
    return {std::clamp(1 - (missed + slope * (expected - seen)) / expected, 0.0, 1.0),
            groups * squares / (groups - 2) * finite / (expected * expected)};
}

std::vector<LruCurve::Estimate> LruCurve::estimates() const {
    std::vector<double> lookups, misses(m_hits.size());
    for (const std::vector<uint64_t>& hits : m_hits)
        lookups.push_back(double(std::accumulate(hits.begin(), hits.end(), uint64_t(0))));
    std::vector<Estimate> out(size_t(m_experts), Estimate{std::nan(""), 0});
    for (size_t size = size_t(m_experts); size >= 1 && m_lookups > 0; --size) {
        for (size_t g = 0; g < m_hits.size(); ++g) misses[g] += double(m_hits[g][size]);
        out[size - 1] = estimate(misses, lookups);
    }
    return out;
}

std::vector<double> LruCurve::hitRates() const {
    std::vector<double> out;
    for (const Estimate& estimate : estimates()) out.push_back(estimate.hitRate);
    return out;
}

// Two independent parts: which keys are in the sample, and the scaled distances. Of n keys, n *
// rate are counted, with a variance of n * rate * (1 - rate), which shifts the curve along the
// cache size.
double LruCurve::samplingError() const {
    if (m_sample.all() || m_lookups == 0) return 0;
    const std::vector<Estimate> curve = estimates();
    const double rate = m_sample.rate();
    double worst = 0;
    for (size_t i = 0; i < curve.size(); ++i) {
        const size_t below = i > 0 ? i - 1 : 0, above = std::min(i + 1, curve.size() - 1);
        const double slope = (curve[above].hitRate - curve[below].hitRate) /
                             double(std::max<size_t>(1, above - below));
        const double slotCount = double(i + 1) * double(m_moeLayers);
        const double shift = std::sqrt(slotCount * (1 - rate) / rate) / double(m_moeLayers);
        worst = std::max(worst, curve[i].variance + slope * slope * shift * shift);
    }
    return std::min(1.0, 3 * std::sqrt(worst));
}

}  // namespace colibri
