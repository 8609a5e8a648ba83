// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "engine/base/format.h"
#include "engine/knobs/knobs.h"
#include "profiler/export/report.h"
#include "profiler/metrics/histogram.h"
#include "profiler/metrics/metric_table.h"

namespace colibri {
namespace {

constexpr int kSlowTokens = 15;

std::string timeText(double t) {
    return formatFixed(t, 2);
}
std::string msText(double ns) {
    return formatSig(ns * 1e-6);
}
std::string shareText(double part, double whole) {
    return formatPercent(whole > 0 ? part / whole : std::nan(""));
}
std::string countNote(uint64_t count) {
    return "n = " + formatCount(int64_t(count));
}
std::string knobLabel(std::string_view name) {
    const KnobRow* row = findKnob(name);
    return row ? knobTitle(*row) : std::string(name);
}
// The value of a knob with its unit.
std::string knobText(std::string_view name, const std::string& value) {
    const KnobRow* row = findKnob(name);
    const bool number = !value.empty() && std::isdigit(uint8_t(value[0]));
    // Not "Compute threads: 2 threads".
    const bool useful = row && *row->unit && !knobTitle(*row).ends_with(row->unit);
    return useful && number ? value + " " + row->unit : value;
}

double secondsOf(const std::string& text) {  // 0 if it is not a number
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// Collects one part of a report after the other.
class ReportCollector {
public:
    ReportCollector(const SessionDb& db, ExportRun& run, Report& report)
        : m_db(db), m_run(run), m_report(report) {}

    Status facts();
    Status removed();
    Status requests();
    Status tokens();
    Status knobs();
    Status marks();
    Status reads();
    Status layers();
    Status slowTokens();

private:
    // Calls `take` for each row of a query with a range.
    template <class Take>
    Status each(const std::string& sql, Take take) {
        SessionRows rows;
        COLIBRI_TRY(rows.prepare(m_db, sql));
        rows.bind(m_report.range);
        while (rows.next()) {
            COLIBRI_TRY(m_run.row());
            take(rows);
        }
        return rows.status();
    }
    void fact(const char* label, const std::string& value) {
        m_report.facts.emplace_back(label, value.empty() ? "n/a" : value);
    }
    void figure(const char* label, const std::string& value, const std::string& note) {
        m_report.figures.push_back({label, value, note});
    }
    // P50 and P99 of all values together.
    void percentiles(const std::string& label, const Histogram& values);

    // A sum over the rows that were removed to keep the session file small; 0 if there is none.
    double total(const std::string& name) const {
        const auto it = m_totals.find(name);
        return it == m_totals.end() ? 0 : it->second;
    }
    // Adds the values of the removed rows.
    Status addRemoved(Histogram& values, std::string_view name);

    const SessionDb& m_db;
    ExportRun& m_run;
    Report& m_report;
    std::map<std::string, double> m_totals;
    bool m_removedToo = false;  // the figures include the removed rows
};

void ReportCollector::percentiles(const std::string& label, const Histogram& values) {
    m_report.figures.push_back(
        {label + " P50", formatMs(values.quantile(0.5) * 1e-6), countNote(values.count())});
    const bool few = values.count() > 0 && values.count() < kEnoughForP99;
    m_report.figures.push_back({label + " P99", formatMs(values.quantile(0.99) * 1e-6),
                                countNote(values.count()) + (few ? ", few for a P99" : "")});
}

Status ReportCollector::facts() {
    const SessionSummary& summary = m_db.summary();
    const std::string model = m_db.meta("model");
    m_report.title = model.empty() ? "Session" : "Session of " + model;
    fact("File", summary.path.filename().string());
    fact("Model", model);
    fact("Family", m_db.meta("family"));
    if (const std::string experts = m_db.meta("experts"); !experts.empty() && experts != "0") {
        fact("Experts", m_db.meta("layers") + " MoE layers, " + experts + " experts, top " +
                            m_db.meta("top_k"));
    }
    fact("Machine", m_db.meta("machine"));
    fact("Instruction set", m_db.meta("isa"));
    fact("Started", m_db.meta("started"));
    fact("Ended", summary.endedCleanly ? m_db.meta("ended") : "no clean end");
    fact("Range", timeText(m_report.range.from) + " to " + timeText(m_report.range.to) + " s of " +
                      timeText(summary.lastTime) + " s");
    return {};
}

// The sums of removed rows belong to the range only if it contains all of these rows.
Status ReportCollector::removed() {
    const std::string before = m_db.meta("thinned_detail_before");
    const std::string tokens = m_db.meta("thinned_tokens_before");
    if (before.empty() && tokens.empty()) return {};
    const double last = std::max(secondsOf(before), secondsOf(tokens));
    if (m_report.range.from >= last) return {};
    m_removedToo = m_report.range.from <= 0 && m_report.range.to >= last;
    fact("Removed", std::string("reads and layer steps before ") + before + " s" +
                        (tokens.empty() ? "" : ", tokens and series before " + tokens + " s") +
                        (m_removedToo ? "; the figures include them, the tables do not"
                                      : "; the report is without them"));
    if (!m_removedToo || !m_db.has("totals", "name")) return {};
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db, "SELECT name, value FROM totals"));
    while (rows.next()) m_totals[std::string(rows.text(0))] = rows.real(1);
    return rows.status();
}

Status ReportCollector::addRemoved(Histogram& values, std::string_view name) {
    if (!m_removedToo || !m_db.has("histograms", "name")) return {};
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db, "SELECT value_ns, count FROM histograms WHERE name = ?"));
    rows.bind(name);
    while (rows.next()) values.add(uint64_t(rows.integer(0)), uint64_t(rows.integer(1)));
    return rows.status();
}

