// SPDX-License-Identifier: Apache-2.0
// Exports a session file: as a trace (Perfetto, Chrome), as series (CSV, JSON) or as a report
// (HTML, Markdown). Rows are streamed, so memory does not grow with the session. The output is
// written to a temporary file beside its target and renamed when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

enum class ExportFormat : uint8_t { Perfetto, Chrome, Csv, Json, Html, Markdown };
const char* exportFormatName(ExportFormat format);  // "perfetto", "chrome", "csv", "json", ...
std::optional<ExportFormat> exportFormatFromName(std::string_view name);

struct ExportOptions {
    std::filesystem::path session, output;
    ExportFormat format = ExportFormat::Perfetto;
    // Seconds since the session began. A slice that overlaps the range is exported as a whole.
    double from = 0, to = std::numeric_limits<double>::infinity();
    // Keys of metrics, in their order in CSV and JSON; empty: all that have values. Not for
    // reports.
    std::vector<std::string> series;
};

struct ExportSummary {
    int64_t bytes = 0;                 // of the file
    double from = 0, to = 0;           // seconds
    int64_t slices = 0, instants = 0;  // traces
    int64_t flows = 0;                 // arrows from a read to the layer step that waited
    int64_t values = 0;                // of series
    std::vector<std::string> series;   // keys of the exported series
};

// A rough size from the numbers of rows, without reading them. Errors: those of exportSession()
// that do not concern the output.
Result<int64_t> estimateExport(const ExportOptions& options);

// Runs on the calling thread; call it from a job. `progress` counts rows. The session may still be
// recorded: the export sees the rows of one moment. Errors: InvalidArgument (the output exists, an
// unknown series, an empty range), BadInput (not a session, damaged, nothing in the range),
// Unsupported (newer schema), NoSpace, IoError, Cancelled. After an error no file remains.
Result<ExportSummary> exportSession(const ExportOptions& options, const ProgressFn& progress,
                                    const CancelFlag* cancel);

}  // namespace colibri
