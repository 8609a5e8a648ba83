// SPDX-License-Identifier: Apache-2.0
// The report of a session: facts, figures, tables and plots, first collected and then written as
// HTML or Markdown. All texts are plain; the writers escape them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profiler/export/export_file.h"
#include "profiler/export/export_run.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct ReportFigure {
    std::string label, value;  // value: with unit, or "n/a"
    std::string note;          // number of values, or what was counted
};

struct ReportTable {
    struct Column {
        std::string name;
        bool number = false;  // right-aligned
    };
    std::string title, note;
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows;
    std::string empty;  // shown if there are no rows
};

// A plot over the time of the report. A series is thinned to the smallest and largest value of each
// of kPlotBins intervals, so that peaks remain.
struct ReportPlot {
    static constexpr size_t kPlotBins = 560;
    struct Bin {
        float low = 0, high = 0;
        uint32_t count = 0;  // 0: no value
    };
    struct Line {
        std::string name;
        int colour = 1;  // 1..8: a series colour
        std::vector<Bin> bins;
        double low = 0, high = 0;  // over all bins; only if `count` > 0
        uint64_t count = 0;
    };
    std::string title, unit, definition;
    double fixedMax = 0;  // 0: from the values
    std::vector<Line> lines;
};

struct ReportMarker {
    double t = 0;
    std::string label;
};

struct Report {
    std::string title;
    TimeRange range{0, 0};
    std::vector<std::pair<std::string, std::string>> facts;
    std::vector<ReportFigure> figures;
    std::vector<ReportPlot> plots;
    std::vector<ReportMarker> changes;  // of knobs, in the range
    std::vector<ReportTable> tables;
};

// Scans the rows of the range. Memory does not grow with the session.
Result<Report> collectReport(const SessionDb& db, ExportRun& run, const TimeRange& range);
// The plots of a report; a part of collectReport().
Result<std::vector<ReportPlot>> collectPlots(const SessionDb& db, ExportRun& run,
                                             const TimeRange& range);

// One page without references to other files; light or dark as the reader's system.
std::string reportHtml(const Report& report);
std::string reportMarkdown(const Report& report);

// The plot as an SVG element that takes its colours from the style of the page.
std::string plotSvg(const ReportPlot& plot, const TimeRange& range,
                    const std::vector<ReportMarker>& changes);
std::string htmlText(std::string_view text);  // escaped

}  // namespace colibri
