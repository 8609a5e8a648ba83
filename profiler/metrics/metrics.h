// SPDX-License-Identifier: Apache-2.0
// Computes the quantities of the plots from events: sliding windows, series, markers, figures. Has
// no thread and no clock: the recorder (or a test) passes events in order of time and calls tick()
// about 30 times a second. Times are seconds since the session began.
#pragma once

#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/telemetry/events.h"
#include "profiler/metrics/histogram.h"
#include "profiler/metrics/knob_changes.h"
#include "profiler/metrics/marker_list.h"
#include "profiler/metrics/series.h"
#include "profiler/metrics/snapshot.h"

namespace colibri {

constexpr double kWindowSeconds = 10;        // hit rate, loads, ITL, stall
constexpr double kRateWindowSeconds = 2;     // tok/s, batches, prefetch
constexpr double kReadWindowSeconds = 1;     // read rate
constexpr double kPromptWindowSeconds = 60;  // prompt reuse

// Values with their times, and a histogram of the values within the window.
class WindowedValues {
public:
    void add(double t, uint64_t ns);
    void expire(double before);
    const Histogram& histogram() const { return m_histogram; }

private:
    std::deque<std::pair<double, uint64_t>> m_values;
    Histogram m_histogram;
};

// Sums of several counters over a sliding window.
class WindowedSums {
public:
    static constexpr int kFields = 4;
    using Fields = std::array<double, kFields>;
    void add(double t, const Fields& fields);  // merged into buckets of 50 ms
    void expire(double before);
    const Fields& sums() const { return m_sums; }
    bool empty() const { return m_buckets.empty(); }
    double oldest() const { return m_buckets.front().first; }

private:
    std::deque<std::pair<double, Fields>> m_buckets;
    Fields m_sums{};
};

// The GPU's counters at one moment, in percent; NaN: no value now.
struct GpuPoint {
    double sm = NAN, dram = NAN, busy = NAN;
    std::string noCounters;  // why `sm` and `dram` are not measured; "" if they are
    std::string noGpu;       // why `busy` is not measured
    static GpuPoint none(const std::string& reason) { return {NAN, NAN, NAN, reason, reason}; }
};

class Metrics {
public:
    Metrics(int64_t moeLayers, int64_t experts, const std::vector<int64_t>& moeLayerIndices);

    void add(const Event& event, double t);
    void note(double t, const std::string& text);
    // The steps of a knob during a drag are one change, shown and measured after the drag.
    // release(): the last requested value; the change is complete when it is effective.
    void hold(KnobId knob) { m_changes.hold(knob); }
    void release(KnobId knob, int64_t requested) { m_changes.release(knob, requested); }
    bool held(KnobId knob) const { return m_changes.held(knob); }
    // Changes whose measurement was decided since the last call: a known effect, or not measurable.
    std::vector<Marker> takeDecided() { return m_changes.takeDecided(); }
    void finish() { m_changes.finish(); }  // end of the session: decides running measurements
    // Appends one point to every series and refreshes markers. The caller samples queueDepth
    // and memory.
    void tick(double now, double memoryBytes, const GpuPoint& gpu);

    // Copies series, markers, figures and heat.
    void fill(Snapshot& snapshot) const;

    // Raw values with times in [t0, t1], pooled; at most the newest kRawValues.
    Histogram itlBetween(double t0, double t1) const;
    Histogram expertLoadBetween(double t0, double t1) const;

private:
    void addToken(const TokenEvent& token, double t);
    void addLayerStep(const LayerStepEvent& step, double t);
    void addRead(const ExpertReadEvent& read, double t);
    void addRequest(const Event& event, double t);
    void addPrefetch(const PrefetchEvent& counts, double t);
    void tickPrefetch(double now);
    void expireWindows(double now);
    void coolExperts(double now);
    Figures figuresNow() const;
    void keepFigures(double t);

    int64_t m_experts;
    std::vector<int> m_moeOfLayer;  // model layer -> MoE index, -1: dense
    std::array<Series, kSeriesCount> m_series;
    Series m_itlCount;
    WindowedValues m_itl, m_expertLoad;
    WindowedSums m_lookups;             // lookups, hits, prefetch hits
    WindowedSums m_decode;              // tokens, step ns, stall ns, stall ns for new memory
    WindowedSums m_reads;               // bytes
    WindowedSums m_tokens;              // tokens and gaps, short window
    WindowedSums m_batches;             // steps, requests in them
    WindowedSums m_pauses;              // gap ns, preempted ns
    WindowedSums m_prompts;             // prompt tokens of admitted requests, reused ones
    double m_kvHeld = 0, m_kvKept = 0;  // %, as of the newest step
    std::array<WindowedSums, kPrefetchSources> m_prefetch;  // issued, useful, late, wasted
    std::deque<std::pair<double, uint64_t>> m_rawItl, m_rawExpertLoad;
    MarkerList m_markers;
    KnobChanges m_changes;
    std::vector<float> m_heat;
    double m_heatTime = 0;
    double m_lastTick = 0;
    Figures m_figures;  // as of the last time at which a request ran
    double m_figuresAt = 0;
    double m_lastActivity = 0;  // last time a request ran or waited, or a marker was set
    int m_turns = 0;
    int m_active = 0;   // requests admitted and not done
    int m_waiting = 0;  // requests arrived and not admitted
};

}  // namespace colibri
