// SPDX-License-Identifier: Apache-2.0
// Divides the time between tokens among named causes.
//
// The gap before a token is the time since the previous token of its request. It consists of the
// token's own step, which the engine divides (table `steps`), the scheduler's work before it, steps
// of the batch in which the request had no row, and time in which the request was preempted.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "profiler/session/session_db.h"

namespace colibri {

enum class Cause : uint8_t {
    DiskWait,      // an expert was read from the disk
    QueueWait,     // a read had no slot, or the queue of reads was full
    LinkWait,      // the link limit
    MemoryWait,    // an expert was read into newly allocated memory: page faults
    PrefetchWait,  // a prefetch of the expert was still being read
    Attention,
    Router,
    Experts,
    Dense,  // feed-forward layers without experts
    Logits,
    Sampling,     // and text, and the callbacks of the caller
    Descheduled,  // the engine's thread was ready but did not run
    Prefill,      // rows of other requests' prompts in the step
    BatchWait,    // steps of the batch in which the request had no row
    Scheduling,   // the engine's work between two steps
    Preempted,    // waiting for readmission, and computing its tokens again
    Count
};
constexpr int kCauseCount = int(Cause::Count);
const char* causeName(Cause cause);  // "disk_wait", for JSON
const char* causeText(Cause cause);  // "disk", for sentences

struct Causes {
    uint64_t tokens = 0;                      // with a gap
    double gapNs = 0;                         // the sum of their gaps
    std::array<double, kCauseCount> ns{};     // parts of it
    double share(Cause cause) const;          // of the gaps; NaN without tokens
    double explained() const;                 // share of the gaps that has a cause
    double ofCompute() const;                 // attention, router, experts, dense, logits
    double ofWaits() const;                   // the five kinds of waits for experts
    std::vector<Cause> largestFirst() const;  // those with time
};

// Errors: Unsupported if the session has no steps (earlier versions did not record them),
// Cancelled.
Result<Causes> causesOf(const SessionDb& db, const TimeRange& range, const CancelFlag* cancel);

}  // namespace colibri
