// SPDX-License-Identifier: Apache-2.0
// A load test of an engine or a server: the arrival of requests, and their results. Times count
// from the intended arrival of a request, not from when a free sender sent it, so that the result
// shows when a target falls behind (no coordinated omission).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "profiler/metrics/histogram.h"

namespace colibri {

struct LoadPrompt {
    nlohmann::ordered_json messages;  // [{"role", "content"}]
};

// Parses lines of text, or of JSON if they begin with "{": {"prompt": "..."} or {"messages":
// [...]}. Ignores empty lines. Errors: BadInput naming the line.
Result<std::vector<LoadPrompt>> parseLoadPrompts(std::string_view text, const std::string& where);
std::vector<LoadPrompt> shippedLoadPrompts();

struct LoadReply {
    std::string error;                             // "busy", "HTTP 500", ...; empty: success
    std::optional<uint32_t> promptTokens, tokens;  // none: not reported by the target
    // Monotonic arrival times of the pieces of the reply. A piece is one token for most targets;
    // some send several tokens at once.
    std::vector<uint64_t> timesNs;
};

class LoadTarget {
public:
    virtual ~LoadTarget() = default;
    // Sends one request and waits for the end of the reply. Called from many threads at once. If
    // `cancel` is set, it ends after the next piece of the reply with the error "cancelled".
    virtual LoadReply send(const LoadPrompt& prompt, const CancelFlag& cancel) = 0;
};

struct LoadOptions {
    int users = 4;         // closed loop: each sends its next request after the reply
    double rate = 0;       // > 0: open loop instead, requests / s on average, Poisson arrivals
    uint64_t seed = 1;     // of the arrivals
    int64_t requests = 0;  // 0: no limit
    double durationS = 0;  // seconds in which requests arrive; 0: no limit
};

// One request. Times in seconds since the start of the test.
struct LoadSample {
    int64_t index = 0;
    double arrivalS = 0;                           // intended
    double sentS = 0, firstS = 0, endS = 0;        // firstS: NaN without a first token
    std::optional<uint32_t> promptTokens, tokens;  // as in LoadReply
    std::string error;
};

struct LoadReport {
    std::vector<LoadSample> samples;  // by index
    double durationS = 0;             // to the end of the last reply
    // Sums over the successful replies; none if the target does not report them for every reply.
    std::optional<uint64_t> promptTokens = 0, tokens = 0;
    uint64_t pieces = 0;  // pieces of text of the same replies
    int64_t completed = 0;
    std::map<std::string, int64_t> errors;  // by kind
    // Nanoseconds, successful replies only. itl: the gaps between pieces.
    Histogram ttft, itl, endToEnd;

    double requestsPerSecond() const;
    double tokensPerSecond() const;  // NaN: unknown
    double tokensPerPiece() const;   // NaN: unknown
};

// Errors: InvalidArgument (options, no prompts). Progress counts requests. If `cancel` is
// set, running requests end and the report contains the results so far.
Result<LoadReport> runLoad(LoadTarget& target, const std::vector<LoadPrompt>& prompts,
                           const LoadOptions& options, const ProgressFn& progress,
                           const CancelFlag& cancel);

// One line per request, with a header.
std::string loadCsv(const LoadReport& report);
nlohmann::ordered_json loadJson(const LoadReport& report);

}  // namespace colibri
