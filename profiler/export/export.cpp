// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/export.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/format.h"
#include "profiler/export/chrome_sink.h"
#include "profiler/export/export_file.h"
#include "profiler/export/export_run.h"
#include "profiler/export/perfetto_sink.h"
#include "profiler/export/report.h"
#include "profiler/export/series_writer.h"
#include "profiler/export/trace_writer.h"
#include "profiler/metrics/metric_table.h"
#include "profiler/session/session_db.h"

namespace colibri {
namespace {

constexpr std::array<const char*, 6> kFormatNames{"perfetto", "chrome", "csv",
                                                  "json",     "html",   "md"};

// Bytes of one row in each format, as measured, for estimates.
struct TableSize {
    const char* table;
    double perfetto, chrome, csv, json;
};
constexpr TableSize kTableSizes[] = {
    {"requests", 550, 1100, 0, 0}, {"tokens", 110, 240, 0, 0},   {"layer_steps", 260, 560, 0, 0},
    {"loads", 160, 480, 0, 0},     {"knobs", 110, 200, 0, 0},    {"marks", 110, 200, 0, 0},
    {"steps", 150, 500, 0, 0},     {"evictions", 40, 140, 0, 0}, {"samples", 33, 100, 9, 12},
};
constexpr int64_t kHeadBytes = 2'000;
constexpr int64_t kReportBytes = 150'000, kMarkdownBytes = 8'000;

double bytesPerRow(const TableSize& size, ExportFormat format) {
    switch (format) {
        case ExportFormat::Perfetto:
            return size.perfetto;
        case ExportFormat::Chrome:
            return size.chrome;
        case ExportFormat::Csv:
            return size.csv;
        case ExportFormat::Json:
            return size.json;
        case ExportFormat::Html:
        case ExportFormat::Markdown:
            return 0;
    }
    return 0;
}

bool isReport(ExportFormat format) {
    return format == ExportFormat::Html || format == ExportFormat::Markdown;
}

std::string secondsText(double seconds) {
    return formatFixed(seconds, 2);
}

Status checkOptions(const ExportOptions& options) {
    if (std::isnan(options.from) || std::isnan(options.to) || options.from > options.to) {
        return {Code::InvalidArgument,
                "the range from " + secondsText(options.from) + " s to " + secondsText(options.to) +
                    " s is empty",
                "Give the start before the end"};
    }
    if (isReport(options.format) && !options.series.empty()) {
        return {Code::InvalidArgument, "a report has fixed series",
                "Leave the series out, or export them as CSV or JSON"};
    }
    for (size_t i = 0; i < options.series.size(); ++i) {
        const std::string& key = options.series[i];
        if (std::find(options.series.begin(), options.series.begin() + i, key) !=
            options.series.begin() + i) {
            return {Code::InvalidArgument, "the series " + key + " is given twice"};
        }
        if (findMetric(key)) continue;
        std::string keys;
        for (int m = 0; m < kSeriesCount; ++m) {
            keys += (m ? ", " : "") + std::string(metricRow(SeriesId(m)).key);
        }
        return {Code::InvalidArgument, "\"" + key + "\" is not a series", "Use " + keys};
    }
    return {};
}

// Opens the session and limits the range to it.
Result<SessionDb> openFor(const ExportOptions& options, TimeRange& range) {
    COLIBRI_TRY(checkOptions(options));
    auto db = SessionDb::open(options.session);
    if (!db) return db.status();
    int64_t rows = 0;
    for (const TableSize& size : kTableSizes) rows += db->rows(size.table);
    if (rows == 0) {
        return Status(Code::BadInput, "session file " + db->name() + " has no records",
                      "The recording ended before anything happened");
    }
    const double last = db->summary().lastTime;
    range = {std::max(options.from, 0.0), options.to};
    if (range.from > last) {
        return Status(Code::BadInput,
                      "session file " + db->name() + " has no records after " +
                          secondsText(range.from) + " s",
                      "Its last record is at " + secondsText(last) + " s");
    }
    return db;
}

Status nothingInRange(const SessionDb& db, const TimeRange& range) {
    return {
        Code::BadInput,
        "session file " + db.name() + " has no records from " + secondsText(range.from) + " s to " +
            secondsText(std::min(range.to, db.summary().lastTime)) + " s",
        "Choose another range; its last record is at " + secondsText(db.summary().lastTime) + " s"};
}

// The parts of one export. Everything is borrowed.
struct Parts {
    const ExportOptions& options;
    const SessionDb& db;
    const TimeRange& range;
    ExportFile& file;
    ExportRun& run;
};

Status exportTrace(const Parts& parts, ExportSummary& summary) {
    PerfettoSink perfetto(parts.file);
    ChromeSink chrome(parts.file);
    const bool isPerfetto = parts.options.format == ExportFormat::Perfetto;
    TraceSink& sink = isPerfetto ? static_cast<TraceSink&>(perfetto) : chrome;
    TraceWriter writer(parts.db, sink, parts.run, parts.range, parts.options.series);
    COLIBRI_TRY(writer.write());
    const TraceCounts& counts = writer.counts();
    summary.slices = counts.slices;
    summary.instants = counts.instants;
    summary.flows = counts.flows;
    summary.values = counts.values;
    summary.series = counts.series;
    const bool any = counts.slices > 0 || counts.instants > 0 || counts.values > 0;
    return any ? Status() : nothingInRange(parts.db, parts.range);
}

Status exportSeries(const Parts& parts, ExportSummary& summary) {
    SeriesWriter writer(parts.db, parts.file, parts.run, parts.range);
    COLIBRI_TRY(writer.write(parts.options.format == ExportFormat::Csv ? SeriesWriter::Format::Csv
                                                                       : SeriesWriter::Format::Json,
                             parts.options.series));
    summary.values = writer.values();
    summary.series = writer.series();
    return {};
}

Status exportReport(const Parts& parts) {
    TimeRange range = parts.range;
    // The session has its duration in whole milliseconds. An axis needs some length in any case.
    range.to = std::min(range.to, parts.db.summary().lastTime + 1e-3);
    range.to = std::max(range.to, range.from + 1e-3);
    const auto report = collectReport(parts.db, parts.run, range);
    if (!report) return report.status();
    return parts.file.append(parts.options.format == ExportFormat::Html ? reportHtml(*report)
                                                                        : reportMarkdown(*report));
}

}  // namespace

const char* exportFormatName(ExportFormat format) {
    return kFormatNames[size_t(format)];
}

std::optional<ExportFormat> exportFormatFromName(std::string_view name) {
    for (size_t i = 0; i < kFormatNames.size(); ++i) {
        if (name == kFormatNames[i]) return ExportFormat(i);
    }
    return std::nullopt;
}

Result<int64_t> estimateExport(const ExportOptions& options) {
    TimeRange range{};
    const auto db = openFor(options, range);
    if (!db) return db.status();
    if (isReport(options.format)) {
        return options.format == ExportFormat::Html ? kReportBytes : kMarkdownBytes;
    }
    const double last = db->summary().lastTime;
    const double share = last > 0 ? (std::min(range.to, last) - range.from) / last : 1;
    const double series = options.series.empty() ? 1 : double(options.series.size()) / kSeriesCount;
    double bytes = 0;
    for (const TableSize& size : kTableSizes) {
        const bool samples = std::string_view(size.table) == "samples";
        bytes += double(db->rows(size.table)) * bytesPerRow(size, options.format) * share *
                 (samples ? series : 1);
    }
    return kHeadBytes + int64_t(bytes);
}

Result<ExportSummary> exportSession(const ExportOptions& options, const ProgressFn& progress,
                                    const CancelFlag* cancel) {
    TimeRange range{};
    const auto db = openFor(options, range);
    if (!db) return db.status();
    uint64_t rows = 0;
    const bool seriesOnly =
        options.format == ExportFormat::Csv || options.format == ExportFormat::Json;
    for (const TableSize& size : kTableSizes) {
        if (!seriesOnly || size.csv > 0) rows += uint64_t(db->rows(size.table));
    }
    auto file = ExportFile::create(options.output);
    if (!file) return file.status();
    ExportRun run(progress, cancel, rows);
    ExportSummary summary;
    summary.from = range.from;
    summary.to = std::min(range.to, db->summary().lastTime);
    const Parts parts{options, *db, range, *file, run};
    if (isReport(options.format)) {
        COLIBRI_TRY(exportReport(parts));
    } else {
        COLIBRI_TRY(seriesOnly ? exportSeries(parts, summary) : exportTrace(parts, summary));
    }
    summary.bytes = file->bytes();
    COLIBRI_TRY(run.stage("Writing to the disk"));
    COLIBRI_TRY(file->publish());
    return summary;
}

}  // namespace colibri
