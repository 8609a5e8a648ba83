// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/trace_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/knobs/knobs.h"
#include "profiler/export/json_text.h"
#include "profiler/metrics/metric_table.h"

namespace colibri {
namespace {

int64_t toNs(double seconds) {
    return std::isfinite(seconds) ? std::max<int64_t>(std::llround(seconds * 1e9), 0) : 0;
}

const MetricRow* metricOfLabel(std::string_view label) {
    for (int i = 0; i < kSeriesCount; ++i) {
        if (metricRow(SeriesId(i)).label == label) return &metricRow(SeriesId(i));
    }
    return nullptr;
}

}  // namespace

TraceWriter::TraceWriter(const SessionDb& db, TraceSink& sink, ExportRun& run,
                         const TimeRange& range, const std::vector<std::string>& series)
    : m_db(db), m_sink(sink), m_run(run), m_range(range), m_series(series.begin(), series.end()) {}

Status TraceWriter::write() {
    const std::string model = m_db.meta("model");
    COLIBRI_TRY(m_sink.start(model.empty() ? "Colibri" : "Colibri: " + model));
    COLIBRI_TRY(writeKnobs());
    COLIBRI_TRY(writeMarks());
    COLIBRI_TRY(writeRequests());
    COLIBRI_TRY(writeTokens());
    COLIBRI_TRY(writeSteps());
    COLIBRI_TRY(writeStepsAndReads());
    COLIBRI_TRY(writeEvictions());
    COLIBRI_TRY(writeCounters());
    return m_sink.finish();
}

Result<TrackId> TraceWriter::addTrack(const std::string& name, TrackId parent, int rank,
                                      bool childrenByName) {
    TraceTrack track;
    track.id = ++m_lastTrack;
    track.parent = parent;
    track.name = name;
    track.rank = parent ? rank : ++m_groups;
    track.childrenByName = childrenByName;
    COLIBRI_TRY(m_sink.track(track));
    return track.id;
}

Status TraceWriter::slice(TrackId track, int64_t beginNs, int64_t endNs, std::string_view name) {
    ++m_counts.slices;
    COLIBRI_TRY(m_sink.begin(track, beginNs, name));
    return m_sink.end(track, endNs);
}

Status TraceWriter::writeKnobs() {
    COLIBRI_TRY(m_run.stage("Knobs"));
    const auto track = addTrack("Knobs", 0, 0);
    if (!track) return track.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        m_db, "SELECT t, name, requested, effective, reason FROM knobs ORDER BY rowid"));
    std::map<std::string, std::string, std::less<>> effective;
    bool started = false;  // the values at the start are written
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        const std::string name(rows.text(1)), now(rows.text(3));
        const double t = rows.real(0);
        if (!started && t > 0) {
            started = true;
            COLIBRI_TRY(writeFirstKnobs(*track, effective));
        }
        const std::string before = std::exchange(effective[name], now);
        if (t <= 0 || t < m_range.from || t > m_range.to) continue;
        ++m_counts.instants;
        COLIBRI_TRY(m_sink.instant(*track, toNs(t), name + " = " + now,
                                   {{"before", std::string_view(before)},
                                    {"requested", rows.text(2)},
                                    {"effective", rows.text(3)},
                                    {"reason", rows.text(4)}}));
    }
    COLIBRI_TRY(rows.status());
    return started ? Status() : writeFirstKnobs(*track, effective);
}

// One instant with all values, since a viewer shows instants of one time below each other.
Status TraceWriter::writeFirstKnobs(
    TrackId track, const std::map<std::string, std::string, std::less<>>& effective) {
    if (m_range.from > 0) return {};
    std::vector<TraceArg> values;
    for (const auto& [name, value] : effective) {
        const KnobRow* row = findKnob(name);
        if (row) values.emplace_back(row->name, std::string_view(value));
    }
    if (values.empty()) return {};
    ++m_counts.instants;
    return m_sink.instant(track, 0, "knobs at the start", values);
}

