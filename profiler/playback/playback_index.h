// SPDX-License-Identifier: Apache-2.0
// The tables of a recorded session that are too large to read before its first plot: samples,
// tokens, reads and evictions. The quick index has evenly spread samples and is made in
// milliseconds; the full one has everything.
#pragma once

#include <memory>

#include "profiler/playback/expert_states.h"
#include "profiler/playback/playback_facts.h"
#include "profiler/playback/pooled_values.h"
#include "profiler/playback/recorded_series.h"

namespace colibri {

// Does not change once it is made. Thread-safe.
struct PlaybackIndex {
    bool complete = false;
    RecordedSet series;
    RecordedSeries itlCount;  // values behind ITL P50 and P99
    PooledValues itl, expertLoads;
    std::shared_ptr<const ExpertCheckpoints> experts;  // nullptr: not complete
    std::vector<Status> problems;  // parts of a damaged file that could not be read
};

// With at most so many samples the quick index has all of them.
constexpr int64_t kQuickRows = 1 << 18;

// Never fails: an empty index with a problem if nothing can be read.
std::shared_ptr<const PlaybackIndex> makeQuickIndex(const SessionDb& db);
// Errors: Cancelled.
Result<std::shared_ptr<const PlaybackIndex>> makeFullIndex(const SessionDb& db,
                                                           const PlaybackFacts& facts,
                                                           const ProgressFn& progress,
                                                           const CancelFlag* cancel);

}  // namespace colibri
