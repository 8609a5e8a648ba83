// SPDX-License-Identifier: GPL-3.0-or-later
// Creates events like those of the engine, for tests of their readers.
#pragma once

#include "engine/knobs/knobs.h"
#include "engine/telemetry/events.h"

namespace colibri {

inline Event requestEvent(EventType type, uint64_t id) {
    Event event{};
    event.type = type;
    event.request.request = id;
    event.request.stop = StopReason::Eos;
    return event;
}

inline Event tokenEvent(uint64_t gapNs) {
    Event event{};
    event.type = EventType::Token;
    event.token.request = 1;
    event.token.gapNs = gapNs;
    event.token.stepNs = gapNs;
    event.token.stallNs = gapNs / 4;
    return event;
}

inline Event knobEvent(KnobId id, int64_t value) {
    Event event{};
    event.type = EventType::KnobChanged;
    event.knob.knob = uint8_t(id);
    event.knob.requested = event.knob.effective = value;
    return event;
}

inline Event stepEvent(int requests) {
    Event event{};
    event.type = EventType::BatchFormed;
    event.batch.requests = event.batch.rows = uint16_t(requests);
    return event;
}

}  // namespace colibri
