// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/pooled_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace colibri {
namespace {

constexpr double kPooledTicks = 1e4;  // per second

}  // namespace

PooledValues::PooledValues(int64_t expected)
    : m_every(std::max<int64_t>(1, (expected + kMost - 1) / kMost)) {
    m_values.reserve(size_t(std::clamp<int64_t>(expected / m_every, 0, kMost)));
}

void PooledValues::add(double t, uint64_t ns) {
    if (m_added++ % m_every != 0) return;
    uint32_t ticks = uint32_t(std::clamp(std::round(t * kPooledTicks), 0.0,
                                         double(std::numeric_limits<uint32_t>::max())));
    if (!m_values.empty()) ticks = std::max(ticks, m_values.back().ticks);
    m_values.push_back({ticks, float(ns)});
    if (m_values.size() % kBlock != 0) return;
    Histogram& block = m_blocks.emplace_back();
    for (auto it = m_values.end() - kBlock; it != m_values.end(); ++it)
        block.add(uint64_t(it->ns), uint64_t(m_every));
}

size_t PooledValues::firstAt(double t) const {
    const double ticks = std::round(t * kPooledTicks);
    const auto it =
        std::lower_bound(m_values.begin(), m_values.end(), ticks,
                         [](const Value& v, double at) { return double(v.ticks) < at; });
    return size_t(it - m_values.begin());
}

Histogram PooledValues::between(double t0, double t1) const {
    Histogram out;
    size_t at = firstAt(t0);
    const size_t end = firstAt(t1 + 1 / kPooledTicks);
    while (at < end) {
        if (at % kBlock == 0 && at + kBlock <= end) {
            out.merge(m_blocks[at / kBlock]);
            at += kBlock;
        } else {
            out.add(uint64_t(m_values[at++].ns), uint64_t(m_every));
        }
    }
    return out;
}

int64_t PooledValues::countBetween(double t0, double t1) const {
    const size_t from = firstAt(t0), to = firstAt(t1 + 1 / kPooledTicks);
    return to > from ? int64_t(to - from) * m_every : 0;
}

}  // namespace colibri
