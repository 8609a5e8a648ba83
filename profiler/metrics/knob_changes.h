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

constexpr double kSameChangeSeconds = 1;  // steps of one knob closer than this are one change

// The knob changes of a session: what is one change, its marker, and its measured effect.
//
// The steps of one drag, and steps of one knob within a second, are one change. What the engine
// does by itself (a prefetch that backs off) is told apart: it is not measured and ends no
// measurement.
class KnobChanges {
public:
    // `markers` outlives this.
    KnobChanges(MarkerList& markers, int64_t moeLayers, int64_t experts);

    void add(const KnobEvent& knob, double t);
    // See Metrics.
    void hold(KnobId knob);
    void release(KnobId knob, int64_t requested);
    bool held(KnobId knob) const { return m_held[size_t(knob)].on; }
    void tick(double now);
    void finish();
    std::vector<Marker> takeDecided();

    // The value asked for, -1 before the first event of the knob.
    int64_t requested(KnobId knob) const { return m_requested[size_t(knob)]; }
    // Shown: no step of a drag that goes on, and no change that was taken back.
    bool shows(const Marker& marker) const;

    // What is measured: see EffectMeter.
    void addStep(int requests) { m_meter.addStep(requests); }
    void addLookups(int64_t moeLayer, const LayerStepEvent& step) {
        m_meter.addLookups(moeLayer, step);
    }
    void addToken(double gapNs);

private:
    struct Held {
        bool on = false;
        std::optional<int64_t> until;  // released, and this value is still to come
    };
    Marker* newest() { return m_newest ? m_markers.find(*m_newest) : nullptr; }
    const Marker* newest() const { return m_newest ? m_markers.find(*m_newest) : nullptr; }
    bool isHeld(const Marker& marker) const;
    bool joins(const KnobEvent& knob, double t) const;
    void addAutomatic(const KnobEvent& knob, int64_t from, double t);
    void begin(const KnobEvent& knob, int64_t from, int64_t requestedBefore, double t);
    void join(const KnobEvent& knob);
    void letGo(KnobId knob);
    void settleNewest();
    void endMeasurement(const std::string& why);
    void showProgress(Marker& marker);
    void decide(Marker& marker, Marker::Effect effect, std::string reason = {});

    MarkerList& m_markers;
    int64_t m_moeLayers;
    EffectMeter m_meter;
    std::array<int64_t, kKnobCount> m_value, m_requested;
    std::array<bool, kKnobCount> m_ownDoing{};  // in force is what the engine chose by itself
    std::array<Held, kKnobCount> m_held;
    std::optional<uint64_t> m_newest;  // id of the newest knob change
    double m_newestStep = 0;           // seconds of its latest step
    bool m_undecided = false;          // the newest change is not to be measured, not yet told
    std::vector<Marker> m_decided;
};

}  // namespace colibri
