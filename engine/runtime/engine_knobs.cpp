// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/engine_knobs.h"

#include <algorithm>
#include <new>

#include "engine/base/format.h"

namespace colibri {

KnobState EngineKnobs::bounded(KnobId id, int64_t value) const {
    const KnobLimits l = limits(id);
    KnobState s{value, std::clamp(value, l.min, l.max), {}};
    if (s.effective != value) {
        const KnobRow& row = knobRow(id);
        s.reason = "allowed range is " + formatCount(l.min) + ".." + formatCount(l.max) +
                   (*row.unit ? std::string(" ") + row.unit : std::string());
    }
    return s;
}

void EngineKnobs::start(const KnobValues& requested) {
    MutexLock lock(m_mutex);
    for (const KnobRow& row : knobTable()) {
        const auto i = size_t(row.id);
        m_states[i] = bounded(row.id, requested[i].value_or(limits(row.id).defaultValue));
    }
}

void EngineKnobs::setState(KnobId id, const KnobState& state) {
    MutexLock lock(m_mutex);
    m_states[size_t(id)] = state;
}

uint64_t EngineKnobs::request(KnobId id, int64_t value) {
    MutexLock lock(m_mutex);
    m_states[size_t(id)].requested = value;
    m_states[size_t(id)].reason.clear();  // was of an earlier request
    m_pending[size_t(id)] = value;
    return ++m_requested[size_t(id)];
}

void EngineKnobs::awaitApplied(KnobId id, uint64_t number) {
    MutexLock lock(m_mutex);
    while (m_applied[size_t(id)] < number) m_changed.wait(m_mutex);
}

KnobState EngineKnobs::state(KnobId id) const {
    MutexLock lock(m_mutex);
    return m_states[size_t(id)];
}

bool EngineKnobs::waiting(KnobId id) const {
    MutexLock lock(m_mutex);
    return m_applied[size_t(id)] < m_requested[size_t(id)];
}

void EngineKnobs::applyPending(const std::function<void(KnobId, KnobState&)>& apply) {
    std::array<std::optional<int64_t>, kKnobCount> pending;
    std::array<uint64_t, kKnobCount> numbers;
    {
        MutexLock lock(m_mutex);
        pending.swap(m_pending);
        numbers = m_requested;
    }
    for (const KnobRow& row : knobTable()) {
        const auto i = size_t(row.id);
        if (!pending[i]) continue;
        KnobState s = bounded(row.id, *pending[i]);
        if (!row.live) {
            s.effective = effective(row.id);
            if (s.effective != s.requested) s.reason = "takes effect when the model is loaded";
        }
        try {
            apply(row.id, s);
        } catch (const std::bad_alloc&) {  // whoever waits for the knob still gets an answer
            s.effective = effective(row.id);
            s.reason = "out of memory";
        }
        MutexLock lock(m_mutex);
        // A newer request that came meanwhile stays visible as requested.
        if (m_pending[i]) s.requested = *m_pending[i];
        m_states[i] = s;
        m_applied[i] = numbers[i];
        m_changed.notifyAll();
    }
}

}  // namespace colibri