Status ReportCollector::requests() {
    COLIBRI_TRY(m_run.stage("Requests"));
    Histogram ttft;
    std::map<std::string, int64_t> stops;
    int64_t requests = 0, prompt = 0, cached = 0;
    COLIBRI_TRY(each(
        "SELECT arrived, first_token, coalesce(stop, 'not ended'), prompt_tokens, cached_tokens "
        "FROM requests WHERE arrived >= ? AND arrived <= ?",
        [&](const SessionRows& row) {
            ++requests;
            ++stops[std::string(row.text(2))];
            prompt += row.integer(3);
            cached += row.integer(4);
            if (!row.isNull(1)) {
                ttft.add(uint64_t(std::max(0.0, row.real(1) - row.real(0)) * 1e9));
            }
        }));
    std::string ends;
    for (const auto& [stop, count] : stops) {
        ends += (ends.empty() ? " (" : ", ") + formatCount(count) + " " + stop;
    }
    fact("Requests", formatCount(requests) + (ends.empty() ? "" : ends + ")"));
    fact("Prompt tokens", formatCount(prompt) + ", " + formatCount(cached) + " of them reused");
    percentiles("TTFT", ttft);
    return {};
}

Status ReportCollector::tokens() {
    COLIBRI_TRY(m_run.stage("Tokens"));
    Histogram gaps;
    double gapNs = total("tokens.gap_ns"), stepNs = total("tokens.step_ns"),
           stallNs = total("tokens.stall_ns");
    int64_t tokens = int64_t(total("tokens.count"));
    COLIBRI_TRY(addRemoved(gaps, "tokens.gap_ns"));
    COLIBRI_TRY(each("SELECT gap_ns, step_ns, stall_ns FROM tokens WHERE t >= ? AND t <= ?",
                     [&](const SessionRows& row) {
                         ++tokens;
                         stepNs += row.real(1);
                         stallNs += row.real(2);
                         if (row.integer(0) <= 0) return;
                         gaps.add(uint64_t(row.integer(0)));
                         gapNs += row.real(0);
                     }));
    fact("Generated tokens", formatCount(tokens));
    const double rate = gapNs > 0 ? double(gaps.count()) / (gapNs * 1e-9) : std::nan("");
    const std::string text = formatSig(rate);
    figure("Decode rate", std::isfinite(rate) ? text + " tok/s" : text,
           "of one request, " + countNote(gaps.count()));
    percentiles("ITL", gaps);
    figure("Stall", shareText(stallNs, stepNs), "of step time in which compute waited for experts");
    return {};
}

