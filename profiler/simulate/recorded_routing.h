// SPDX-License-Identifier: Apache-2.0
// A session's lookups and the times of its tokens, ready to simulate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "profiler/session/routing_reader.h"
#include "profiler/simulate/decode_model.h"
#include "profiler/simulate/routing_trace.h"

namespace colibri {

// The setting that the session was recorded with, and what it measured.
struct RecordedSetting {
    int64_t cacheSize = 0;  // at the start; 0: unknown
    std::string policy, prefetchSource;
    int64_t prefetchDepth = 0;   // layers ahead
    int64_t changes = 0;         // of cache size or policy during the session
    double hitRate = 0;          // 0..1, with prefetching if it was on
    double prefetchedShare = 0;  // of the lookups, hits because of a prefetch
    double decodeTokS = 0;       // of one request; NaN: unknown
    int64_t preloaded = 0;       // experts of the warm start
};

struct RecordedRouting {
    RoutingFacts facts;
    RecordedSetting setting;
    std::unique_ptr<KeySample> sample;
    std::unique_ptr<RoutingTrace> trace;
    std::unique_ptr<DecodeModel> decode;
};

// Keeps all lookups in memory, or those of a sample of the keys if there are more than
// `mostLookups`. Errors: those of readRoutingFacts() and readRouting().
Result<RecordedRouting> readRecordedRouting(const std::filesystem::path& session,
                                            int64_t mostLookups, const ProgressFn& progress,
                                            const CancelFlag* cancel);

// Reads the whole session again: all lookups, in order. `step` counts from 0.
struct LookupVisitor {
    std::function<void(uint32_t key)> preload;
    std::function<void(uint32_t step, std::span<const uint32_t> keys)> request;
};
Status visitLookups(const RecordedRouting& recorded, const LookupVisitor& visitor,
                    const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri
