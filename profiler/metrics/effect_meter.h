// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/telemetry/events.h"
#include "profiler/metrics/effect.h"
#include "profiler/metrics/stack_distances.h"

namespace colibri {

// Measures what a knob change does to decode speed: the steps before it against the steps after it,
// like with like. No thread and no clock of its own; fed with events in order of time.
//
// - A stretch begins at each change (and at the session's start) and first settles: its steps count
//   once few of its misses are owed to what the cache held before the stretch, kMostSettling steps
//   at most, and its speed no longer drifts.
// - Only steps at the same number of requests are compared.
// - It goes on, estimate after estimate, until more steps would not help: see estimateEffect().
class EffectMeter {
public:
    static constexpr int kNeeded = 64;   // steps after a change for a first estimate
    static constexpr int kFewest = 192;  // steps after a change before an estimate may be final
    static constexpr int kMinimum = 24;  // settled steps before a change
    static constexpr int kMost = 512;    // steps on each side that are used
    static constexpr int kMostSettling = 256;
    static constexpr int kMostElsewhere = 128;  // steps at other loads before it is given up

    EffectMeter(int64_t moeLayers, int64_t experts);

    // What the engine does, in order: a step begins, its rows are routed, its tokens come out.
    void addStep(int requests);
    void addLookups(int64_t moeLayer, const LayerStepEvent& step);
    void addToken(double gapNs);
    // Experts that the cache holds, all layers together. The default is all of them.
    void setCacheSlots(int64_t slots);

    // A knob has changed: what came in this stretch is the side before. Returns why that cannot be
    // measured, "" when the measurement has begun. One that still ran ends.
    std::string begin();
    // A further step of the same change: the side after begins anew.
    void restart();
    void end() { m_measuring = false; }

    struct Progress {
        bool settling = false;
        int steps = 0;  // measured so far at the load with most of them
        std::optional<EffectEstimate> estimate;
        // Of the estimate: its steps on each side, and the requests in each of them.
        int before = 0, after = 0, requests = 0;
        bool final = false;   // more steps would not help, or cannot come
        std::string failure;  // final and without an estimate: why
    };
    bool measuring() const { return m_measuring; }
    const Progress& progress() const { return m_progress; }
    // Why a measurement that ends now has no estimate; `why` is what ended it.
    std::string endedEarly(const std::string& why) const;

private:
    struct Step {
        int stretch;
        bool counts;  // settled
        int requests;
        int tokens = 0;
        double gapNs = 0;                 // mean of its tokens
        std::vector<uint32_t> distances;  // of its lookups
    };
    struct Settling {
        int steps = 0;
        bool done = false;
        // Of the last steps: lookups, misses, and misses owed to the time before the stretch.
        std::deque<std::array<int, 3>> recent;
    };
    void newStretch();
    void settle();
    void evaluate(int requests);
    void dropOldest(int requests);
    void estimate(int requests, const DecodeSteps& sideAfter);
    DecodeSteps stepsOf(int stretch, int requests, int64_t slots) const;
    std::map<int, int> countsByLoad(int stretch) const;

    int64_t m_experts, m_slots;
    StackDistances m_distances;
    std::vector<int> m_lastStretch;  // by key: the stretch of its last use, -1 never
    std::deque<Step> m_steps;        // the newest kSteps
    std::optional<Step> m_step;      // the one that runs
    std::array<int, 3> m_counts{};   // of the one that runs, as in Settling
    bool m_recorded = false;         // it has given a token and stands in m_steps
    Settling m_settling;
    int m_dropped = 0;  // steps of this stretch that were taken for settling
    int m_stretch = 0;
    bool m_measuring = false;
    int m_beforeStretch = 0;
    int64_t m_beforeSlots = 0;
    Progress m_progress;
};

}  // namespace colibri
