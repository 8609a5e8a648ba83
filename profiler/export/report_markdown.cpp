// SPDX-License-Identifier: Apache-2.0
#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "profiler/export/report.h"

namespace colibri {
namespace {

// Text of a table cell or a line: on one line, without the signs that Markdown interprets.
std::string markdownText(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (std::string_view("\\`*_{}[]<>#|~").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

void addTable(std::string& out, const ReportTable& table) {
    out += "\n## " + markdownText(table.title) + "\n\n";
    if (table.rows.empty()) {
        out += markdownText(table.empty) + "\n";
        return;
    }
    if (!table.note.empty()) out += markdownText(table.note) + "\n\n";
    std::string rule;
    for (const ReportTable::Column& column : table.columns) {
        out += "| " + markdownText(column.name) + " ";
        rule += column.number ? "|---:" : "|---";
    }
    out += "|\n" + rule + "|\n";
    for (const std::vector<std::string>& row : table.rows) {
        for (const std::string& cell : row) out += "| " + markdownText(cell) + " ";
        out += "|\n";
    }
}

}  // namespace

std::string reportMarkdown(const Report& report) {
    std::string out = "# " + markdownText(report.title) + "\n\n| | |\n|---|---|\n";
    for (const auto& [label, value] : report.facts) {
        out += "| " + markdownText(label) + " | " + markdownText(value) + " |\n";
    }
    out += "\n## Figures\n\nPercentiles are of all values in the range together.\n\n";
    out += "| figure | value | |\n|---|---:|---|\n";
    for (const ReportFigure& figure : report.figures) {
        out += "| " + markdownText(figure.label) + " | " + markdownText(figure.value) + " | " +
               markdownText(figure.note) + " |\n";
    }
    ReportTable series{
        "Series",
        "Lowest and highest value in the range.",
        {{"series"}, {"unit"}, {"lowest", true}, {"highest", true}, {"values", true}},
        {},
        ""};
    for (const ReportPlot& plot : report.plots) {
        for (const ReportPlot::Line& line : plot.lines) {
            const bool known = line.count > 0;
            series.rows.push_back(
                {plot.title + ", " + line.name, plot.unit, known ? formatSig(line.low) : "n/a",
                 known ? formatSig(line.high) : "n/a", formatCount(int64_t(line.count))});
        }
    }
    addTable(out, series);
    for (const ReportTable& table : report.tables) addTable(out, table);
    return out;
}

}  // namespace colibri
