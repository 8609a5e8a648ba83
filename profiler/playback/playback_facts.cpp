// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/playback_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "profiler/metrics/metrics.h"
#include "profiler/playback/recorded_effects.h"

namespace colibri {
namespace {

constexpr double kNotRecorded = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMostShownExperts = 1 << 16, kMostShownLayers = 1 << 12;  // of a damaged file
constexpr int64_t kShapeRows = 8192;  // rows in which every MoE layer occurs

double recordedNumber(const SessionDb& db, const char* key) {
    const std::string text = db.meta(key);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return std::isfinite(value) ? value : 0;
}

int64_t wholeNumber(const SessionDb& db, const char* key) {
    const double value = recordedNumber(db, key);
    return std::abs(value) < 9e15 ? int64_t(value) : 0;
}

std::optional<int64_t> recordedValue(const KnobRow& row, std::string_view text) {
    for (size_t i = 0; i < row.choices.size(); ++i)
        if (text == row.choices[i]) return int64_t(i);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (!row.choices.empty() && (value < 0 || value >= int64_t(row.choices.size())))
        return std::nullopt;
    return value;
}

// The layers with experts, from the first rows of the tables that name them; all layers if nothing
// was computed.
Status readShape(const SessionDb& db, PlaybackFacts* facts) {
    facts->layers = std::clamp<int64_t>(wholeNumber(db, "layers"), 0, kMostShownLayers);
    facts->experts = wholeNumber(db, "experts");
    if (facts->experts < 0 || facts->experts > kMostShownExperts) facts->experts = 0;
    facts->topK = wholeNumber(db, "top_k");
    facts->expertBytes = wholeNumber(db, "expert_bytes");
    facts->contextLength = wholeNumber(db, "context_length");
    facts->cores = wholeNumber(db, "cores");
    facts->diskBytesPerSecond = recordedNumber(db, "disk_bytes_per_s");
    facts->memoryBytesPerSecond = recordedNumber(db, "memory_bytes_per_s");
    facts->detailFrom = recordedNumber(db, "thinned_detail_before");
    facts->tokensFrom = recordedNumber(db, "thinned_tokens_before");
    if (facts->experts == 0) return {};
    std::set<int64_t> seen;
    Status status;
    for (const char* table : {"layer_steps", "loads"}) {
        SessionRows rows;
        Status read = rows.prepare(db, "SELECT layer FROM " + std::string(table) +
                                           " ORDER BY rowid LIMIT " + std::to_string(kShapeRows));
        while (read.ok() && rows.next())
            if (rows.integer(0) >= 0 && rows.integer(0) < kMostShownLayers)
                seen.insert(rows.integer(0));
        if (read.ok()) read = rows.status();
        if (!read.ok()) status = read;
    }
    facts->moeLayers.assign(seen.begin(), seen.end());
    for (int64_t layer = 0; seen.empty() && layer < facts->layers; ++layer)
        facts->moeLayers.push_back(layer);
    return status;
}

Status readDuration(const SessionDb& db, PlaybackFacts* facts) {
    facts->duration = std::max(db.summary().lastTime, 0.0);
    for (const char* table : {"samples", "tokens"}) {
        SessionRows last;
        COLIBRI_TRY(last.prepare(
            db, "SELECT t FROM " + std::string(table) + " ORDER BY rowid DESC LIMIT 1"));
        if (last.next() && std::isfinite(last.real(0)))
            facts->duration = std::max(facts->duration, last.real(0));
        COLIBRI_TRY(last.status());
    }
    return {};
}

Status readRequests(const SessionDb& db, PlaybackFacts* facts) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT id, arrived, admitted, first_token, done, prompt_tokens, "
                             "cached_tokens, generated, stop FROM requests"));
    while (rows.next()) {
        RecordedRequest r;
        r.id = uint64_t(rows.integer(0));
        r.arrived = rows.real(1);
        r.admitted = rows.real(2);
        r.firstToken = rows.real(3);
        r.done = rows.real(4);
        r.promptTokens = rows.integer(5);
        r.cachedTokens = rows.integer(6);
        r.generated = rows.integer(7);
        r.stop = rows.text(8);
        if (!std::isfinite(r.admitted)) continue;  // it never ran
        r.ended = std::isfinite(r.done);
        if (r.ended) facts->duration = std::max(facts->duration, r.done);
        facts->requests.push_back(std::move(r));
    }
    for (RecordedRequest& r : facts->requests)
        if (!r.ended) r.done = facts->duration;
    std::sort(facts->requests.begin(), facts->requests.end(), [](const auto& a, const auto& b) {
        return a.admitted != b.admitted ? a.admitted < b.admitted : a.id < b.id;
    });
    return rows.status();
}

Status readKnobRows(const SessionDb& db, PlaybackFacts* facts) {
    SessionRows rows;
    COLIBRI_TRY(
        rows.prepare(db, "SELECT t, name, requested, effective, reason FROM knobs ORDER BY rowid"));
    while (rows.next()) {
        const KnobRow* row = findKnob(std::string(rows.text(1)));
        if (!row) continue;
        const auto requested = recordedValue(*row, rows.text(2));
        const auto effective = recordedValue(*row, rows.text(3));
        if (!requested || !effective || !std::isfinite(rows.real(0))) continue;
        facts->knobs.push_back(
            {rows.real(0), row->id, {*requested, *effective, std::string(rows.text(4))}});
    }
    std::stable_sort(facts->knobs.begin(), facts->knobs.end(),
                     [](const auto& a, const auto& b) { return a.t < b.t; });
    return rows.status();
}

