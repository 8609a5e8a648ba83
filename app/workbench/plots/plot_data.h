// SPDX-License-Identifier: GPL-3.0-or-later
// Arithmetic of the plots on recorded series: what of a series is visible, at most two points per
// pixel column, the figures of the legend, round ticks. Plain functions, no widgets.
#pragma once

#include <QVector>
#include <vector>

#include "profiler/metrics/snapshot.h"

namespace colibri::ui {

struct VisibleStats {
    double last, min, mean, max;  // NaN: no value in the range
};
VisibleStats visibleStats(const SeriesData& data, double lower, double upper);

// Points in [lower, upper] and one on either side, thinned to the minimum and maximum of each of
// `columns` pixel columns. Gaps (NaN) stay gaps. Keys rise.
void decimate(const SeriesData& data, double lower, double upper, int columns,
              QVector<double>* keys, QVector<double>* values);

// The sample nearest to t; NaN in a gap or farther than `reach` seconds.
double valueAt(const SeriesData& data, double t, double reach = 1.0);

// Stretches of time in which the series is over the limit.
struct Stretch {
    double from, to;
};
std::vector<Stretch> overLimit(const SeriesData& data, double limit, double lower, double upper);

// Whether a plot of the one looks like a plot of the other: series only grow at their end.
bool sameSeries(const SeriesData& a, const SeriesData& b);
bool sameMarkers(const std::vector<Marker>& a, const std::vector<Marker>& b);

double niceStep(double max);                 // 3..5 ticks from 0
double timeStep(double span, double width);  // seconds between ticks
std::vector<double> ticksIn(double lower, double upper, double step);
QString clockText(double seconds, int decimals);  // "00:58", "00:58.6", "1:02:05"

}  // namespace colibri::ui
