// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/series_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "profiler/export/json_text.h"
#include "profiler/metrics/metric_table.h"

namespace colibri {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

// Line feeds of a fact would end the comment.
std::string oneLine(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x20; }, ' ');
    return text;
}

}  // namespace

std::vector<std::string> SeriesWriter::series() const {
    std::vector<std::string> keys;
    for (const MetricRow* metric : m_metrics) keys.push_back(metric->key);
    return keys;
}

Status SeriesWriter::write(Format format, const std::vector<std::string>& keys) {
    COLIBRI_TRY(m_run.stage("Series"));
    for (const std::string& key : keys) m_metrics.push_back(findMetric(key));
    if (keys.empty()) COLIBRI_TRY(chooseAll());
    COLIBRI_TRY(format == Format::Csv ? writeCsvHead() : writeJsonHead());
    COLIBRI_TRY(writeRows(format));
    if (m_values == 0) {
        return {Code::BadInput, "session file " + m_db.name() + " has no values of these series",
                "Choose another range or other series"};
    }
    return format == Format::Csv ? Status() : m_file.append("\n  ]\n}\n");
}

Status SeriesWriter::chooseAll() {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db, "SELECT DISTINCT series FROM samples WHERE t >= ? AND t <= ?"));
    rows.bind(m_range);
    std::array<bool, kSeriesCount> present{};
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        for (int i = 0; i < kSeriesCount; ++i) {
            present[size_t(i)] |= metricRow(SeriesId(i)).label == rows.text(0);
        }
    }
    for (int i = 0; i < kSeriesCount; ++i) {
        if (present[size_t(i)]) m_metrics.push_back(&metricRow(SeriesId(i)));
    }
    return rows.status();
}

Status SeriesWriter::writeCsvHead() {
    std::string head;
    for (const MetricRow* metric : m_metrics) {
        head += std::string("# ") + metric->key + ": " + metric->label + " (" + metric->unit +
                "): " + metric->definition + "; source: " + metric->source + "\n";
    }
    head += "# time_s: seconds since the session began; an empty field is an unknown value\n";
    for (const char* key : {"model", "machine", "started"}) {
        const std::string value = m_db.meta(key);
        if (!value.empty()) head += std::string("# ") + key + ": " + oneLine(value) + "\n";
    }
    head += "time_s";
    for (const MetricRow* metric : m_metrics) head += std::string(",") + metric->key;
    return m_file.append(head + "\n");
}

Status SeriesWriter::writeJsonHead() {
    std::string head = "{\n  \"session\": {";
    const char* before = "";
    for (const auto& [key, value] : m_db.summary().meta) {
        head += before + jsonString(key) + ": " + jsonString(value);
        before = ", ";
    }
    head += "},\n  \"time\": \"seconds since the session began\",\n  \"series\": [";
    before = "\n    ";
    for (const MetricRow* metric : m_metrics) {
        head += before + ("{\"key\": " + jsonString(metric->key)) +
                ", \"label\": " + jsonString(metric->label) +
                ", \"unit\": " + jsonString(metric->unit) +
                ", \"definition\": " + jsonString(metric->definition) +
                ", \"source\": " + jsonString(metric->source) + "}";
        before = ",\n    ";
    }
    head += "\n  ],\n  \"columns\": [\"time_s\"";
    for (const MetricRow* metric : m_metrics) head += ", " + jsonString(metric->key);
    return m_file.append(head + "],\n  \"rows\": [");
}

// The recorder stores the values of one moment together, so they follow each other.
Status SeriesWriter::writeRows(Format format) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        m_db, "SELECT t, series, value FROM samples WHERE t >= ? AND t <= ? ORDER BY rowid"));
    rows.bind(m_range);
    std::map<std::string_view, size_t> columns;
    for (size_t i = 0; i < m_metrics.size(); ++i) columns[m_metrics[i]->label] = i;
    std::vector<double> values(m_metrics.size(), kGap);
    double t = kGap;
    bool any = false;
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        if (any && rows.real(0) != t) {
            COLIBRI_TRY(writeRow(format, t, values));
            values.assign(values.size(), kGap);
            any = false;
        }
        const auto column = columns.find(rows.text(1));
        if (column == columns.end() || rows.isNull(2)) continue;
        t = rows.real(0);
        values[column->second] = rows.real(2);
        any = true;
        ++m_values;
    }
    COLIBRI_TRY(rows.status());
    return any ? writeRow(format, t, values) : Status();
}

Status SeriesWriter::writeRow(Format format, double t, const std::vector<double>& values) {
    const bool json = format == Format::Json;
    m_line = !json ? "" : m_first ? "\n    [" : ",\n    [";
    m_first = false;
    appendReal(m_line, t);
    for (const double value : values) {
        m_line += json ? ", " : ",";
        appendReal(m_line, value, json ? "null" : "");
    }
    m_line += json ? "]" : "\n";
    return m_file.append(m_line);
}

}  // namespace colibri
