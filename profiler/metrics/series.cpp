// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/series.h"

#include <algorithm>
#include <cmath>

namespace colibri {

void Series::add(double t, double y) {
    std::deque<Point>& newest = m_levels[0];
    if (std::isnan(y) && (newest.empty() || std::isnan(newest.back().y))) return;
    newest.push_back({t, y});
    for (size_t level = 0; level < kLevels && m_levels[level].size() > m_pointsPerLevel; ++level) {
        thin(level);
    }
}

// Reduces the four oldest points of a level to their minimum and maximum, in order of time. A gap
// among them stays a gap, so that missing values never look measured.
void Series::thin(size_t level) {
    std::deque<Point>& from = m_levels[level];
    const auto end = from.begin() + 4;
    if (level + 1 < kLevels) {
        std::array<Point, 3> kept;
        size_t count = 0;
        const auto byValue = [](const Point& a, const Point& b) { return a.y < b.y; };
        const auto firstGap =
            std::find_if(from.begin(), end, [](auto& p) { return std::isnan(p.y); });
        std::array<Point, 4> values;
        const auto valuesEnd = std::copy_if(from.begin(), end, values.begin(),
                                            [](auto& p) { return !std::isnan(p.y); });
        if (valuesEnd != values.begin()) {
            const auto [low, high] = std::minmax_element(values.begin(), valuesEnd, byValue);
            kept[count++] = *low;
            if (high != low) kept[count++] = *high;
        }
        if (firstGap != end) kept[count++] = *firstGap;
        std::sort(kept.begin(), kept.begin() + std::ptrdiff_t(count),
                  [](const Point& a, const Point& b) { return a.t < b.t; });
        m_levels[level + 1].insert(m_levels[level + 1].end(), kept.begin(),
                                   kept.begin() + std::ptrdiff_t(count));
    }
    from.erase(from.begin(), end);
}

SeriesData Series::data() const {
    SeriesData data;
    data.unavailable = m_unavailable;
    size_t count = 0;
    for (const auto& level : m_levels) count += level.size();
    data.t.reserve(count);
    data.y.reserve(count);
    for (size_t level = kLevels; level-- > 0;) {
        for (const Point& point : m_levels[level]) {
            data.t.push_back(point.t);
            data.y.push_back(point.y);
        }
    }
    return data;
}

}  // namespace colibri
