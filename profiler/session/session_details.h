// SPDX-License-Identifier: Apache-2.0
// What happened in a recorded session: its changes with their measured effects, its requests and
// how they ended, percentiles over every raw value. For the page of a session.
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
    std::map<std::string, int64_t> stops;  // requests by how they ended; "" = not ended
    Histogram ttft, itl, expertLoad;       // ns
    uint64_t promptTokens = 0, cachedTokens = 0;
};

// A scan of the whole file: for a job. Errors as readSessionSummary().
Result<SessionDetails> readSessionDetails(const std::filesystem::path& path);

}  // namespace colibri
