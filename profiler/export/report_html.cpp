// SPDX-License-Identifier: Apache-2.0
#include "engine/base/printable.h"
#include "profiler/export/report.h"

namespace colibri {
namespace {

// The colours of the window. Paper is always light.
constexpr const char* kStyle = R"css(
:root {
  color-scheme: light dark;
  --bg: #f6f8f9; --card: #ffffff; --plot: #ffffff; --line1: #d5dbe0; --line2: #a9b3bb;
  --text1: #161b1f; --text2: #434e57; --text3: #5c6770;
  --s1: #2a72d4; --s2: #d07a1e; --s3: #1f7a55; --s4: #a8458c;
  --s5: #6b6600; --s6: #1496b4; --s7: #45208a; --s8: #7d2410;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --bg: #191e22; --card: #22282d; --plot: #14181b; --line1: #2b3238; --line2: #414b53;
    --text1: #e6eaed; --text2: #b1bac1; --text3: #98a2aa;
    --s1: #4fa8f0; --s2: #e9a23b; --s3: #4f9d74; --s4: #b5719f;
    --s5: #f0e28a; --s6: #66e0ec; --s7: #8070d2; --s8: #bd5730;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 24px 20px 40px; background: var(--bg);
  color: var(--text1); font: 13px/18px Inter, "Noto Sans", system-ui, sans-serif; }
h1 { font-size: 24px; line-height: 30px; font-weight: 600; margin: 0 0 12px; }
h2 { font-size: 15px; line-height: 20px; font-weight: 600; margin: 28px 0 8px; }
p { margin: 0 0 8px; color: var(--text2); }
dl { display: grid; grid-template-columns: max-content 1fr max-content 1fr; gap: 4px 16px;
  margin: 0; }
dt { color: var(--text3); }
dd { margin: 0; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(184px, 1fr)); gap: 8px; }
.figure { background: var(--card); border: 1px solid var(--line1); border-radius: 6px;
  padding: 8px 12px; }
.figure .label { color: var(--text2); font-size: 12px; }
.figure .value { font: 600 20px/26px "JetBrains Mono", "Noto Sans Mono", "DejaVu Sans Mono",
  monospace; white-space: nowrap; }
.figure .note, .definition, .legend { color: var(--text3); font-size: 11px; line-height: 14px; }
.plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; }
.plot { background: var(--card); border: 1px solid var(--line1); border-radius: 6px;
  padding: 8px 12px; break-inside: avoid; }
.plot h3 { font-size: 13px; line-height: 18px; font-weight: 600; margin: 0; }
.plot h3 span { color: var(--text3); font-weight: 400; }
.legend { display: flex; flex-wrap: wrap; gap: 0 16px; margin: 2px 0 4px; color: var(--text2); }
.legend i { display: inline-block; width: 10px; height: 2px; margin-right: 6px;
  vertical-align: middle; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.missing { padding: 24px 0; text-align: center; color: var(--text3); }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--text3); font: 11px "JetBrains Mono", "Noto Sans Mono", "DejaVu Sans Mono",
  monospace; }
svg .ground { fill: var(--plot); }
svg .grid { stroke: var(--line1); stroke-width: 1; shape-rendering: crispEdges; }
svg .base { stroke: var(--line2); stroke-width: 1; shape-rendering: crispEdges; }
svg .change { stroke: var(--text3); stroke-width: 1; stroke-dasharray: 2 2; }
svg .line { fill: none; stroke-width: 1.3; stroke-linejoin: round; stroke-linecap: round; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; line-height: 16px; width: 100%;
  background: var(--card); border: 1px solid var(--line1); }
th { text-align: left; font-weight: 400; color: var(--text3); font-size: 11px;
  border-bottom: 1px solid var(--line2); white-space: nowrap; }
th, td { padding: 4px 12px; vertical-align: top; }
tr + tr td { border-top: 1px solid var(--line1); }
.n { text-align: right; font-family: "JetBrains Mono", "Noto Sans Mono", "DejaVu Sans Mono",
  monospace; white-space: nowrap; }
th.n { font-family: inherit; }
tr { break-inside: avoid; }
thead { display: table-header-group; }
h2 { break-after: avoid; }
@media screen and (max-width: 760px) {
  .plots { grid-template-columns: minmax(0, 1fr); }
  dl { grid-template-columns: max-content 1fr; }
}
@media print {
  @page { margin: 14mm; }
  body { background: none; padding: 0; max-width: none; font-size: 11px; line-height: 15px; }
  .figures { grid-template-columns: repeat(5, 1fr); }
  .figure { padding: 6px 8px; }
  .figure .value { font-size: 15px; line-height: 20px; }
  .plots { gap: 8px; }
  table { font-size: 10px; line-height: 13px; }
  th, td { padding: 3px 8px; }
  .scroll { overflow: visible; }
}
)css";

void addHtmlTable(std::string& out, const ReportTable& table) {
    out += "<h2>" + htmlText(table.title) + "</h2>\n";
    if (table.rows.empty()) {
        out += "<p>" + htmlText(table.empty) + "</p>\n";
        return;
    }
    if (!table.note.empty()) out += "<p>" + htmlText(table.note) + "</p>\n";
    out += "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const ReportTable::Column& column : table.columns) {
        out += (column.number ? "<th class=\"n\">" : "<th>") + htmlText(column.name) + "</th>";
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : table.rows) {
        out += "<tr>";
        for (size_t i = 0; i < row.size(); ++i) {
            out += (table.columns[i].number ? "<td class=\"n\">" : "<td>") + htmlText(row[i]) +
                   "</td>";
        }
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
}

}  // namespace

std::string htmlText(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string reportHtml(const Report& report) {
    const std::string title = htmlText(report.title);
    std::string out =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
        title + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + title +
        "</h1>\n<dl>\n";
    for (const auto& [label, value] : report.facts) {
        out += "<dt>" + htmlText(label) + "</dt><dd>" + htmlText(value) + "</dd>\n";
    }
    out +=
        "</dl>\n<h2>Figures</h2>\n<p>Percentiles are of all values in the range together.</p>\n"
        "<div class=\"figures\">\n";
    for (const ReportFigure& figure : report.figures) {
        out += "<div class=\"figure\"><div class=\"label\">" + htmlText(figure.label) +
               "</div><div class=\"value\">" + htmlText(figure.value) +
               "</div><div class=\"note\">" + htmlText(figure.note) + "</div></div>\n";
    }
    out += "</div>\n<h2>Series</h2>\n<p>The time is in seconds since the session began.";
    if (!report.changes.empty()) out += " A dashed line is a change of a knob.";
    out += "</p>\n<div class=\"plots\">\n";
    for (const ReportPlot& plot : report.plots) out += plotSvg(plot, report.range, report.changes);
    out += "</div>\n";
    for (const ReportTable& table : report.tables) addHtmlTable(out, table);
    return out + "</body>\n</html>\n";
}

}  // namespace colibri
