// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/series.h"

#include <algorithm>
#include <cmath>

namespace colibri {

void Series::add(double t, double y) {
    auto& [ts, ys, unavailable] = m_data;
    if (std::isnan(y) && (ys.empty() || std::isnan(ys.back()))) return;
    if (ts.size() >= m_capacity) thin();
    ts.push_back(t);
    ys.push_back(y);
}

// Runs of four points in the older half become their minimum and maximum, in order of time. A gap
// inside a run is kept as one gap, so that what was not measured never looks measured.
void Series::thin() {
    auto& [ts, ys, unavailable] = m_data;
    const size_t half = ts.size() / 2 / 4 * 4;
    size_t out = 0;
    for (size_t i = 0; i < half; i += 4) {
        size_t low = i, high = i;
        bool seen = false, gap = false;
        double gapTime = 0;
        for (size_t j = i; j < i + 4; ++j) {
            if (std::isnan(ys[j])) {
                gap = true;
                gapTime = ts[j];
                continue;
            }
            if (!seen || ys[j] < ys[low]) low = j;
            if (!seen || ys[j] > ys[high]) high = j;
            seen = true;
        }
        struct Point { double t, y; } points[3];
        int count = 0;
        if (seen) {
            points[count++] = {ts[std::min(low, high)], ys[std::min(low, high)]};
            if (low != high) points[count++] = {ts[std::max(low, high)], ys[std::max(low, high)]};
        }
        if (gap) {
            int at = 0;
            while (at < count && points[at].t <= gapTime) ++at;
            for (int j = count; j > at; --j) points[j] = points[j - 1];
            points[at] = {gapTime, std::nan("")};
            ++count;
        }
        for (int j = 0; j < count; ++j) {
            ts[out] = points[j].t;
            ys[out++] = points[j].y;
        }
    }
    ts.erase(ts.begin() + std::ptrdiff_t(out), ts.begin() + std::ptrdiff_t(half));
    ys.erase(ys.begin() + std::ptrdiff_t(out), ys.begin() + std::ptrdiff_t(half));
}

}  // namespace colibri
