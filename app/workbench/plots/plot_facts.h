// SPDX-License-Identifier: GPL-3.0-or-later
// What a session knows beside the series of a plot: a bound the figures are held against, tags of
// its state, and why there is nothing to see. Plain functions; a row of plotSpecs() names its own.
#pragma once

#include <QString>
#include <limits>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

struct PlotFacts {
    double bound = std::numeric_limits<double>::quiet_NaN();  // in the plot's unit; NaN: none
    QString boundLabel;
    bool boundHard = false;  // passing it is an error; else what is possible
    std::vector<TagLook> tags;
    QString note;         // joins the definition
    QString emptyReason;  // why nothing can be recorded now
    QString detail;       // joins the tooltip, a line or more
};

// The limit of memory for this process.
PlotFacts memoryFacts(const SessionSource& source, const Snapshot& snapshot);
// How fast experts could be read: as measured on this machine, or the link limit where it is lower.
PlotFacts readFacts(const SessionSource& source, const Snapshot& snapshot);
// Source, share of useful reads, back-off; totals by source.
PlotFacts prefetchFacts(const SessionSource& source, const Snapshot& snapshot);

}  // namespace colibri::ui
