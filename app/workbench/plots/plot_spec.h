// SPDX-License-Identifier: GPL-3.0-or-later
// The table of live plots: which series each one shows, and how. GUI thread only.
#pragma once

#include <QString>
#include <limits>
#include <vector>

#include "app/workbench/plots/plot_facts.h"

namespace colibri::ui {

struct PlotSeries {
    SeriesId id;
    int color;             // 1..8, of the palette
    int decimals = 1;      // in the legend; -1: 2, or 1 in the small unit
    double quantile = -1;  // 0..1, of the pooled column; -1: the third column is the mean
    bool steps = false;    // drawn as steps, for counts

    QString name() const { return metricRow(id).legend; }
};

struct PlotSpec {
    enum class Pool { None, Itl, ExpertLoad };
    enum class Fill { ToZero, Between, None };

    QString key;                     // "hit", in settings and file names
    std::vector<PlotSeries> series;  // of one unit; the first is drawn last, on top
    QString title, definition;       // "": those of the first series
    Pool pool = Pool::None;
    Fill fill = Fill::ToZero;
    double fixedMax = std::numeric_limits<double>::quiet_NaN();
    double leastMax = 0;        // lowest end of the y axis, so that counts have whole ticks
    bool slo = false;           // shows the ITL limit
    bool ofExperts = false;     // does not apply to a dense model
    bool secondColumn = false;  // in the second column of a large window
    QString smallUnit;  // a thousandth of the unit: used while all visible values are below 1
    QString needs;      // what the source requires, shown while it is unavailable; "": always there
    QString searchWords;  // further words that find its commands
    // Facts beside the series; null: none.
    PlotFacts (*facts)(const SessionSource& source, const Snapshot& snapshot) = nullptr;

    QString unit() const { return metricRow(series[0].id).unit; }
    // The definitions of the series: one line each if they differ.
    QString seriesDefinitions() const;
};

// The tooltip of a figure: label, unit, definition and source of its metric; `more` is appended to
// the definition.
QString metricHelp(SeriesId id, const QString& more = {});

const std::vector<PlotSpec>& plotSpecs();

}  // namespace colibri::ui
