// SPDX-License-Identifier: Apache-2.0
// A bounded time series in several resolutions. The newest points are kept unchanged. When a
// level is full, its four oldest points become two points, their minimum and maximum, in the next
// level, which therefore covers twice the time. Peaks survive, and memory is constant: at 30 points
// a second the levels cover more than 30 hours; the session file has the rest.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "profiler/metrics/snapshot.h"

namespace colibri {

class Series {
public:
    static constexpr size_t kLevels = 12;
    explicit Series(size_t pointsPerLevel = 1024) : m_pointsPerLevel(pointsPerLevel) {}

    // t must not decrease. y = NaN marks a gap; repeated gaps are stored once.
    void add(double t, double y);
    void setUnavailable(std::string reason) { m_unavailable = std::move(reason); }
    SeriesData data() const;  // all levels, oldest first

private:
    struct Point {
        double t, y;
    };
    void thin(size_t level);

    size_t m_pointsPerLevel;
    std::array<std::deque<Point>, kLevels> m_levels;
    std::string m_unavailable;
};

}  // namespace colibri
