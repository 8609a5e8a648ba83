// SPDX-License-Identifier: Apache-2.0
// The engine's side of the knob table: limits for this model and machine, requested and
// effective values. Requests come from any thread; the scheduler applies them between two steps.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "engine/base/mutex.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"
#include "engine/runtime/knob_limits.h"

namespace colibri {

class EngineKnobs {
public:
    explicit EngineKnobs(const ContainerInfo& info) : m_defaults(info) {}

    KnobLimits limits(KnobId id) const { return m_defaults.limits(id); }
    // The values to load with: requested or default, clamped to the range, with the reason.
    void start(const KnobValues& requested);
    void setState(KnobId id, const KnobState& state);

    // Returns the sequence number of the request for this knob.
    uint64_t request(KnobId id, int64_t value);
    // Blocks until that request, or a later one, has been applied.
    void awaitApplied(KnobId id, uint64_t number);
    KnobState state(KnobId id) const;
    bool waiting(KnobId id) const;  // requested and not applied yet
    int64_t effective(KnobId id) const { return state(id).effective; }
    // The last requested value, clamped to the range; the effective value may lag behind.
    int64_t wanted(KnobId id) const { return bounded(id, state(id).requested).effective; }

    // Calls apply(id, state) for every pending knob, in table order. `state.effective` is the value
    // to use; the state is stored as apply leaves it.
    void applyPending(const std::function<void(KnobId, KnobState&)>& apply);

private:
    KnobState bounded(KnobId id, int64_t value) const;

    KnobDefaults m_defaults;
    mutable Mutex m_mutex;
    std::array<KnobState, kKnobCount> m_states GUARDED_BY(m_mutex);
    std::array<std::optional<int64_t>, kKnobCount> m_pending GUARDED_BY(m_mutex);
    // Numbers of the latest requests.
    std::array<uint64_t, kKnobCount> m_requested GUARDED_BY(m_mutex){};
    std::array<uint64_t, kKnobCount> m_applied GUARDED_BY(m_mutex){};
    Condition m_changed;
};

}  // namespace colibri