Status TraceWriter::writeMarks() {
    COLIBRI_TRY(m_run.stage("Marks"));
    const auto track = addTrack("Marks", 0, 0);
    if (!track) return track.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db,
                             "SELECT t, kind, label FROM marks WHERE t >= ? AND t <= ? "
                             "ORDER BY rowid"));
    rows.bind(m_range);
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        ++m_counts.instants;
        COLIBRI_TRY(
            m_sink.instant(*track, toNs(rows.real(0)), rows.text(2), {{"kind", rows.text(1)}}));
    }
    return rows.status();
}

Status TraceWriter::writeRequests() {
    COLIBRI_TRY(m_run.stage("Requests"));
    const auto group = addTrack("Requests", 0, 0);
    if (!group) return group.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        m_db,
        "SELECT id, arrived, admitted, first_token, done, prompt_tokens, cached_tokens, "
        "generated, stop, preemptions, preempted_ns FROM requests "
        "WHERE coalesce(done, 1e300) >= ? AND arrived <= ? ORDER BY id"));
    rows.bind(m_range);
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        COLIBRI_TRY(writeRequest(rows, *group));
    }
    return rows.status();
}

// A request that has not ended lasts until the last record.
Status TraceWriter::writeRequest(const SessionRows& row, TrackId parent) {
    const int64_t id = row.integer(0);
    const auto track = addTrack("Request " + std::to_string(id), parent, int(m_requests.size()));
    if (!track) return track.status();
    const auto tokens = addTrack("Tokens of request " + std::to_string(id), *track, 1);
    if (!tokens) return tokens.status();
    m_requests[id] = {*tokens, 0};

    const int64_t arrived = toNs(row.real(1));
    const int64_t done =
        std::max(arrived, toNs(row.isNull(4) ? m_db.summary().lastTime : row.real(4)));
    const auto phase = [&](int column, int64_t earliest) {
        return row.isNull(column) ? done : std::clamp(toNs(row.real(column)), earliest, done);
    };
    const int64_t admitted = phase(2, arrived), first = phase(3, admitted);
    ++m_counts.slices;
    COLIBRI_TRY(m_sink.begin(*track, arrived, "request " + std::to_string(id),
                             {{"prompt_tokens", row.integer(5)},
                              {"cached_tokens", row.integer(6)},
                              {"generated", row.integer(7)},
                              {"stop", row.text(8)},
                              {"preemptions", row.integer(9)},
                              {"preempted_ns", row.integer(10)}}));
    COLIBRI_TRY(slice(*track, arrived, admitted, "queue"));
    if (!row.isNull(2)) COLIBRI_TRY(slice(*track, admitted, first, "prefill"));
    if (!row.isNull(3)) COLIBRI_TRY(slice(*track, first, done, "decode"));
    return m_sink.end(*track, done);
}

Status TraceWriter::writeTokens() {
    COLIBRI_TRY(m_run.stage("Tokens"));
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db,
                             "SELECT t, request, idx, token, step_ns, gap_ns, stall_ns, lookups, "
                             "hits, memory_stall_ns FROM tokens ORDER BY rowid"));
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        const int64_t id = rows.integer(1), endNs = toNs(rows.real(0));
        if (!inRange(endNs - rows.integer(4), endNs)) continue;
        RequestTracks& request = m_requests[id];
        if (request.tokens == 0) {  // a damaged session may lack the request
            const auto track = addTrack("Tokens of request " + std::to_string(id), 0, 0);
            if (!track) return track.status();
            request.tokens = *track;
        }
        const int64_t end = std::max(endNs, request.lastNs);
        const int64_t begin = std::max(end - rows.integer(4), request.lastNs);
        request.lastNs = end;
        ++m_counts.slices;
        COLIBRI_TRY(m_sink.begin(request.tokens, begin, "token",
                                 {{"index", rows.integer(2)},
                                  {"token", rows.integer(3)},
                                  {"gap_ns", rows.integer(5)},
                                  {"stall_ns", rows.integer(6)},
                                  {"lookups", rows.integer(7)},
                                  {"hits", rows.integer(8)},
                                  {"memory_stall_ns", rows.integer(9)}}));
        COLIBRI_TRY(m_sink.end(request.tokens, end));
    }
    return rows.status();
}

Result<TrackId> TraceWriter::freeLane(std::string_view name, int64_t beginNs, int64_t endNs) {
    auto it = m_lanes.find(name);
    if (it == m_lanes.end()) it = m_lanes.emplace(name, std::vector<Lane>()).first;
    std::vector<Lane>& lanes = it->second;
    Lane* best = nullptr;  // the one that became free last, so that few lanes are needed
    for (Lane& lane : lanes) {
        if (lane.lastNs <= beginNs && (!best || lane.lastNs > best->lastNs)) best = &lane;
    }
    if (!best) {
        const std::string number =
            lanes.empty() ? "" : " (" + std::to_string(lanes.size() + 1) + ")";
        const auto track = addTrack(std::string(name) + number, m_readGroup, 0);
        if (!track) return track.status();
        best = &lanes.emplace_back(Lane{*track, 0});
    }
    best->lastNs = endNs;
    return best->track;
}

// The parts of a step are sums and have no place in time: they are facts of its slice.
Status TraceWriter::writeSteps() {
    if (!m_db.has("steps", "id")) return {};
    COLIBRI_TRY(m_run.stage("Steps"));
    const auto track = addTrack("Steps", 0, 0);
    if (!track) return track.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        m_db,
        "SELECT id, t, total_ns, rows, prefill_rows, requests, attention_ns, router_ns, "
        "experts_ns, dense_ns, head_ns, sample_ns, stall_slot_ns, stall_disk_ns, stall_link_ns, "
        "stall_memory_ns, stall_prefetch_ns, off_cpu_ns, major_faults FROM steps ORDER BY id"));
    int64_t lastNs = 0;
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        const int64_t end = std::max(toNs(rows.real(1)), lastNs);
        const int64_t begin = std::max(end - rows.integer(2), lastNs);
        if (!inRange(begin, end)) continue;
        lastNs = end;
        ++m_counts.slices;
        COLIBRI_TRY(m_sink.begin(*track, begin, rows.integer(4) > 0 ? "prefill step" : "step",
                                 {{"step", rows.integer(0)},
                                  {"rows", rows.integer(3)},
                                  {"prefill_rows", rows.integer(4)},
                                  {"requests", rows.integer(5)},
                                  {"attention_ns", rows.integer(6)},
                                  {"router_ns", rows.integer(7)},
                                  {"experts_ns", rows.integer(8)},
                                  {"dense_ns", rows.integer(9)},
                                  {"head_ns", rows.integer(10)},
                                  {"sample_ns", rows.integer(11)},
                                  {"stall_slot_ns", rows.integer(12)},
                                  {"stall_disk_ns", rows.integer(13)},
                                  {"stall_link_ns", rows.integer(14)},
                                  {"stall_memory_ns", rows.integer(15)},
                                  {"stall_prefetch_ns", rows.integer(16)},
                                  {"off_cpu_ns", rows.integer(17)},
                                  {"major_faults", rows.integer(18)}}));
        COLIBRI_TRY(m_sink.end(*track, end));
    }
    return rows.status();
}

Status TraceWriter::writeEvictions() {
    if (!m_db.has("evictions", "t")) return {};
    COLIBRI_TRY(m_run.stage("Evictions"));
    const auto track = addTrack("Evictions", 0, 0);
    if (!track) return track.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db,
                             "SELECT t, layer, expert, resident_ns, uses FROM evictions "
                             "WHERE t >= ? AND t <= ? ORDER BY rowid"));
    rows.bind(m_range);
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        m_name = "layer ";
        appendInteger(m_name, rows.integer(1));
        m_name += " expert ";
        appendInteger(m_name, rows.integer(2));
        ++m_counts.instants;
        COLIBRI_TRY(m_sink.instant(*track, toNs(rows.real(0)), m_name,
                                   {{"resident_ns", rows.integer(3)}, {"uses", rows.integer(4)}}));
    }
    return rows.status();
}

