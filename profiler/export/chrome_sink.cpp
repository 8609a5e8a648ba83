// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/chrome_sink.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiler/export/json_text.h"

namespace colibri {

std::string jsonString(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status ChromeSink::start(const std::string& title) {
    COLIBRI_TRY(m_file.append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":["));
    return metadata(0, "process_name", "{\"name\":" + jsonString(title) + "}");
}

Status ChromeSink::metadata(TrackId track, const char* name, const std::string& value) {
    m_line = "{\"ph\":\"M\",\"pid\":1,\"tid\":";
    appendInteger(m_line, int64_t(track));
    m_line += ",\"name\":\"";
    m_line += name;
    m_line += "\",\"args\":";
    m_line += value;
    return write();
}

Status ChromeSink::track(const TraceTrack& track) {
    if (track.counter) {
        m_counters[track.id] = {
            jsonString(track.unit.empty() ? track.name : track.name + " (" + track.unit + ")"),
            jsonString(track.unit.empty() ? "value" : track.unit)};
        return {};
    }
    const auto parent = m_names.find(track.parent);
    std::string& name = m_names[track.id];
    name = parent == m_names.end() ? track.name : parent->second + ": " + track.name;
    COLIBRI_TRY(metadata(track.id, "thread_name", "{\"name\":" + jsonString(name) + "}"));
    return metadata(track.id, "thread_sort_index",
                    "{\"sort_index\":" + std::to_string(track.id) + "}");
}

void ChromeSink::open(char phase, TrackId track, int64_t ns) {
    m_line = "{\"ph\":\"";
    m_line += phase;
    m_line += "\",\"pid\":1,\"tid\":";
    appendInteger(m_line, int64_t(track));
    m_line += ",\"ts\":";  // microseconds
    ns = std::max<int64_t>(ns, 0);
    appendInteger(m_line, ns / 1000);
    const int rest = int(ns % 1000);
    const char digits[] = {'.', char('0' + rest / 100), char('0' + rest / 10 % 10),
                           char('0' + rest % 10)};
    m_line.append(digits, sizeof digits);
}

void ChromeSink::add(TraceArgs args) {
    if (args.empty()) return;
    char before = '{';
    m_line += ",\"args\":";
    for (const TraceArg& arg : args) {
        m_line += before;
        before = ',';
        m_line += '"';
        m_line += arg.name;
        m_line += "\":";
        if (arg.kind == TraceArg::Kind::Integer) appendInteger(m_line, arg.integer);
        if (arg.kind == TraceArg::Kind::Real) appendReal(m_line, arg.real);
        if (arg.kind == TraceArg::Kind::Text) m_line += jsonString(arg.text);
    }
    m_line += '}';
}

Status ChromeSink::begin(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                         uint64_t flowId) {
    open('B', track, ns);
    m_line += ",\"name\":";
    m_line += jsonString(name);
    add(args);
    COLIBRI_TRY(write());
    return flowId == 0 ? Status() : flow('s', track, ns, flowId);
}

Status ChromeSink::end(TrackId track, int64_t ns) {
    open('E', track, ns);
    return write();
}

Status ChromeSink::flow(char phase, TrackId track, int64_t ns, uint64_t id) {
    open(phase, track, ns);
    m_line += ",\"cat\":\"read\",\"name\":\"read\",\"id\":";
    appendInteger(m_line, int64_t(id));
    if (phase == 'f') m_line += ",\"bp\":\"e\"";  // binds to the slice around it
    return write();
}

Status ChromeSink::instant(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                           uint64_t flowId) {
    open('i', track, ns);
    m_line += ",\"s\":\"t\",\"name\":";
    m_line += jsonString(name);
    add(args);
    COLIBRI_TRY(write());
    return flowId == 0 ? Status() : flow('f', track, ns, flowId);
}

Status ChromeSink::counter(TrackId track, int64_t ns, double value) {
    const Counter& counter = m_counters[track];
    open('C', 0, ns);
    m_line += ",\"name\":" + counter.name + ",\"args\":{" + counter.unit + ":";
    appendReal(m_line, value);
    m_line += '}';
    return write();
}

Status ChromeSink::write() {
    m_line += '}';
    COLIBRI_TRY(m_file.append(m_first ? "\n" : ",\n"));
    m_first = false;
    return m_file.append(m_line);
}

}  // namespace colibri
