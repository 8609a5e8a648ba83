// SPDX-License-Identifier: Apache-2.0
// Compares two sessions: what was configured differently, and how the figures differ.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/progress.h"
#include "profiler/compare/paired_difference.h"
#include "profiler/metrics/histogram.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct SessionComparison {
    // Why the sessions should not be compared: another model, other prompts. Empty: they can be.
    std::vector<std::string> whyNot;
    // The same tokens in the same order: the differences are paired, token by token.
    bool matched = false;

    struct KnobDifference {
        std::string name, before, after;  // "n/a": not recorded
    };
    std::vector<KnobDifference> knobs;  // at the start of the sessions

    struct Row {
        const char* name;  // "decode_tok_s", "itl_p50_ms", "itl_p99_ms", "ttft_ms", "hit_rate",
                           // "bytes"
        Difference difference;
    };
    std::vector<Row> figures;
    // Differences of ITL quantiles: shares of the tokens and after - before in ms.
    std::vector<std::pair<double, double>> quantiles;
    Histogram itlBefore, itlAfter;  // ns
};

// Errors: those of reading; Cancelled.
Result<SessionComparison> compareSessions(const SessionDb& before, const SessionDb& after,
                                          const CancelFlag* cancel);

}  // namespace colibri
