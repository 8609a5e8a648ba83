// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/export/report.h"
#include "profiler/metrics/metric_table.h"

namespace colibri {
namespace {

struct PlotRow {
    const char* title;  // "": the label of its first series
    double fixedMax;
    struct {
        SeriesId id;
        int colour;
    } lines[4];
    int count;
};

constexpr PlotRow kPlotRows[] = {
    {"Decode rate", 0, {{SeriesId::TokensPerSecond, 1}}, 1},
    {"Inter-token latency (ITL)", 0, {{SeriesId::ItlP99, 2}, {SeriesId::ItlP50, 1}}, 2},
    {"Hit rate", 100, {{SeriesId::HitRate, 1}, {SeriesId::PrefetchHitRate, 3}}, 2},
    {"Stall",
     100,
     {{SeriesId::StallShare, 2}, {SeriesId::MemoryStallShare, 6}, {SeriesId::PreemptedShare, 8}},
     3},
    {"Expert load time", 0, {{SeriesId::ExpertLoadP99, 2}, {SeriesId::ExpertLoadP50, 1}}, 2},
    {"Read rate", 0, {{SeriesId::ReadRate, 4}}, 1},
    {"Prefetches",
     0,
     {{SeriesId::PrefetchIssued, 1},
      {SeriesId::PrefetchUseful, 3},
      {SeriesId::PrefetchLate, 2},
      {SeriesId::PrefetchWasted, 8}},
     4},
    {"Queue and batch", 0, {{SeriesId::QueueDepth, 6}, {SeriesId::MeanBatch, 1}}, 2},
    {"KV cache", 100, {{SeriesId::KvHeld, 1}, {SeriesId::KvKept, 3}}, 2},
    {"Memory", 0, {{SeriesId::MemoryGiB, 6}}, 1},
    {"SM utilisation",
     100,
     {{SeriesId::SmUtilisation, 6}, {SeriesId::GpuDram, 4}, {SeriesId::GpuBusy, 1}},
     3},
};

ReportPlot emptyPlot(const PlotRow& row) {
    ReportPlot plot;
    plot.title = row.title;
    plot.unit = metricRow(row.lines[0].id).unit;
    plot.fixedMax = row.fixedMax;
    for (int i = 0; i < row.count; ++i) {
        const MetricRow& metric = metricRow(row.lines[i].id);
        plot.lines.push_back({.name = metric.legend, .colour = row.lines[i].colour});
        plot.lines.back().bins.resize(ReportPlot::kPlotBins);
        if (i == 0) plot.definition = metric.definition;
    }
    return plot;
}

void addValue(ReportPlot::Line& line, double at, double value) {
    const size_t last = ReportPlot::kPlotBins - 1;
    ReportPlot::Bin& bin = line.bins[std::min(size_t(at * double(last + 1)), last)];
    const float v = float(value);
    bin.low = bin.count == 0 ? v : std::min(bin.low, v);
    bin.high = bin.count == 0 ? v : std::max(bin.high, v);
    ++bin.count;
    line.low = line.count == 0 ? value : std::min(line.low, value);
    line.high = line.count == 0 ? value : std::max(line.high, value);
    ++line.count;
}

}  // namespace

Result<std::vector<ReportPlot>> collectPlots(const SessionDb& db, ExportRun& run,
                                             const TimeRange& range) {
    COLIBRI_TRY(run.stage("Series"));
    std::vector<ReportPlot> plots;
    std::map<std::string, ReportPlot::Line*, std::less<>> lines;
    for (const PlotRow& row : kPlotRows) plots.push_back(emptyPlot(row));
    for (size_t p = 0; p < plots.size(); ++p) {
        for (size_t i = 0; i < plots[p].lines.size(); ++i) {
            lines[metricRow(kPlotRows[p].lines[i].id).label] = &plots[p].lines[i];
        }
    }
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, series, value FROM samples WHERE t >= ? AND t <= ?"));
    rows.bind(range);
    const double width = std::max(range.to - range.from, 1e-9);
    while (rows.next()) {
        COLIBRI_TRY(run.row());
        const auto line = lines.find(rows.text(1));
        if (line == lines.end() || rows.isNull(2)) continue;
        addValue(*line->second, (rows.real(0) - range.from) / width, rows.real(2));
    }
    COLIBRI_TRY(rows.status());
    return plots;
}

}  // namespace colibri
