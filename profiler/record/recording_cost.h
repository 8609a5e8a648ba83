// SPDX-License-Identifier: Apache-2.0
// What recording a session costs: the same tokens with and without it, in turns.
#pragma once

#include <cstdint>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/runtime/engine.h"
#include "profiler/compare/paired_difference.h"

namespace colibri {

struct RecordingCost {
    // Mean time between tokens in ms, without (`before`) and with recording to a file (`after`).
    Difference itl;
    double eventsPerSecond = 0;
    double fileBytesPerSecond = 0;  // of the session file
    double processorShare = 0;      // processor time of the recorder, 1: one processor all the time
    uint64_t dropped = 0;           // events
};

struct RecordingCostOptions {
    int tokens = 128;  // per request
    int rounds = 8;    // a request without and one with recording, in an order that alternates
    uint64_t seed = 1;
};

// Each round runs one request of random tokens three times: first unmeasured, so that the experts
// it needs are equally likely to be in the cache for the other two. The engine must be idle and
// must not be recorded. The session file is temporary. Errors: those of requests and of recording;
// InvalidArgument (too few tokens for an interval); Cancelled.
Result<RecordingCost> measureRecordingCost(Engine& engine, const RecordingCostOptions& options,
                                           const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri
