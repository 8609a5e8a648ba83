// SPDX-License-Identifier: Apache-2.0
// A load on an engine or a server: who asks when, and what came of it. Times are measured from the
// moment a request was meant to arrive, not from when a free sender got to it, so that a target
// that falls behind shows it (no coordinated omission).
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

// Lines of text, or of JSON where they begin with "{": {"prompt": "..."} or {"messages": [...]}.
// Empty lines are passed over. Errors: BadInput naming the line.
Result<std::vector<LoadPrompt>> parseLoadPrompts(std::string_view text, const std::string& where);
std::vector<LoadPrompt> shippedLoadPrompts();

struct LoadReply {
    std::string error;                             // "busy", "HTTP 500", ...; empty: it went well
    std::optional<uint32_t> promptTokens, tokens;  // none: the target does not tell
    // Monotonic, of each piece of the reply as it came. A piece is one token with most targets;
    // some send several at once.
    std::vector<uint64_t> timesNs;
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
    double arrivalS = 0;                           // intended
    double sentS = 0, firstS = 0, endS = 0;        // firstS: NaN without a first token
    std::optional<uint32_t> promptTokens, tokens;  // as of LoadReply
    std::string error;
};

struct LoadReport {
    std::vector<LoadSample> samples;  // by index
    double durationS = 0;             // to the end of the last reply
    // Of the replies that went well; none when the target does not tell for one of them.
    std::optional<uint64_t> promptTokens = 0, tokens = 0;
    uint64_t pieces = 0;  // of text, of the same replies
    int64_t completed = 0;
    std::map<std::string, int64_t> errors;  // by kind
    // Ns, of the replies that went well. itl: the gaps between pieces.
    Histogram ttft, itl, endToEnd;

    double requestsPerSecond() const;
    double tokensPerSecond() const;  // NaN: unknown
    double tokensPerPiece() const;   // NaN: unknown
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
