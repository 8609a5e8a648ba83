// SPDX-License-Identifier: Apache-2.0
// The state of a session for plots and figures: an immutable snapshot. The recorder publishes the
// state of a live session about 30 times a second; Playback makes the state of a recorded one at
// any time. Readers may keep the shared_ptr as long as they need it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/knobs/knobs.h"
#include "engine/store/expert_store.h"
#include "profiler/metrics/metric_table.h"

namespace colibri {

// Points of one series: t in seconds since the session began; NaN y = gap. Bounded: older parts are
// reduced to min/max pairs.
struct SeriesData {
    std::vector<double> t, y;
    std::string unavailable;  // not empty: "no NVIDIA driver"
};

struct Marker {
    double t = 0;
    std::string label;  // "cache 8 -> 12", "turn 2"
    enum class Kind : uint8_t { Knob, TurnStart, TurnEnd, Note, Error } kind = Kind::Note;
    KnobId knob = KnobId::Count;
    int64_t from = 0, to = 0;  // effective values
    int64_t undoTo = 0;        // the requested value before the change
    // A change or note by the engine itself, such as a prefetch back-off. It is not measured and
    // ends no measurement; `reason` says why it happened.
    bool automatic = false;
    uint64_t request = 0;  // turns
    // The measured effect of a knob change on the decode rate: the relative change and its 95 %
    // interval, from tokens on both sides at the same number of requests in a step (see
    // EffectMeter). Steps of one drag, and steps of one knob within a second, are one change.
    enum class Effect : uint8_t { None, Measuring, Known, NotMeasured } effect = Effect::None;
    bool settling = false;                 // Measuring, but the cache has not settled yet
    bool refining = false;                 // Known, but more tokens make the interval narrower
    int measured = 0, needed = 0;          // tokens so far, and tokens needed for a first estimate
    std::string reason;                    // why it was not measured
    double change = 0, low = 0, high = 0;  // 0.18, 0.15, 0.21
    std::string validity;                  // "92 tokens before, 160 after, at 1 request at a time"
};

// The figures above the plots: the latest windowed values in the units of the series; NaN: n/a.
// While no request runs, they keep the values of the end of the last request.
struct Figures {
    double decodeTokS, itlP50Ms, itlP99Ms;
    double allTokS;                   // tok/s of all requests together
    double hitRate, prefetchHitRate;  // %
    double expertLoadP50Ms, expertLoadP99Ms, readBytesPerS;
    double stallShare;     // %
    double recordingCost;  // CPU time of recording, 0..1 of all cores
    uint64_t itlCount;     // n in the window
};

struct Snapshot {
    uint64_t generation = 0;
    double now = 0;  // seconds since the session began
    // From a session file: the state at `now`, while series and markers are those of the whole
    // session. `detail` changes with the resolution of the series.
    bool recorded = false;
    uint64_t detail = 0;
    int running = 0, turns = 0;  // requests running now, and started so far
    double figuresAt = 0;        // the time of `figures`
    double lastActivity = 0;     // last time a request ran or waited, or a marker was set
    std::array<SeriesData, kSeriesCount> series;
    SeriesData itlCount;          // the number of values behind ITL P50 and P99
    std::vector<Marker> markers;  // by time
    Figures figures{};
    double readNowBytesPerS = 0;  // including reads that belong to no request
    StoreStats store;             // since load
    // Updated at most four times a second, because NUMA states need system calls.
    std::array<KnobState, kKnobCount> knobs;
    double knobsAt = 0;                // time of `knobs`; later requests are not included
    std::vector<Residency> residency;  // (MoE layers * E)
    std::string residencyUnknown;      // why a recorded session has no residency
    std::vector<float> heat;           // (MoE layers * E) recent use, 0..1
    bool gpuClocksLocked = false;  // by PM sampling: kernels run at another speed than without it
    std::string gpuSource;         // of the GPU's series; "" if there is none
    uint64_t eventsDropped = 0, eventsRecorded = 0;
    std::string sessionFile;  // "" = not recording
    int64_t sessionBytes = 0;
    std::string sessionError;  // e.g. disk full: recording stopped

    const KnobState& knob(KnobId id) const { return knobs[size_t(id)]; }
};

}  // namespace colibri