Status TraceWriter::readThreads() {
    if (!m_db.has("threads", "id")) return {};
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db, "SELECT id, name FROM threads"));
    while (rows.next()) m_threads[rows.integer(0)] = rows.text(1);
    return rows.status();
}

Status TraceWriter::prepareReads() {
    const auto column = [&](const char* name) { return m_db.columnOrNull("loads", name); };
    return m_readRows.prepare(
        m_db,
        "SELECT rowid, t, layer, expert, reason, bytes, queue_ns, read_ns, need_ns, failed, " +
            column("late") + ", " + column("link_ns") + ", " + column("step") + ", " +
            column("thread") + " FROM loads ORDER BY rowid");
}

// Both tables are read side by side, since their rows are almost in the order of time. The reads
// that ended during a step come before it: an arrow then begins before it ends.
Status TraceWriter::writeStepsAndReads() {
    COLIBRI_TRY(m_run.stage("Layer steps and expert reads"));
    const auto track = addTrack("Layer steps", 0, 0);
    if (!track) return track.status();
    const auto group = addTrack("Expert reads", 0, 0, true);
    if (!group) return group.status();
    m_readGroup = *group;
    COLIBRI_TRY(readThreads());
    COLIBRI_TRY(prepareReads());
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db,
                             "SELECT t, layer, rows, prefill, router_ns, wait_ns, compute_ns, "
                             "lookups, hits, prefetched, routing, " +
                                 m_db.columnOrNull("layer_steps", "step") +
                                 " FROM layer_steps ORDER BY rowid"));
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        COLIBRI_TRY(writeLayerStep(rows, *track));
    }
    COLIBRI_TRY(rows.status());
    return advanceReads(std::numeric_limits<int64_t>::max());
}

Status TraceWriter::advanceReads(int64_t untilNs) {
    while (m_moreReads && m_lastReadNs < untilNs) {
        m_moreReads = m_readRows.next();
        if (!m_moreReads) return m_readRows.status();
        COLIBRI_TRY(m_run.row());
        COLIBRI_TRY(writeRead(m_readRows));
    }
    return {};
}

Status TraceWriter::writeRead(const SessionRows& row) {
    const int64_t end = toNs(row.real(1));
    const int64_t submitted = std::max<int64_t>(end - row.integer(7), 0);
    const int64_t begin = std::max<int64_t>(submitted - row.integer(6), 0);
    m_lastReadNs = std::max(m_lastReadNs, end);
    if (!inRange(begin, end)) return {};
    m_name = row.text(4);
    if (const auto thread = m_threads.find(row.integer(13));
        thread != m_threads.end() && !row.isNull(13)) {
        m_name += ", " + thread->second;
    }
    const auto lane = freeLane(m_name, begin, end);
    if (!lane) return lane.status();
    const int64_t layer = row.integer(2), expert = row.integer(3), needNs = row.integer(8);
    const uint64_t id = uint64_t(row.integer(0));
    const bool waited = needNs > 0 && row.integer(9) == 0;
    if (waited) m_matcher.add(layer, {id, expert, end, row.integer(12)});
    m_name = "layer ";
    appendInteger(m_name, layer);
    m_name += " expert ";
    appendInteger(m_name, expert);
    ++m_counts.slices;
    COLIBRI_TRY(m_sink.begin(*lane, begin, m_name,
                             {{"bytes", row.integer(5)},
                              {"need_ns", needNs},
                              {"failed", row.integer(9)},
                              {"late", row.integer(10)}},
                             waited ? id : 0));
    if (submitted > begin) COLIBRI_TRY(slice(*lane, begin, submitted, "queue"));
    const int64_t onDisk = std::clamp(end - row.integer(11), submitted, end);
    COLIBRI_TRY(slice(*lane, submitted, onDisk, "read"));
    if (end > onDisk) COLIBRI_TRY(slice(*lane, onDisk, end, "link"));
    return m_sink.end(*lane, end);
}

