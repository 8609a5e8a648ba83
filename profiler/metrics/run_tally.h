// SPDX-License-Identifier: Apache-2.0
// The performance of a model with one set of knobs, from completed replies.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "engine/runtime/request.h"
#include "profiler/metrics/histogram.h"

namespace colibri {

struct RunFigures {
    double decodeTokS = 0;
    double itlP99Ms = 0;
    uint64_t gaps = 0;         // inter-token gaps pooled
    double bytesPerToken = 0;  // of experts read
    double missShare = 0;      // of lookups
    double stallShare = 0;     // of the time of the replies, prompt and decode
};

// Any thread.
class RunTally {
public:
    void add(const RequestResult& result);
    void restart();                            // after a change of knobs
    std::optional<RunFigures> result() const;  // none before 16 gaps

private:
    mutable std::mutex m_mutex;  // guards the following
    Histogram m_gaps;            // ns
    double m_gapSeconds = 0;
    uint64_t m_tokens = 0;
    double m_seconds = 0;  // from the start of each prompt to its last token
    StoreStats m_experts;
};

}  // namespace colibri
