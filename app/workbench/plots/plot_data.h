// SPDX-License-Identifier: GPL-3.0-or-later
// Calculations of the plots on recorded series: the visible part, at most two points per pixel
// column, figures of the legend, round ticks. Plain functions without widgets; any thread. Times
// are seconds of the session.
#pragma once

#include <QVector>
#include <vector>

#include "profiler/metrics/snapshot.h"

namespace colibri::ui {

struct VisibleStats {
    double last, min, mean, max;  // NaN: no value in the range
};
VisibleStats visibleStats(const SeriesData& data, double lower, double upper);

// Points in [lower, upper] and one on either side, reduced to the minimum and maximum of each of
// `columns` pixel columns. Gaps (NaN) remain gaps. Keys rise.
void decimate(const SeriesData& data, double lower, double upper, int columns,
              QVector<double>* keys, QVector<double>* values);

// The value nearest to t; NaN in a gap or if it is farther than `reach` seconds.
double valueAt(const SeriesData& data, double t, double reach = 1.0);

// The times in which the series exceeds the limit.
struct Stretch {
    double from, to;
};
std::vector<Stretch> overLimit(const SeriesData& data, double limit, double lower, double upper);

// Whether both look the same in a plot. Series only grow at their end, so this is quick.
bool sameSeries(const SeriesData& a, const SeriesData& b);
bool sameMarkers(const std::vector<Marker>& a, const std::vector<Marker>& b);

double niceStep(double max);                 // 3..5 ticks from 0
double timeStep(double span, double width);  // seconds between ticks
std::vector<double> ticksIn(double lower, double upper, double step);
QString clockText(double seconds, int decimals);  // "00:58", "00:58.6", "1:02:05"

}  // namespace colibri::ui