// The session has sums: all waits of a step are drawn as one, before all of its computing.
Status TraceWriter::writeLayerStep(const SessionRows& row, TrackId track) {
    const int64_t end = std::max(toNs(row.real(0)), m_lastStepNs);
    const int64_t routerNs = row.integer(4), waitNs = row.integer(5), computeNs = row.integer(6);
    const int64_t begin = std::max(end - (routerNs + waitNs + computeNs), m_lastStepNs);
    m_lastStepNs = end;
    COLIBRI_TRY(advanceReads(end));
    if (!inRange(begin, end)) return {};
    const int64_t layer = row.integer(1);
    m_name = "layer ";
    appendInteger(m_name, layer);
    ++m_counts.slices;
    COLIBRI_TRY(m_sink.begin(track, begin, m_name,
                             {{"rows", row.integer(2)},
                              {"prefill", row.integer(3)},
                              {"lookups", row.integer(7)},
                              {"hits", row.integer(8)},
                              {"prefetched", row.integer(9)}}));
    std::vector<ReadMatcher::Match> waited;
    if (waitNs > 0) {
        waited = m_matcher.match({layer, begin, end, row.integer(11)}, row.blob(10));
    }
    auto read = waited.begin();
    // The reads that ended before `untilNs`: the ends of the arrows from them.
    const auto arrivals = [&](int64_t untilNs) -> Status {
        for (; read != waited.end() && read->endNs < untilNs; ++read) {
            ++m_counts.flows;
            m_name = "expert ";
            appendInteger(m_name, read->expert);
            m_name += " resident";
            COLIBRI_TRY(m_sink.instant(track, read->endNs, m_name, {}, read->read));
        }
        return {};
    };
    int64_t at = begin;
    const auto part = [&](int64_t ns, std::string_view name) -> Status {
        if (ns <= 0) return {};
        ++m_counts.slices;
        COLIBRI_TRY(m_sink.begin(track, at, name));
        at = std::min(at + ns, end);
        COLIBRI_TRY(arrivals(at));
        return m_sink.end(track, at);
    };
    COLIBRI_TRY(part(routerNs, "router"));
    COLIBRI_TRY(part(waitNs, "wait"));
    COLIBRI_TRY(part(computeNs, "compute"));
    COLIBRI_TRY(arrivals(end + 1));
    return m_sink.end(track, end);
}

Result<TrackId> TraceWriter::addCounter(std::string_view label, TrackId parent) {
    const MetricRow* metric = metricOfLabel(label);
    TraceTrack track;
    track.name = metric ? metric->key : std::string(label);
    if (!m_series.empty() && !m_series.contains(track.name)) return TrackId(0);
    track.id = ++m_lastTrack;
    track.parent = parent;
    track.rank = metric ? int(metric->id) : kSeriesCount;
    track.counter = true;
    if (metric) {
        track.unit = metric->unit;
        track.description = std::string(metric->label) + ": " + metric->definition;
    }
    m_counts.series.push_back(track.name);
    COLIBRI_TRY(m_sink.track(track));
    return track.id;
}

Status TraceWriter::writeCounters() {
    COLIBRI_TRY(m_run.stage("Series"));
    const auto group = addTrack("Series", 0, 0);
    if (!group) return group.status();
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(m_db,
                             "SELECT t, series, value FROM samples WHERE t >= ? AND t <= ? "
                             "ORDER BY rowid"));
    rows.bind(m_range);
    std::map<std::string, TrackId, std::less<>> tracks;
    while (rows.next()) {
        COLIBRI_TRY(m_run.row());
        const std::string_view label = rows.text(1);
        auto it = tracks.find(label);
        if (it == tracks.end()) {
            const auto track = addCounter(label, *group);
            if (!track) return track.status();
            it = tracks.emplace(label, *track).first;
        }
        if (it->second == 0 || rows.isNull(2)) continue;
        ++m_counts.values;
        COLIBRI_TRY(m_sink.counter(it->second, toNs(rows.real(0)), rows.real(2)));
    }
    return rows.status();
}

}  // namespace colibri
