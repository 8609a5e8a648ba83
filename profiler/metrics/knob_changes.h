// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/telemetry/events.h"
#include "profiler/metrics/effect_meter.h"
#include "profiler/metrics/marker_list.h"

namespace colibri {

constexpr double kSameChangeSeconds = 1;  // steps of one knob within this time are one change

// The knob changes of a session: groups steps into changes and keeps their markers and measured
// effects.
//
// The steps of one drag, and steps of one knob within a second, form one change. Changes by the
// engine itself (prefetch back-off) are separate: they are not measured and do not end a
// measurement.
class KnobChanges {
public:
    // `markers` must outlive this.
    KnobChanges(MarkerList& markers, int64_t moeLayers, int64_t experts);

    void add(const KnobEvent& knob, double t);
    // See Metrics::hold.
    void hold(KnobId knob);
    void release(KnobId knob, int64_t requested);
    bool held(KnobId knob) const { return m_held[size_t(knob)].on; }
    void tick(double now);
    void finish();
    std::vector<Marker> takeDecided();

    // The requested value; -1 before the first event of the knob.
    int64_t requested(KnobId knob) const { return m_requested[size_t(knob)]; }
    // Whether a marker is visible: not during a drag, and not if the change was undone.
    bool shows(const Marker& marker) const;

    // The events that EffectMeter measures.
    void addStep(int requests) { m_meter.addStep(requests); }
    void addLookups(int64_t moeLayer, const LayerStepEvent& step) {
        m_meter.addLookups(moeLayer, step);
    }
    void addToken(double gapNs);

private:
    struct Held {
        bool on = false;
        std::optional<int64_t> until;  // released; ends when this value is effective
    };
    Marker* newest() { return m_newest ? m_markers.find(*m_newest) : nullptr; }
    const Marker* newest() const { return m_newest ? m_markers.find(*m_newest) : nullptr; }
    bool isHeld(const Marker& marker) const;
    bool joins(const KnobEvent& knob, double t) const;
    void addAutomatic(const KnobEvent& knob, int64_t from, double t);
    void begin(const KnobEvent& knob, int64_t from, int64_t requestedBefore, double t);
    void join(const KnobEvent& knob);
    void endDrag(KnobId knob);
    void reportNewest();
    void endMeasurement(const std::string& why);
    void showProgress(Marker& marker);
    void decide(Marker& marker, Marker::Effect effect, std::string reason = {});

    MarkerList& m_markers;
    int64_t m_moeLayers;
    EffectMeter m_meter;
    std::array<int64_t, kKnobCount> m_value, m_requested;
    std::array<bool, kKnobCount> m_ownDoing{};  // the engine changed the effective value itself
    std::array<Held, kKnobCount> m_held;
    std::optional<uint64_t> m_newest;  // id of the newest knob change
    double m_newestStep = 0;           // seconds of its latest step
    bool m_undecided = false;  // the newest change cannot be measured, which is not reported yet
    std::vector<Marker> m_decided;
};

}  // namespace colibri
