// SPDX-License-Identifier: Apache-2.0
// Writes series of a session as CSV or JSON: one line or row for each time, one column for each
// series, and a header with keys, units and definitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/export/export_file.h"
#include "profiler/export/export_run.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct MetricRow;

class SeriesWriter {
public:
    enum class Format { Csv, Json };
    // Everything is borrowed.
    SeriesWriter(const SessionDb& db, ExportFile& file, ExportRun& run, const TimeRange& range)
        : m_db(db), m_file(file), m_run(run), m_range(range) {}

    // `keys`: of metrics, each valid; empty: all that have values in the range.
    // Errors: BadInput if there is no value.
    Status write(Format format, const std::vector<std::string>& keys);
    int64_t values() const { return m_values; }
    std::vector<std::string> series() const;

private:
    Status chooseAll();
    Status writeCsvHead();
    Status writeJsonHead();
    Status writeRows(Format format);
    Status writeRow(Format format, double t, const std::vector<double>& values);

    const SessionDb& m_db;
    ExportFile& m_file;
    ExportRun& m_run;
    const TimeRange m_range;
    std::vector<const MetricRow*> m_metrics;
    int64_t m_values = 0;
    bool m_first = true;
    std::string m_line;
};

}  // namespace colibri