// The file does not say whether a note was written by the user or by the engine, which notes that
// memory was prepared.
bool isOfEngine(const std::string& note) {
    return note.starts_with("memory for ") && note.find(" prepared in ") != std::string::npos;
}

Event noteOf(const std::string& text) {
    Event event{};
    event.type = EventType::Note;
    text.copy(event.note.text, sizeof event.note.text - 1);
    return event;
}

struct Mark {
    double t;
    std::string kind, label;
};

Status readMarks(const SessionDb& db, std::vector<Mark>* marks) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, kind, label FROM marks"));
    while (rows.next())
        marks->push_back({rows.real(0), std::string(rows.text(1)), std::string(rows.text(2))});
    return rows.status();
}

Event eventOf(const RecordedKnob& knob) {
    Event event{};
    event.type = EventType::KnobChanged;
    event.knob.knob = uint8_t(knob.knob);
    event.knob.requested = knob.state.requested;
    event.knob.effective = knob.state.effective;
    knob.state.reason.copy(event.knob.reason, sizeof event.knob.reason - 1);
    return event;
}

Event eventOf(EventType type, const RecordedRequest& request) {
    Event event{};
    event.type = type;
    event.request.request = request.id;
    if (request.stop == stopReasonName(StopReason::Error)) event.request.stop = StopReason::Error;
    return event;
}

// The effect of each change, from the mark with its label that was set at it or, for a drag, at its
// beginning.
void setEffects(const std::vector<Mark>& marks, std::vector<Marker>* markers) {
    for (Marker& marker : *markers) {
        if (marker.kind != Marker::Kind::Knob || marker.automatic) continue;
        marker.effect = Marker::Effect::NotMeasured;
        marker.settling = marker.refining = false;
        marker.reason = "the session has no result for it";
        const std::string begin = marker.label + ": ";
        double best = -1;
        for (const Mark& mark : marks) {
            if (mark.kind != "effect" || mark.t > marker.t + 1e-6 || mark.t < best) continue;
            if (!mark.label.starts_with(begin)) continue;
            if (readEffect(std::string_view(mark.label).substr(begin.size()), &marker))
                best = mark.t;
        }
    }
}

// The markers come from the same code as those of a live session.
void makeMarkers(const std::vector<Mark>& marks, PlaybackFacts* facts) {
    Metrics metrics(int64_t(facts->moeLayers.size()), facts->experts, facts->moeLayers);
    struct Item {
        double t;
        Event event;
        const Mark* note;
    };
    std::vector<Item> items;
    for (const RecordedKnob& knob : facts->knobs) items.push_back({knob.t, eventOf(knob), nullptr});
    for (const RecordedRequest& r : facts->requests) {
        items.push_back({r.admitted, eventOf(EventType::RequestAdmitted, r), nullptr});
        items.push_back({r.done, eventOf(EventType::RequestDone, r), nullptr});
    }
    for (const Mark& mark : marks)
        if (mark.kind == "note" && std::isfinite(mark.t)) items.push_back({mark.t, {}, &mark});
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.t < b.t; });
    for (const Item& item : items) {
        if (item.note && isOfEngine(item.note->label))
            metrics.add(noteOf(item.note->label), item.t);
        else if (item.note)
            metrics.note(item.t, item.note->label);
        else
            metrics.add(item.event, item.t);
    }
    Snapshot snapshot;
    metrics.fill(snapshot);
    facts->markers = std::move(snapshot.markers);
    setEffects(marks, &facts->markers);
}

}  // namespace

int64_t PlaybackFacts::cellOf(int64_t layer, int64_t expert) const {
    const auto it = std::lower_bound(moeLayers.begin(), moeLayers.end(), layer);
    if (it == moeLayers.end() || *it != layer || expert < 0 || expert >= experts) return -1;
    return (it - moeLayers.begin()) * experts + expert;
}

int PlaybackFacts::turnsAt(double t) const {
    const auto it = std::upper_bound(
        requests.begin(), requests.end(), t,
        [](double at, const RecordedRequest& request) { return at < request.admitted; });
    return int(it - requests.begin());
}

int PlaybackFacts::runningAt(double t) const {
    return int(std::count_if(requests.begin(), requests.end(),
                             [t](const RecordedRequest& request) { return request.ranAt(t); }));
}

double PlaybackFacts::lastRanBefore(double t) const {
    double last = kNotRecorded;
    for (const RecordedRequest& request : requests) {
        if (request.admitted > t) break;
        const double end = std::min(t, request.done);
        if (!(end <= last)) last = end;
    }
    return last;
}

std::array<KnobState, kKnobCount> PlaybackFacts::knobsAt(double t) const {
    std::array<KnobState, kKnobCount> states;
    for (const KnobRow& row : knobTable())
        states[size_t(row.id)] = {row.defaultValue, row.defaultValue, ""};
    for (const RecordedKnob& knob : knobs) {
        if (knob.t > t) break;
        states[size_t(knob.knob)] = knob.state;
    }
    return states;
}

PlaybackFacts readPlaybackFacts(const SessionDb& db) {
    PlaybackFacts facts;
    std::vector<Mark> marks;
    for (const Status& status :
         {readShape(db, &facts), readDuration(db, &facts), readRequests(db, &facts),
          readKnobRows(db, &facts), readMarks(db, &marks)})
        if (!status.ok()) facts.problems.push_back(status);
    makeMarkers(marks, &facts);
    return facts;
}

}  // namespace colibri
