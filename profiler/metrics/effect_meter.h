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

// Measures the effect of a knob change on the decode rate by comparing similar steps before and
// after it. Has no thread and no clock; the caller passes events in order of time.
//
// - A period begins at each change (and at the session's start) and first settles. Its steps are
//   used when few of its misses are due to what the cache held before, after at most kMostSettling
//   steps, and when its rate no longer drifts.
// - Only steps with the same number of requests are compared.
// - The estimate is updated until more steps would not help: see estimateEffect().
class EffectMeter {
public:
    static constexpr int kNeeded = 64;   // steps after a change for a first estimate
    static constexpr int kFewest = 192;  // steps after a change before an estimate may be final
    static constexpr int kMinimum = 24;  // settled steps before a change
    static constexpr int kMost = 512;    // maximum steps used on each side
    static constexpr int kMostSettling = 256;
    // Steps with other numbers of requests before it stops.
    static constexpr int kMostElsewhere = 128;

    EffectMeter(int64_t moeLayers, int64_t experts);

    // The engine's events, in order: a step begins, its rows are routed, its tokens are sampled.
    void addStep(int requests);
    void addLookups(int64_t moeLayer, const LayerStepEvent& step);
    void addToken(double gapNs);
    // Capacity of the cache in experts, over all layers. The default is all experts.
    void setCacheSlots(int64_t slots);

    // A knob has changed: the steps of this period become the side before. Ends a running
    // measurement. Returns "" if a measurement begins, else why the change cannot be measured.
    std::string begin();
    // The same change continues with another step: restarts the side after.
    void restart();
    void end() { m_measuring = false; }

    struct Progress {
        bool settling = false;
        int steps = 0;  // measured so far, at the most frequent number of requests
        std::optional<EffectEstimate> estimate;
        // The estimate's steps on each side, and the number of requests in each step.
        int before = 0, after = 0, requests = 0;
        bool final = false;   // more steps would not help, or none will follow
        std::string failure;  // why there is no estimate; only if final
    };
    bool measuring() const { return m_measuring; }
    const Progress& progress() const { return m_progress; }
    // Why a measurement that ends now has no estimate. `why`: the reason for its end.
    std::string endedEarly(const std::string& why) const;

private:
    struct Step {
        int period;
        bool counts;  // false: used for settling
        int requests;
        int tokens = 0;
        double gapNs = 0;                 // mean of its tokens
        std::vector<uint32_t> distances;  // of its lookups
    };
    struct Settling {
        int steps = 0;
        bool done = false;
        // The last steps: lookups, misses, and misses caused by the time before the period.
        std::deque<std::array<int, 3>> recent;
    };
    void newPeriod();
    void settle();
    void evaluate(int requests);
    void dropOldest(int requests);
    void estimate(int requests, const DecodeSteps& sideAfter);
    DecodeSteps stepsOf(int period, int requests, int64_t slots) const;
    std::map<int, int> countsByRequests(int period) const;

    int64_t m_experts, m_slots;
    StackDistances m_distances;
    std::vector<int> m_lastPeriod;  // by key: the period of its last use; -1: never
    std::deque<Step> m_steps;       // the newest kSteps
    std::optional<Step> m_step;     // the current step
    std::array<int, 3> m_counts{};  // of the current step, as in Settling
    bool m_recorded = false;        // it has produced a token and is in m_steps
    Settling m_settling;
    int m_dropped = 0;  // steps of this period that were used for settling
    int m_period = 0;
    bool m_measuring = false;
    int m_beforePeriod = 0;
    int64_t m_beforeSlots = 0;
    Progress m_progress;
};

}  // namespace colibri
