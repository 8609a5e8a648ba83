// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/knob_changes.h"

#include <cstring>
#include <utility>

#include "engine/base/format.h"
#include "profiler/metrics/effect.h"

namespace colibri {
namespace {

std::string changeLabel(KnobId knob, int64_t from, int64_t to) {
    return knobTitle(knobRow(knob)) + " " + knobChangeText(knob, from, to);
}

std::string tokens(int64_t n) {
    return formatCount(n) + (n == 1 ? " token" : " tokens");
}

}  // namespace

KnobChanges::KnobChanges(MarkerList& markers, int64_t moeLayers, int64_t experts)
    : m_markers(markers), m_moeLayers(moeLayers), m_meter(moeLayers, experts) {
    m_value.fill(-1);
    m_requested.fill(-1);
}

void KnobChanges::hold(KnobId knob) {
    Held& held = m_held[size_t(knob)];
    if (!held.on) {  // changes before this drag are separate
        reportNewest();
        m_newest.reset();
    }
    held = {.on = true};
}

void KnobChanges::release(KnobId knob, int64_t requested) {
    Held& held = m_held[size_t(knob)];
    if (!held.on) return;
    if (m_requested[size_t(knob)] == requested) {
        endDrag(knob);
    } else {
        held.until = requested;
    }
}

// The drag has ended. Changes during the drag are not measured.
void KnobChanges::endDrag(KnobId knob) {
    m_held[size_t(knob)] = {};
    const Marker* marker = newest();
    if (marker && marker->knob == knob && m_meter.measuring()) m_meter.restart();
}

bool KnobChanges::isHeld(const Marker& marker) const {
    return marker.kind == Marker::Kind::Knob && marker.knob != KnobId::Count &&
           m_held[size_t(marker.knob)].on && newest() == &marker;
}

bool KnobChanges::shows(const Marker& marker) const {
    return marker.kind != Marker::Kind::Knob || (!isHeld(marker) && marker.from != marker.to);
}

bool KnobChanges::joins(const KnobEvent& knob, double t) const {
    const Marker* marker = newest();
    if (!marker || marker->knob != KnobId(knob.knob)) return false;
    return isHeld(*marker) || t - m_newestStep < kSameChangeSeconds;
}

void KnobChanges::decide(Marker& marker, Marker::Effect effect, std::string reason) {
    marker.effect = effect;
    marker.reason = std::move(reason);
    marker.refining = marker.settling = false;
    if (marker.from != marker.to) m_decided.push_back(marker);  // otherwise it was undone
}

// Reports a change that cannot be measured, once no further step can join it.
void KnobChanges::reportNewest() {
    if (!std::exchange(m_undecided, false)) return;
    if (Marker* marker = newest()) decide(*marker, Marker::Effect::NotMeasured, marker->reason);
}

// Ends the running measurement. The change keeps its estimate if there is one; otherwise `why` says
// why it is not measured.
void KnobChanges::endMeasurement(const std::string& why) {
    if (!m_meter.measuring()) return;
    m_meter.end();
    Marker* marker = newest();
    if (!marker) return;
    if (marker->effect == Marker::Effect::Known) {
        decide(*marker, Marker::Effect::Known);
    } else {
        decide(*marker, Marker::Effect::NotMeasured, m_meter.endedEarly(why));
    }
}

std::vector<Marker> KnobChanges::takeDecided() {
    return std::exchange(m_decided, {});
}

void KnobChanges::finish() {
    reportNewest();
    endMeasurement("the session ended");
}

void KnobChanges::tick(double now) {
    const Marker* marker = newest();
    if (m_undecided && marker && !isHeld(*marker) && now - m_newestStep >= kSameChangeSeconds)
        reportNewest();
}

void KnobChanges::add(const KnobEvent& knob, double t) {
    if (knob.knob >= kKnobCount) return;
    const int64_t valueBefore = std::exchange(m_value[knob.knob], knob.effective);
    const int64_t before = std::exchange(m_requested[knob.knob], knob.requested);
    const bool automatic =
        valueBefore >= 0 && before == knob.requested && valueBefore != knob.effective;
    // If the engine had changed the effective value itself, the change starts from the requested
    // one.
    const int64_t from =
        !automatic && std::exchange(m_ownDoing[knob.knob], false) ? before : valueBefore;
    if (automatic) {
        m_ownDoing[knob.knob] = knob.effective != knob.requested;
        addAutomatic(knob, valueBefore, t);
    } else if (from >= 0 && from != knob.effective) {  // otherwise the value at load, or no change
        if (joins(knob, t)) {
            join(knob);
        } else {
            begin(knob, from, before, t);
        }
        m_newestStep = t;
    }
    if (KnobId(knob.knob) == KnobId::ExpertCacheSize)
        m_meter.setCacheSlots(knob.effective * m_moeLayers);
    if (held(KnobId(knob.knob)) && m_held[knob.knob].until == knob.requested)
        endDrag(KnobId(knob.knob));
}

void KnobChanges::addAutomatic(const KnobEvent& knob, int64_t from, double t) {
    m_markers.add({.t = t,
                   .label = changeLabel(KnobId(knob.knob), from, knob.effective),
                   .kind = Marker::Kind::Knob,
                   .knob = KnobId(knob.knob),
                   .from = from,
                   .to = knob.effective,
                   .undoTo = knob.requested,
                   .automatic = true,
                   .reason = std::string(knob.reason, strnlen(knob.reason, sizeof knob.reason))});
}

void KnobChanges::begin(const KnobEvent& knob, int64_t from, int64_t requestedBefore, double t) {
    reportNewest();
    endMeasurement("another knob was changed");
    Marker marker{.t = t,
                  .label = changeLabel(KnobId(knob.knob), from, knob.effective),
                  .kind = Marker::Kind::Knob,
                  .knob = KnobId(knob.knob),
                  .from = from,
                  .to = knob.effective,
                  .undoTo = requestedBefore};
    marker.reason = m_meter.begin();
    marker.effect = m_meter.measuring() ? Marker::Effect::Measuring : Marker::Effect::NotMeasured;
    showProgress(marker);
    m_undecided = !m_meter.measuring();
    m_newest = m_markers.add(std::move(marker));
}

// Adds a step to the newest change. The measurement restarts, still compared with the time before
// the first step.
void KnobChanges::join(const KnobEvent& knob) {
    Marker& marker = *newest();
    marker.to = knob.effective;
    marker.label = changeLabel(marker.knob, marker.from, marker.to);
    m_meter.restart();
    if (!m_meter.measuring()) return;
    marker.effect = Marker::Effect::Measuring;
    showProgress(marker);
}

void KnobChanges::addToken(double gapNs) {
    m_meter.addToken(gapNs);
    Marker* marker = newest();
    if (!m_meter.measuring() || !marker || isHeld(*marker)) return;
    showProgress(*marker);
    const EffectMeter::Progress& progress = m_meter.progress();
    if (!progress.final) return;
    m_meter.end();
    decide(*marker, progress.estimate ? Marker::Effect::Known : Marker::Effect::NotMeasured,
           progress.failure);
}

void KnobChanges::showProgress(Marker& marker) {
    if (!m_meter.measuring()) return;
    const EffectMeter::Progress& progress = m_meter.progress();
    marker.settling = progress.settling;
    marker.measured = progress.steps;
    marker.needed = EffectMeter::kNeeded;
    if (!progress.estimate) return;
    marker.effect = Marker::Effect::Known;
    marker.refining = !progress.final;
    marker.change = progress.estimate->change;
    marker.low = progress.estimate->low;
    marker.high = progress.estimate->high;
    marker.validity = tokens(progress.before) + " before, " + formatCount(progress.after) +
                      " after, at " + formatCount(progress.requests) +
                      (progress.requests == 1 ? " request" : " requests") + " at a time";
}

}  // namespace colibri