Status ReportCollector::knobs() {
    COLIBRI_TRY(m_run.stage("Knobs"));
    ReportTable start{"Knobs at the start",
                      "",
                      {{"knob"}, {"requested"}, {"effective"}, {"reason"}},
                      {},
                      "The session has no knobs."};
    ReportTable changes{
        "Changes of knobs",
        "",
        {{"time, s", true}, {"knob"}, {"before"}, {"effective"}, {"requested"}, {"reason"}},
        {},
        "No knob changed in this range."};
    std::map<std::string, std::string> effective;
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        m_db, "SELECT t, name, requested, effective, reason FROM knobs ORDER BY rowid"));
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        const std::string name(rows.text(1)), reason(rows.text(4)), label = knobLabel(name);
        const std::string requested = knobText(name, std::string(rows.text(2)));
        const std::string now = knobText(name, std::string(rows.text(3)));
        const double t = rows.real(0);
        const bool first = !effective.contains(name);
        const std::string before = std::exchange(effective[name], now);
        if (t <= 0 && first) {
            start.rows.push_back({label, requested, now, reason});
        } else if (t >= m_report.range.from && t <= m_report.range.to) {
            changes.rows.push_back({timeText(t), label, before, now, requested, reason});
            m_report.changes.push_back({t, label + ": " + now});
        }
    }
    m_report.tables.push_back(std::move(start));
    m_report.tables.push_back(std::move(changes));
    return rows.status();
}

Status ReportCollector::marks() {
    COLIBRI_TRY(m_run.stage("Marks"));
    ReportTable table{
        "Effects and notes",
        "An effect is the measured change of the decode rate after a change of a knob, "
        "with its 95 % interval.",
        {{"time, s", true}, {"kind"}, {"text"}},
        {},
        "There are none in this range."};
    COLIBRI_TRY(each("SELECT t, kind, label FROM marks WHERE t >= ? AND t <= ? ORDER BY t",
                     [&](const SessionRows& row) {
                         table.rows.push_back({timeText(row.real(0)), std::string(row.text(1)),
                                               std::string(row.text(2))});
                     }));
    m_report.tables.push_back(std::move(table));
    return {};
}

Status ReportCollector::reads() {
    COLIBRI_TRY(m_run.stage("Expert reads"));
    struct Sums {
        int64_t reads = 0, failed = 0;
        double bytes = 0;
        Histogram readNs;
    };
    std::map<std::string, Sums> reasons;
    Histogram load;
    double bytes = 0, removedBytes = 0;
    COLIBRI_TRY(
        each("SELECT reason, bytes, read_ns, need_ns, failed FROM loads WHERE t >= ? AND t <= ?",
             [&](const SessionRows& row) {
                 Sums& sums = reasons[std::string(row.text(0))];
                 ++sums.reads;
                 if (row.integer(4) != 0) {
                     ++sums.failed;
                     return;
                 }
                 sums.bytes += row.real(1);
                 bytes += row.real(1);
                 sums.readNs.add(uint64_t(row.integer(2)));
                 if (row.integer(3) > 0) load.add(uint64_t(row.integer(3)));
             }));
    COLIBRI_TRY(addRemoved(load, "loads.need_ns"));
    percentiles("Expert load", load);
    for (const char* reason : {"demand", "prefetch", "warm_start"}) {
        removedBytes += total(std::string("loads.") + reason + ".bytes");
    }
    const bool any = !reasons.empty() || removedBytes > 0;
    figure("Experts read", any ? formatGiB(bytes + removedBytes) : "n/a", "completed reads");
    ReportTable table{"Expert reads by reason",
                      "",
                      {{"reason"},
                       {"reads", true},
                       {"failed", true},
                       {"bytes", true},
                       {"share of bytes", true},
                       {"read P50, ms", true},
                       {"read P99, ms", true}},
                      {},
                      "No expert was read in this range."};
    for (const auto& [reason, sums] : reasons) {
        table.rows.push_back({reason, formatCount(sums.reads), formatCount(sums.failed),
                              formatGiB(sums.bytes), shareText(sums.bytes, bytes),
                              msText(sums.readNs.quantile(0.5)),
                              msText(sums.readNs.quantile(0.99))});
    }
    m_report.tables.push_back(std::move(table));
    return {};
}

