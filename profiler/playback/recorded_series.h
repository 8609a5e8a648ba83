// SPDX-License-Identifier: Apache-2.0
// The series of a recorded session in memory, and the part of them that a plot shows. A session of
// hours has hundreds of thousands of points; a plot gets the minimum and maximum of each of its
// pixel columns, and a coarse view of the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/metrics/snapshot.h"

namespace colibri {

// The visible range of the plots, in seconds, and their width in pixel columns.
struct PlotWindow {
    double lower = 0, upper = 0;
    int columns = 1000;
    bool operator==(const PlotWindow&) const = default;
};

// One series. Memory is bounded: with more than kMost points, each four become their minimum and
// maximum, so that peaks survive. Thread-safe for reading.
class RecordedSeries {
public:
    static constexpr size_t kMost = 1 << 18;  // more than six hours at ten points a second

    // t must not decrease. NaN marks a gap; repeated gaps are stored once.
    void add(double t, double y);
    bool empty() const { return m_points.empty(); }
    size_t size() const { return m_points.size(); }
    // The last value in [t - reach, t]; NaN in a gap or if there is none.
    double at(double t, double reach) const;
    // The same, before the gap if t is in one.
    double lastBefore(double t, double reach) const;
    // The points in the window with one on either side, reduced to two for each column, and
    // kCoarse columns for each of the parts before and after it.
    SeriesData window(const PlotWindow& window) const;
    SeriesData all() const;
    // After the last point: makes windows of a long series quick.
    void finish();

private:
    struct Point {
        uint32_t ticks;  // of 0.1 ms
        float y;
    };
    using Points = std::vector<Point>;
    static constexpr int kCoarse = 400;
    static constexpr size_t kOverview = 4096;  // columns of m_overview
    // Appends points [from, to) to `out`, reduced to two for each of `columns` columns.
    static void reduce(const Points& points, size_t from, size_t to, int columns, Points* out);
    static size_t firstAt(const Points& points, double t);
    static SeriesData dataOf(const Points& points);
    // The points with a time in [lower, upper), reduced; from m_overview if it has enough of them.
    void reduceTimes(double lower, double upper, int columns, Points* out) const;

    Points m_points;
    Points m_overview;  // of a long series: two points for each of kOverview columns
};

// All series of a session, filled from the rows of its table `samples` in order.
class RecordedSet {
public:
    // The value of a series at time t. Times must not decrease. A series without a value at a time
    // at which others have one has a gap there, as has every series in a pause of the recording.
    void add(double t, SeriesId id, double value);
    // Samples were left out before the next one, so the time to it says nothing about a pause.
    void skip() { m_skipped = true; }

    const RecordedSeries& series(SeriesId id) const { return m_series[size_t(id)]; }
    void finish() {
        for (RecordedSeries& series : m_series) series.finish();
    }

private:
    void beginSample(double t);

    std::array<RecordedSeries, kSeriesCount> m_series;
    std::array<uint64_t, kSeriesCount> m_seen{};  // number of the last sample with a value
    uint64_t m_sample = 0;
    double m_time = -1;
    bool m_skipped = false;
};

}  // namespace colibri
