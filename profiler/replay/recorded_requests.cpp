// SPDX-License-Identifier: Apache-2.0
#include "profiler/replay/recorded_requests.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr int64_t kRequestsCancelEvery = 4096;  // rows

struct Reading {
    const SessionDb& db;
    const CancelFlag* cancel;
    std::vector<ReplayedRequest> requests;
    std::vector<size_t> promptTokens;  // recorded count, of each request
    std::map<int64_t, size_t> number;  // of a request, by its id
    std::vector<bool> cutReply;        // a token is missing
    int64_t rows = 0;

    Status cancelled() {
        if (++rows % kRequestsCancelEvery == 0 && cancel && cancel->load())
            return {Code::Cancelled, "reading the session was cancelled"};
        return {};
    }
    const size_t* find(int64_t id) const {
        const auto it = number.find(id);
        return it == number.end() ? nullptr : &it->second;
    }
};

Status readArrivals(Reading& reading) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(
        reading.db, "SELECT id, arrived, prompt_tokens FROM requests ORDER BY arrived, id"));
    while (rows.next()) {
        reading.number[rows.integer(0)] = reading.requests.size();
        reading.requests.emplace_back();
        reading.requests.back().arrivedS = rows.real(1);
        reading.promptTokens.push_back(size_t(std::max<int64_t>(0, rows.integer(2))));
    }
    reading.cutReply.resize(reading.requests.size());
    return rows.status();
}

Status readPrompts(Reading& reading) {
    if (!reading.db.has("prompts", "tokens")) return {};
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(reading.db,
                             "SELECT request, first, tokens FROM prompts ORDER BY request, first"));
    while (rows.next()) {
        COLIBRI_TRY(reading.cancelled());
        const size_t* const at = reading.find(rows.integer(0));
        if (!at) continue;
        std::vector<int32_t>& prompt = reading.requests[*at].prompt;
        if (rows.integer(1) != int64_t(prompt.size())) continue;  // a part before it is missing
        const std::span<const uint8_t> bytes = rows.blob(2);
        const size_t count = bytes.size() / sizeof(int32_t);
        prompt.resize(prompt.size() + count);
        if (count > 0) std::memcpy(&prompt[prompt.size() - count], bytes.data(), count * 4);
    }
    return rows.status();
}

struct TimedChange {
    double t;
    KnobId knob;
    int64_t requested;
};

// Values at the start into `knobs`, later requests in the order of time.
Status readKnobs(const Reading& reading, KnobValues& knobs, std::vector<TimedChange>& changes) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(reading.db, "SELECT t, name, requested FROM knobs ORDER BY t, rowid"));
    KnobValues last;
    while (rows.next()) {
        const KnobRow* const row = findKnob(rows.text(1));
        if (!row) continue;
        const Result<int64_t> value =
            parseKnobValue(*row, rows.text(2), {row->min, row->max, row->defaultValue});
        if (!value) continue;
        const bool start = rows.real(0) <= 0;
        std::optional<int64_t>& now = last[size_t(row->id)];
        if (start) {
            knobs[size_t(row->id)] = *value;
        } else if (row->live && now != *value) {  // equal: only the effective value changed
            changes.push_back({rows.real(0), row->id, *value});
        }
        now = *value;
    }
    return rows.status();
}

// Tokens in the order of time, each after the changes that came before it.
Status readReplies(Reading& reading, const std::vector<TimedChange>& changes) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(reading.db, "SELECT t, request, idx, token FROM tokens ORDER BY t"));
    size_t nextChange = 0;
    while (rows.next()) {
        COLIBRI_TRY(reading.cancelled());
        const size_t* const at = reading.find(rows.integer(1));
        if (!at) continue;
        ReplayedRequest& request = reading.requests[*at];
        if (rows.integer(2) != int64_t(request.reply.size())) reading.cutReply[*at] = true;
        if (reading.cutReply[*at]) continue;
        for (; nextChange < changes.size() && changes[nextChange].t < rows.real(0); ++nextChange)
            request.changes.push_back(
                {request.reply.size(), changes[nextChange].knob, changes[nextChange].requested});
        request.reply.push_back(int32_t(rows.integer(3)));
    }
    return rows.status();
}

std::string requestCount(int64_t count) {
    return formatCount(count) + (count == 1 ? " request" : " requests");
}

void keepComplete(Reading& reading, RecordedRequests& out) {
    int64_t withoutPrompt = 0, withoutReply = 0, cut = 0;
    std::vector<ReplayedRequest::Change> carried;  // of requests that are left out
    for (size_t i = 0; i < reading.requests.size(); ++i) {
        ReplayedRequest& request = reading.requests[i];
        const bool complete =
            !request.prompt.empty() && request.prompt.size() == reading.promptTokens[i];
        if (!complete || request.reply.empty()) {
            ++(complete ? withoutReply : withoutPrompt);
            carried.insert(carried.end(), request.changes.begin(), request.changes.end());
            continue;
        }
        cut += reading.cutReply[i];
        for (ReplayedRequest::Change& change : carried) change.tokens = 0;
        request.changes.insert(request.changes.begin(), carried.begin(), carried.end());
        carried.clear();
        out.requests.push_back(std::move(request));
    }
    if (withoutPrompt > 0)
        out.notes.push_back(requestCount(withoutPrompt) +
                            " left out: the file does not hold the whole prompt");
    if (withoutReply > 0)
        out.notes.push_back(requestCount(withoutReply) + " left out: no token was recorded");
    if (cut > 0)
        out.notes.push_back(requestCount(cut) +
                            " replayed in part: some tokens of the reply were not recorded");
}

}  // namespace

int64_t RecordedRequests::tokens() const {
    int64_t sum = 0;
    for (const ReplayedRequest& request : requests) sum += int64_t(request.reply.size());
    return sum;
}

Result<RecordedRequests> readRecordedRequests(const SessionDb& session, const CancelFlag* cancel) {
    RecordedRequests out;
    out.model = session.meta("model");
    out.modelDir = session.meta("model_dir");
    out.fingerprint = session.meta("model_fingerprint");
    Reading reading{session, cancel, {}, {}, {}, {}};
    std::vector<TimedChange> changes;
    COLIBRI_TRY(readArrivals(reading));
    COLIBRI_TRY(readPrompts(reading));
    COLIBRI_TRY(readKnobs(reading, out.knobs, changes));
    COLIBRI_TRY(readReplies(reading, changes));
    keepComplete(reading, out);
    if (out.requests.empty()) {
        std::string why = reading.requests.empty() ? "it has no requests" : out.notes.front();
        return Status(Code::Unsupported,
                      "session " + session.name() + " cannot be replayed: " + why,
                      "Record a new session with --session or in the workbench");
    }
    return out;
}

}  // namespace colibri