Status ReportCollector::layers() {
    COLIBRI_TRY(m_run.stage("Layer steps"));
    struct Sums {
        int64_t steps = 0;
        double lookups = 0, hits = 0, prefetched = 0, router = 0, wait = 0, compute = 0;
    };
    std::map<int64_t, Sums> layers;
    double lookups = total("layer_steps.lookups"), hits = total("layer_steps.hits"), waits = 0;
    COLIBRI_TRY(
        each("SELECT layer, prefill, lookups, hits, prefetched, router_ns, wait_ns, compute_ns "
             "FROM layer_steps WHERE t >= ? AND t <= ?",
             [&](const SessionRows& row) {
                 lookups += row.real(2);
                 hits += row.real(3);
                 if (row.integer(1) != 0) return;
                 Sums& sums = layers[row.integer(0)];
                 ++sums.steps;
                 sums.lookups += row.real(2);
                 sums.hits += row.real(3);
                 sums.prefetched += row.real(4);
                 sums.router += row.real(5);
                 sums.wait += row.real(6);
                 sums.compute += row.real(7);
                 waits += row.real(6);
             }));
    figure("Hit rate", shareText(hits, lookups),
           formatCount(int64_t(lookups)) + " lookups, prompts included");
    ReportTable table{"Layers while decoding",
                      "Steps with prompts are not counted.",
                      {{"layer", true},
                       {"steps", true},
                       {"lookups", true},
                       {"hit rate", true},
                       {"by prefetch", true},
                       {"router, ms", true},
                       {"compute, ms", true},
                       {"wait, ms", true},
                       {"share of waits", true}},
                      {},
                      "No layer decoded in this range."};
    for (const auto& [layer, s] : layers) {
        const double steps = double(s.steps) * 1e6;
        table.rows.push_back({std::to_string(layer), formatCount(s.steps),
                              formatCount(int64_t(s.lookups)), shareText(s.hits, s.lookups),
                              shareText(s.prefetched, s.lookups), formatFixed(s.router / steps, 3),
                              formatFixed(s.compute / steps, 3), formatFixed(s.wait / steps, 3),
                              shareText(s.wait, waits)});
    }
    if (!layers.empty()) table.note += " Times are means of a step.";
    m_report.tables.push_back(std::move(table));
    return {};
}

Status ReportCollector::slowTokens() {
    COLIBRI_TRY(m_run.stage("Slowest tokens"));
    ReportTable table{"Slowest tokens",
                      "The largest gaps between two tokens of a reply.",
                      {{"time, s", true},
                       {"request", true},
                       {"token", true},
                       {"gap, ms", true},
                       {"step, ms", true},
                       {"stall, ms", true},
                       {"stall", true},
                       {"hits", true}},
                      {},
                      "No reply has two tokens in this range."};
    COLIBRI_TRY(
        each("SELECT t, request, idx, gap_ns, step_ns, stall_ns, hits, lookups FROM tokens "
             "WHERE t >= ? AND t <= ? AND gap_ns > 0 ORDER BY gap_ns DESC LIMIT " +
                 std::to_string(kSlowTokens),
             [&](const SessionRows& row) {
                 table.rows.push_back(
                     {timeText(row.real(0)), formatCount(row.integer(1)),
                      formatCount(row.integer(2)), msText(row.real(3)), msText(row.real(4)),
                      msText(row.real(5)), shareText(row.real(5), row.real(4)),
                      row.integer(7) > 0
                          ? formatCount(row.integer(6)) + " of " + formatCount(row.integer(7))
                          : "n/a"});
             }));
    m_report.tables.push_back(std::move(table));
    return {};
}

}  // namespace

Result<Report> collectReport(const SessionDb& db, ExportRun& run, const TimeRange& range) {
    Report report;
    report.range = range;
    ReportCollector collector(db, run, report);
    COLIBRI_TRY(collector.facts());
    COLIBRI_TRY(collector.removed());
    COLIBRI_TRY(collector.tokens());
    COLIBRI_TRY(collector.requests());
    COLIBRI_TRY(collector.knobs());
    COLIBRI_TRY(collector.marks());
    COLIBRI_TRY(collector.slowTokens());
    COLIBRI_TRY(collector.layers());
    COLIBRI_TRY(collector.reads());
    auto plots = collectPlots(db, run, range);
    if (!plots) return plots.status();
    report.plots = std::move(*plots);
    return report;
}

}  // namespace colibri
