// SPDX-License-Identifier: GPL-3.0-or-later
// Facts that a plot shows beside its series: a bound, tags for the state of its source, and why the
// plot is empty. Plain functions; each row of plotSpecs() names the one it needs. GUI thread only.
#pragma once

#include <QString>
#include <limits>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

// A horizontal line across a plot.
struct PlotBound {
    double value = std::numeric_limits<double>::quiet_NaN();  // in the unit of the plot; NaN: none
    QString label;
    bool hard =
        false;  // a limit: exceeding it is an error. Else an upper bound of what is possible
};

struct PlotFacts {
    PlotBound bound;
    std::vector<TagLook> tags;
    QString note;         // appended to the definition
    QString emptyReason;  // why nothing can be recorded now; "" otherwise
    QString detail;       // appended to the tooltip, one or more lines
};

// The memory limit of this process.
PlotFacts memoryFacts(const SessionSource& source, const Snapshot& snapshot);
// The highest possible read rate: the measured one, or the link limit if that is lower.
PlotFacts readFacts(const SessionSource& source, const Snapshot& snapshot);
// Prefetch source, share of useful prefetches, back-off, and totals for each source.
PlotFacts prefetchFacts(const SessionSource& source, const Snapshot& snapshot);

}  // namespace colibri::ui
