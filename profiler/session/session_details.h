// SPDX-License-Identifier: Apache-2.0
// The details of a recorded session for its page: changes with their measured effects, the outcomes
// of requests, percentiles over all raw values.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "profiler/metrics/histogram.h"

namespace colibri {

struct SessionDetails {
    struct KnobLine {
        double t = 0;      // seconds since the session began
        std::string name;  // "expert_cache_size"
        std::string requested, effective, reason;
    };
    struct Mark {
        double t = 0;
        std::string kind, label;  // "effect": "Cache size 8 → 16: +57 % tok/s (...)"
    };
    std::vector<KnobLine> atStart;         // values of the knobs when it began
    std::vector<Mark> marks;               // by time
    std::map<std::string, int64_t> stops;  // number of requests by stop reason; "": not ended
    Histogram ttft, itl, expertLoad;       // ns
    uint64_t promptTokens = 0, cachedTokens = 0;
};

// Scans the whole file, so call it from a job. Errors: those of readSessionSummary().
Result<SessionDetails> readSessionDetails(const std::filesystem::path& path);

}  // namespace colibri
