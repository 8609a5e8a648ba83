// SPDX-License-Identifier: Apache-2.0
// A load on an engine or a server: who asks when, and what came of it. Times are measured from the
// moment a request was meant to arrive, not from when a free sender got to it, so that a target
// that falls behind shows it (no coordinated omission).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "profiler/record/histogram.h"

namespace colibri {

struct LoadPrompt {
    nlohmann::ordered_json messages;  // [{"role", "content"}]
};

// Lines of text, or of JSON where they begin with "{": {"prompt": "..."} or {"messages": [...]}.
// Empty lines are passed over. Errors: BadInput naming the line.
Result<std::vector<LoadPrompt>> parseLoadPrompts(std::string_view text, const std::string& where);
std::vector<LoadPrompt> shippedLoadPrompts();

struct LoadReply {
    std::string error;  // "busy", "HTTP 500", ...; empty: it went well
    uint32_t promptTokens = 0, tokens = 0;
    std::vector<uint64_t> timesNs;  // monotonic, of each piece of the reply: tokens as they came
};

class LoadTarget {
public:
    virtual ~LoadTarget() = default;
    // Asks once and waits for the end of the reply. Called from many threads at once. When `cancel`
    // is set meanwhile, it ends with the next piece of the reply and the error "cancelled".
    virtual LoadReply ask(const LoadPrompt& prompt, const CancelFlag& cancel) = 0;
};

struct LoadOptions {
    int users = 4;         // closed loop: each asks again when it has its reply
    double rate = 0;       // > 0: open loop instead, requests / s on average, Poisson arrivals
    uint64_t seed = 1;     // of the arrivals
    int64_t requests = 0;  // 0: no limit
    double durationS = 0;  // no request arrives later; 0: no limit
};

// One request. Times in seconds since the load began.
struct LoadSample {
    int64_t index = 0;
    double arrivalS = 0;                     // intended
    double sentS = 0, firstS = 0, endS = 0;  // firstS: NaN without a first token
    uint32_t promptTokens = 0, tokens = 0;
    std::string error;
};

struct LoadReport {
    std::vector<LoadSample> samples;        // by index
    double durationS = 0;                   // to the end of the last reply
    uint64_t promptTokens = 0, tokens = 0;  // of the replies that went well
    int64_t completed = 0;
    std::map<std::string, int64_t> errors;  // by kind
    Histogram ttft, itl, endToEnd;          // ns, of the replies that went well

    double requestsPerSecond() const;
    double tokensPerSecond() const;
};

// Errors: InvalidArgument (options, no prompts). Progress counts requests. When `cancel` is set,
// what is under way ends and the report has what came until then.
Result<LoadReport> runLoad(LoadTarget& target, const std::vector<LoadPrompt>& prompts,
                           const LoadOptions& options, const ProgressFn& progress,
                           const CancelFlag& cancel);

// One line per request, with a header.
std::string loadCsv(const LoadReport& report);
nlohmann::ordered_json loadJson(const LoadReport& report);

}  // namespace colibri
