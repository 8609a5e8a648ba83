// SPDX-License-Identifier: Apache-2.0
// Replays the expert lookups of a recorded session in caches of other sizes and with other
// policies: hit rates, and the decode rate to expect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "profiler/simulate/curve_point.h"
#include "profiler/simulate/previous_token.h"
#include "profiler/simulate/recorded_routing.h"
#include "profiler/simulate/routing_trace.h"

namespace colibri {

// With prefetching, for the recorded policy.
struct SimulatedPrefetch {
    std::string policy;
    std::vector<PrefetchPoint> previousToken;  // empty: not simulated
    // The predictions of next_router and router_table are not recorded, so their hits cannot be
    // replayed. If the session used such a source, the share of the misses that its prefetches
    // avoided is applied to every size; 0: none was avoided, or another source was used.
    double avoidedShare = 0;
    std::vector<CurvePoint> recordedSource;  // of RecordedSetting::prefetchSource; without rates
};

struct Simulation {
    std::string model;
    uint64_t lookups = 0;
    int64_t moeLayers = 0, experts = 0, topK = 0;
    RecordedSetting recorded;
    std::vector<CurvePoint> lru;                 // cache sizes 1..experts
    std::vector<CurvePoint> slru, lfru, belady;  // some sizes
    SimulatedPrefetch prefetch;
    // Below 1: slru, lfru and belady come from a sample of the experts. The error is that of the
    // sample's lru curve: its estimate (LruCurve::samplingError()), or its largest difference from
    // the exact curve if that is larger.
    double samplingRate = 1, samplingError = 0;
    std::string noDecodeRate;        // why no rate is known; "" if it is
    std::vector<std::string> notes;  // what the simulation leaves out here
};

struct SimulateOptions {
    // A session with more lookups is sampled for slru, lfru and belady; lru is always exact. A
    // lookup takes about 24 bytes of memory.
    int64_t mostLookups = 32 << 20;
    // Sizes for slru, lfru and belady; empty: all up to 32 experts per layer, otherwise some.
    std::vector<int64_t> sizes;
};

// Errors: BadInput (not a session, damaged, no routing), Unsupported (dense model, newer schema),
// Cancelled.
Result<Simulation> simulateSession(const std::filesystem::path& session,
                                   const SimulateOptions& options, const ProgressFn& progress = {},
                                   const CancelFlag* cancel = nullptr);

// Some sizes up to `experts`, closer together where caches are small, with `also`.
std::vector<int64_t> sizesToSimulate(int64_t experts, const std::vector<int64_t>& also);

// The parts of simulateSession(). `decode` may be nullptr: no rates.
std::vector<CurvePoint> simulateLru(const RoutingTrace& trace, const DecodeModel* decode,
                                    double* samplingError = nullptr);
CurvePoint simulatePolicy(const RoutingTrace& trace, CachePolicyKind policy, int64_t cacheSize,
                          const DecodeModel* decode);
std::vector<CurvePoint> simulateBelady(const RoutingTrace& trace, const std::vector<int64_t>& sizes,
                                       const DecodeModel* decode);

}  // namespace colibri
