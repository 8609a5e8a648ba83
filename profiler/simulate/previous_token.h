// SPDX-License-Identifier: Apache-2.0
// Simulates the prefetch source previous_token: the experts that a sequence's previous token used
// are read ahead for the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/knobs/knobs.h"
#include "profiler/simulate/curve_point.h"
#include "profiler/simulate/recorded_routing.h"

namespace colibri {

struct PrefetchOptions {
    CachePolicyKind policy = CachePolicyKind::Lru;
    int64_t depth = 1;  // layers ahead
    std::vector<int64_t> sizes;
};

struct PrefetchPoint {
    CurvePoint point;
    double prefetchedShare = 0;  // of the lookups, hits because of a prefetch
    double readsPerToken = 0;    // prefetches per decoded token
};

// The hints are exact: the recorded routing names them. How many of them are read in time is
// estimated: between two layers the disk reads as many experts as fit into the recorded time
// without waits, one after the other, at the mean duration of the recorded reads. Reads the whole
// session. Errors: those of readRouting().
Result<std::vector<PrefetchPoint>> simulatePreviousToken(const RecordedRouting& recorded,
                                                         const PrefetchOptions& options,
                                                         const ProgressFn& progress,
                                                         const CancelFlag* cancel);

}  // namespace colibri
