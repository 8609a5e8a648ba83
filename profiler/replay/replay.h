// SPDX-License-Identifier: Apache-2.0
// Runs the requests of a session again. Recorded tokens take the place of sampled ones, so all runs
// do the same work, and their differences come from the knobs alone.
#pragma once

#include <array>
#include <span>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/runtime/engine.h"
#include "profiler/replay/recorded_requests.h"

namespace colibri {

struct ReplaySide {
    Engine& engine;
    // Knobs that keep their value: recorded changes of them are not repeated.
    std::array<bool, kKnobCount> fixed{};
};

enum class ReplayArrivals {
    OneByOne,    // a request begins when the previous one has ended
    AsRecorded,  // at the recorded times, whether or not the previous one has ended (open loop)
};

// One by one, the sides take turns of some tokens while the others are paused, so that a machine
// which becomes slower slows all of them. At the recorded times, the sides run one after the other.
// The engines must be idle. Progress counts tokens. Errors: those of Engine::submit and of the
// requests; Cancelled; Internal (the engine generated other tokens).
Status replayRequests(const RecordedRequests& recorded, std::span<const ReplaySide> sides,
                      ReplayArrivals arrivals, const ProgressFn& progress,
                      const CancelFlag* cancel);

}  // namespace colibri
