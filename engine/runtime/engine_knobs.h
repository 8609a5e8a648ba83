// SPDX-License-Identifier: Apache-2.0
// The engine's side of the knob table: limits for this model and machine, what was asked for, what
// is in force. Requests come from any thread; the scheduler applies them between two steps.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/knobs/knobs.h"
#include "engine/model/container.h"
#include "engine/runtime/knob_limits.h"

namespace colibri {

class EngineKnobs {
public:
    explicit EngineKnobs(const ContainerInfo& info) : m_defaults(info) {}

    KnobLimits limits(KnobId id) const { return m_defaults.limits(id); }
    // The values to load with: asked for or default, brought into range, with the reason.
    void start(const KnobValues& requested);
    void setState(KnobId id, const KnobState& state);

    // Returns the request's number among those of this knob.
    uint64_t request(KnobId id, int64_t value);
    // Blocks until that request, or a later one, has been applied.
    void awaitApplied(KnobId id, uint64_t number);
    KnobState state(KnobId id) const;
    bool waiting(KnobId id) const;  // asked for and not applied yet
    int64_t effective(KnobId id) const { return state(id).effective; }
    // As last asked for, brought into range: what is in force may lag behind.
    int64_t wanted(KnobId id) const { return bounded(id, state(id).requested).effective; }

    // Calls apply(id, state) for every knob that waits, in table order; `state` comes with the
    // value to use in `effective` and is stored as apply leaves it.
    void applyPending(const std::function<void(KnobId, KnobState&)>& apply);

private:
    KnobState bounded(KnobId id, int64_t value) const;

    KnobDefaults m_defaults;
    mutable std::mutex m_mutex;  // guards the following
    std::array<KnobState, kKnobCount> m_states;
    std::array<std::optional<int64_t>, kKnobCount> m_pending;
    std::array<uint64_t, kKnobCount> m_asked{}, m_applied{};  // numbers of the latest requests
    std::condition_variable m_changed;
};

}  // namespace colibri
