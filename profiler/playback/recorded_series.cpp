// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/recorded_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace colibri {
namespace {

constexpr double kTicksPerSecond = 1e4;
constexpr double kRecordedHole = 1;  // seconds between two samples without a gap, as in Metrics
constexpr double kNoRecordedValue = std::numeric_limits<double>::quiet_NaN();

uint32_t ticksOf(double t) {
    const double ticks = std::round(t * kTicksPerSecond);
    return uint32_t(std::clamp(ticks, 0.0, double(std::numeric_limits<uint32_t>::max())));
}

double timeOf(uint32_t ticks) {
    return double(ticks) / kTicksPerSecond;
}

}  // namespace

void RecordedSeries::add(double t, double y) {
    const bool gap = std::isnan(y);
    if (gap && (m_points.empty() || std::isnan(m_points.back().y))) return;
    uint32_t ticks = ticksOf(t);
    if (!m_points.empty()) ticks = std::max(ticks, m_points.back().ticks);
    m_points.push_back({ticks, float(y)});
    if (m_points.size() <= kMost) return;
    Points thinned;
    reduce(m_points, 0, m_points.size(), int(m_points.size() / 4), &thinned);
    m_points = std::move(thinned);
}

void RecordedSeries::finish() {
    m_overview.clear();
    if (m_points.size() > 4 * kOverview)
        reduce(m_points, 0, m_points.size(), int(kOverview), &m_overview);
}

size_t RecordedSeries::firstAt(const Points& points, double t) {
    if (t <= 0) return 0;
    const auto it =
        std::lower_bound(points.begin(), points.end(), t,
                         [](const Point& p, double at) { return timeOf(p.ticks) < at; });
    return size_t(it - points.begin());
}

double RecordedSeries::at(double t, double reach) const {
    const size_t end = firstAt(m_points, t + 0.5 / kTicksPerSecond);
    if (end == 0) return kNoRecordedValue;
    const Point& last = m_points[end - 1];
    return t - timeOf(last.ticks) <= reach ? double(last.y) : kNoRecordedValue;
}

double RecordedSeries::lastBefore(double t, double reach) const {
    size_t end = firstAt(m_points, t + 0.5 / kTicksPerSecond);
    while (end > 0 && std::isnan(m_points[end - 1].y)) --end;
    if (end == 0) return kNoRecordedValue;
    const Point& last = m_points[end - 1];
    return t - timeOf(last.ticks) <= reach ? double(last.y) : kNoRecordedValue;
}

// A gap within a column stays a gap, so that missing values never look measured.
void RecordedSeries::reduce(const Points& points, size_t from, size_t to, int columns,
                            Points* out) {
    const size_t count = to > from ? to - from : 0;
    if (columns < 1 || count <= 2 * size_t(columns)) {
        out->insert(out->end(), points.begin() + std::ptrdiff_t(from),
                    points.begin() + std::ptrdiff_t(from + count));
        return;
    }
    for (int column = 0; column < columns; ++column) {
        const size_t begin = from + count * size_t(column) / size_t(columns);
        const size_t end = from + count * size_t(column + 1) / size_t(columns);
        size_t low = to, high = to, gap = to;
        for (size_t i = begin; i < end; ++i) {
            if (std::isnan(points[i].y)) {
                gap = i;
                continue;
            }
            if (low == to || points[i].y < points[low].y) low = i;
            if (high == to || points[i].y > points[high].y) high = i;
        }
        std::array<size_t, 3> kept{low, high == low ? to : high, gap};
        std::sort(kept.begin(), kept.end());
        for (const size_t i : kept)
            if (i != to) out->push_back(points[i]);
    }
}

void RecordedSeries::reduceTimes(double lower, double upper, int columns, Points* out) const {
    const size_t from = firstAt(m_overview, lower), to = firstAt(m_overview, upper);
    const bool enough = to > from && to - from >= 2 * size_t(columns);
    const Points& points = enough ? m_overview : m_points;
    reduce(points, enough ? from : firstAt(points, lower), enough ? to : firstAt(points, upper),
           columns, out);
}

SeriesData RecordedSeries::dataOf(const Points& points) {
    SeriesData out;
    out.t.reserve(points.size());
    out.y.reserve(points.size());
    for (const Point& p : points) {
        out.t.push_back(timeOf(p.ticks));
        out.y.push_back(std::isnan(p.y) ? kNoRecordedValue : double(p.y));
    }
    return out;
}

SeriesData RecordedSeries::window(const PlotWindow& window) const {
    if (m_points.empty()) return {};
    // With the points beside the window, to which lines are drawn.
    const size_t first = firstAt(m_points, window.lower), last = firstAt(m_points, window.upper);
    const double tick = 1 / kTicksPerSecond;
    const double lower = timeOf(m_points[first - (first > 0)].ticks) - tick / 2;
    const double upper = timeOf(m_points[std::min(last, m_points.size() - 1)].ticks) + tick / 2;
    Points points;
    reduceTimes(0, lower, kCoarse, &points);
    reduceTimes(lower, upper, std::max(8, window.columns), &points);
    reduceTimes(upper, std::numeric_limits<double>::infinity(), kCoarse, &points);
    return dataOf(points);
}

SeriesData RecordedSeries::all() const {
    return dataOf(m_points);
}

void RecordedSet::beginSample(double t) {
    const bool hole = m_sample > 0 && !m_skipped && t - m_time > kRecordedHole;
    // A series that the previous sample did not have ended at the one before.
    for (size_t i = 0; i < m_series.size(); ++i)
        if (hole || m_seen[i] + 1 == m_sample) m_series[i].add(m_time, kNoRecordedValue);
    ++m_sample;
    m_time = t;
    m_skipped = false;
}

void RecordedSet::add(double t, SeriesId id, double value) {
    if (size_t(id) >= m_series.size() || !std::isfinite(t) || t < m_time) return;
    if (t > m_time || m_sample == 0) beginSample(t);
    m_seen[size_t(id)] = m_sample;
    m_series[size_t(id)].add(t, value);
}

}  // namespace colibri
