// SPDX-License-Identifier: GPL-3.0-or-later
// The live plots: which series stand in which plot, and how. A plot is a row of this table.
#pragma once

#include <QString>
#include <limits>
#include <vector>

#include "app/workbench/plots/plot_facts.h"

namespace colibri::ui {

struct PlotSeries {
    SeriesId id;
    int color;             // 1..8, of the palette
    int decimals = 1;      // in the legend; -1: 2, or 3 under one unit
    double quantile = -1;  // of the pooled column; -1: the third column is the mean
    bool steps = false;    // drawn as steps: a count

    QString name() const { return metricRow(id).legend; }
};

struct PlotSpec {
    enum class Pool { None, Itl, ExpertLoad };
    enum class Fill { ToZero, Between, None };

    QString key;                     // "hit", in settings and file names
    std::vector<PlotSeries> series;  // of one unit; the first is drawn last, on top
    // Empty: those of the first series.
    QString title, definition;
    Pool pool = Pool::None;
    Fill fill = Fill::ToZero;
    double fixedMax = std::numeric_limits<double>::quiet_NaN();
    double leastMax = 0;        // the y axis reaches at least here: counts want whole ticks
    bool slo = false;           // shows the ITL limit
    bool ofExperts = false;     // says nothing of a model without experts
    bool secondColumn = false;  // stands in the second column of a wide window
    QString smallUnit;  // a thousandth of `unit`: used while all that is seen is under one unit
    QString needs;      // shown beside the title while its source is n/a
    // What the session knows beside the series; null: nothing.
    PlotFacts (*facts)(const SessionSource& source, const Snapshot& snapshot) = nullptr;

    QString unit() const { return metricRow(series[0].id).unit; }
    // What each series measures, a line each where they differ.
    QString seriesDefinitions() const;
};

// The tooltip of a figure: label, unit, definition and source of its metric, and what is to be said
// beside.
QString metricHelp(SeriesId id, const QString& more = {});

const std::vector<PlotSpec>& plotSpecs();

}  // namespace colibri::ui
