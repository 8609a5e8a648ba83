// SPDX-License-Identifier: Apache-2.0
// The figures of a session, or of a range of it, that verdicts are made from.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/base/progress.h"
#include "engine/knobs/knobs.h"
#include "profiler/explain/causes.h"
#include "profiler/metrics/histogram.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct SessionFacts {
    Causes causes;

    // The knobs at the end of the range, by name; a number, or the index of a choice.
    std::map<std::string, int64_t> knobs;
    int64_t knob(KnobId id) const;  // the default where the session does not tell

    // ---- decoding ----
    Histogram itl;                   // ns
    double requests = 0;             // mean per decode step
    double tokensPerSecond() const;  // of one request; NaN without tokens

    // ---- experts ----
    int64_t experts = 0, topK = 0, moeLayers = 0;  // 0: a dense model, or unknown
    int64_t lookups = 0, hits = 0, prefetched = 0;
    int64_t demandReads = 0;
    double demandBytes = 0, prefetchBytes = 0;
    double diskBusySeconds = 0;  // at least one read was on the disk
    double prefetchSeconds = 0;  // spent by prefetch reads, summed over them
    double seconds = 0;          // in which tokens were generated
    struct {
        int64_t issued = 0, useful = 0, late = 0, wasted = 0, cancelled = 0;
    } prefetch;

    // How the uses of a layer's experts are spread, as a mean over the layers; nullopt: no routing.
    struct Spread {
        double hottestQuarter = 0;  // share of the uses by the most used quarter of the experts
        double entropy = 0;         // of the uses, relative to an even spread: 0..1
        double overlap = 0;         // share of a token's experts that the token before it used too
    };
    std::optional<Spread> spread;

    // ---- requests ----
    int64_t admitted = 0, joinedByTimeout = 0;
    double medianQueueMs = 0;

    // ---- the machine, 0: unknown ----
    double diskBytesPerSecond = 0, memoryBytesPerSecond = 0, bytesPerToken = 0;
    double kernelBytesPerSecond = 0;  // of weights, by the kernels of the experts' type
    int64_t ratesMeasuredAt = 0;      // seconds since 1970
    int64_t cores = 0, numaNodes = 0;
    double remoteMemoryShare = 0;  // rate of another node's memory, relative to the own node's

    std::string note;  // what the figures leave out: "detail before ... was thinned"; "": nothing
};

// Scans the range. Errors: those of causesOf() and of reading.
Result<SessionFacts> readSessionFacts(const SessionDb& db, const TimeRange& range,
                                      const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri
