// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "profiler/record/effect.h"

namespace colibri {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kBucketSeconds = 0.05;
constexpr size_t kRawValues = 1 << 18;   // newest raw gaps and loads kept for pooled percentiles
constexpr size_t kMarkers = 2000;
constexpr int kEffectTokens = 64;        // on each side of a knob change, at one load
constexpr size_t kRecentGaps = 4 * kEffectTokens;
constexpr int kElsewhere = 2 * kEffectTokens;  // tokens at other loads before it is given up
constexpr int kEffectMinimum = 24;       // tokens before a change, or it is not measured
constexpr int kEffectSkip = 8;           // tokens right after it, while the cache settles
constexpr double kSameChangeSeconds = 1; // steps of one knob closer than this are one change
constexpr double kLongestHole = 1;       // seconds between ticks
constexpr double kHeatHalfLife = 5;      // seconds

const SeriesInfo kInfos[kSeriesCount] = {
    {"Hit rate", "%", "resident at first touch, 10 s window"},
    {"Hits by prefetch", "%", "look-ups that a prefetch had made resident, 10 s window"},
    {"Expert load P50", "ms", "from need to usable, 10 s window"},
    {"Expert load P99", "ms", "from need to usable, 10 s window"},
    {"ITL P50", "ms", "inter-token latency: every gap, 10 s window"},
    {"ITL P99", "ms", "inter-token latency: every gap, 10 s window"},
    {"Decode", "tok/s", "tokens over the time between them, 2 s window"},
    {"Read", "GB/s", "bytes of experts read, 1 s window"},
    {"Stall", "%", "of decode time in which compute waited for experts, 10 s window"},
    {"Queue", "requests", "requests that wait for admission"},
    {"Mean batch", "requests", "requests per forward pass, 2 s window"},
    {"Prefetch issued", "reads/s", "reads begun ahead of need, 2 s window"},
    {"Prefetch useful", "reads/s", "read ahead and resident at first touch, 2 s window"},
    {"Prefetch late", "reads/s", "asked for while being read ahead, 2 s window"},
    {"Prefetch wasted", "reads/s", "read ahead and gone before use, 2 s window"},
    {"Memory", "GiB", "resident memory of this process"},
    {"SM utilisation", "%", "share of time in which the GPU ran a kernel"},
};

Histogram between(const std::deque<std::pair<double, uint64_t>>& values, double t0, double t1) {
    Histogram histogram;
    auto it = std::lower_bound(values.begin(), values.end(), t0,
                               [](const auto& v, double t) { return v.first < t; });
    for (; it != values.end() && it->first <= t1; ++it) histogram.add(it->second);
    return histogram;
}

std::string knobLabel(const KnobRow& row, int64_t from, int64_t to) {
    return knobTitle(row) + " " + knobChangeText(row.id, from, to);
}

}  // namespace

const SeriesInfo& seriesInfo(SeriesId id) { return kInfos[size_t(id)]; }

void WindowedValues::add(double t, uint64_t ns) {
    m_values.emplace_back(t, ns);
    m_histogram.add(ns);
}

void WindowedValues::expire(double before) {
    while (!m_values.empty() && m_values.front().first < before) {
        m_histogram.remove(m_values.front().second);
        m_values.pop_front();
    }
}

void WindowedSums::add(double t, const Fields& fields) {
    if (m_buckets.empty() || t - m_buckets.back().first >= kBucketSeconds) {
        m_buckets.emplace_back(t, Fields{});
    }
    for (int i = 0; i < kFields; ++i) {
        m_buckets.back().second[size_t(i)] += fields[size_t(i)];
        m_sums[size_t(i)] += fields[size_t(i)];
    }
}

void WindowedSums::expire(double before) {
    while (!m_buckets.empty() && m_buckets.front().first < before) {
        for (int i = 0; i < kFields; ++i) {
            m_sums[size_t(i)] -= m_buckets.front().second[size_t(i)];
        }
        m_buckets.pop_front();
    }
    if (m_buckets.empty()) m_sums = {};  // rounding errors end with the window
}

Metrics::Metrics(int64_t moeLayers, int64_t experts, const std::vector<int64_t>& moeLayerIndices)
    : m_experts(experts), m_heat(size_t(moeLayers * experts)), m_figures(figuresNow()) {
    m_knobValue.fill(-1);
    m_knobRequested.fill(-1);
    for (size_t i = 0; i < moeLayerIndices.size(); ++i) {
        const size_t layer = size_t(moeLayerIndices[i]);
        if (layer >= m_moeOfLayer.size()) m_moeOfLayer.resize(layer + 1, -1);
        m_moeOfLayer[layer] = int(i);
    }
}

void Metrics::add(const Event& event, double t) {
    switch (event.type) {
        case EventType::RequestArrived:
        case EventType::RequestAdmitted:
        case EventType::RequestFirstToken:
        case EventType::RequestDone:
            addRequest(event, t);
            break;
        case EventType::Token:
            addToken(event.token, t);
            break;
        case EventType::LayerStep:
            addLayerStep(event.layerStep, t);
            break;
        case EventType::ExpertLoad:
            addLoad(event.load, t);
            break;
        case EventType::KnobChanged:
            addKnob(event.knob, t);
            break;
        case EventType::Note:
            addMarker({.t = t, .label = event.note.text, .kind = Marker::Kind::Note});
            break;
        case EventType::BatchFormed:
            m_load = event.batch.requests;
            m_batches.add(t, {1, double(event.batch.requests), 0, 0});
            break;
        case EventType::PrefetchOutcome:
            addPrefetch(event.prefetch, t);
            break;
        case EventType::Eviction:
            break;  // the count comes from the store
    }
}

void Metrics::note(double t, const std::string& text) {
    addMarker({.t = t, .label = text, .kind = Marker::Kind::Note});
}

void Metrics::addRequest(const Event& event, double t) {
    const RequestEvent& request = event.request;
    if (event.type == EventType::RequestArrived) {
        ++m_waiting;
    } else if (event.type == EventType::RequestAdmitted) {
        m_waiting = std::max(0, m_waiting - 1);
        ++m_active;
        addMarker({.t = t,
                   .label = "turn " + std::to_string(++m_turns),
                   .kind = Marker::Kind::TurnStart,
                   .request = request.request});
    } else if (event.type == EventType::RequestDone) {
        const auto started = std::find_if(m_markers.rbegin(), m_markers.rend(), [&](auto& m) {
            return m.kind == Marker::Kind::TurnStart && m.request == request.request;
        });
        if (started == m_markers.rend()) {  // never admitted: cancelled or refused in the queue
            m_waiting = std::max(0, m_waiting - 1);
            return;
        }
        m_active = std::max(0, m_active - 1);
        const std::string label = started->label;
        addMarker({.t = t,
                   .label = label,
                   .kind = Marker::Kind::TurnEnd,
                   .request = request.request});
        if (request.stop == StopReason::Error) {
            addMarker({.t = t, .label = label + " failed", .kind = Marker::Kind::Error});
        }
    }
}

void Metrics::addToken(const TokenEvent& token, double t) {
    m_decode.add(t, {1, double(token.stepNs), double(token.stallNs), 0});
    if (token.gapNs == 0) return;  // the first token of a request has no gap before it
    m_itl.add(t, token.gapNs);
    m_tokens.add(t, {1, double(token.gapNs), 0, 0});
    m_rawItl.emplace_back(t, token.gapNs);
    if (m_rawItl.size() > kRawValues) m_rawItl.pop_front();
    measureEffects(double(token.gapNs));
}

void Metrics::addLayerStep(const LayerStepEvent& step, double t) {
    const unsigned first = step.firstBits;
    m_lookups.add(t, {double(std::popcount(first)), double(std::popcount(first & step.hitBits)),
                      double(std::popcount(first & step.hitBits & step.prefetchBits)), 0});
    const int moe = step.layer < m_moeOfLayer.size() ? m_moeOfLayer[step.layer] : -1;
    if (moe < 0) return;
    for (int i = 0; i < std::min<int>(step.count, kEventExperts); ++i) {
        const size_t cell = size_t(moe) * size_t(m_experts) + step.experts[i];
        if (step.experts[i] < m_experts && cell < m_heat.size()) m_heat[cell] += 1;
    }
}

void Metrics::addLoad(const ExpertLoadEvent& load, double t) {
    if (load.failed) return;
    m_reads.add(t, {double(load.bytes), 0, 0, 0});
    if (load.needNs == 0) return;  // a prefetch nobody waited for
    m_loads.add(t, load.needNs);
    m_rawLoads.emplace_back(t, load.needNs);
    if (m_rawLoads.size() > kRawValues) m_rawLoads.pop_front();
}

void Metrics::addPrefetch(const PrefetchEvent& counts, double t) {
    if (counts.source >= m_prefetch.size()) return;
    m_prefetch[counts.source].add(t, {double(counts.issued), double(counts.useful),
                                      double(counts.late), double(counts.wasted)});
}

// Of the source in force; while it backs off it is still the one asked for, and reads nothing.
void Metrics::tickPrefetch(double now) {
    for (WindowedSums& sums : m_prefetch) sums.expire(now - kRateWindowSeconds);
    const int64_t source = m_knobRequested[size_t(KnobId::PrefetchSource)];
    const bool on = m_active > 0 && source > int64_t(PrefetchSource::Off) &&
                    source < int64_t(m_prefetch.size());
    for (size_t i = 0; i < WindowedSums::kFields; ++i) {
        const double rate =
            on ? m_prefetch[size_t(source)].sums()[i] / kRateWindowSeconds : kNoValue;
        m_series[size_t(SeriesId::PrefetchIssued) + i].add(now, rate);
    }
}

void Metrics::hold(KnobId knob) {
    Held& held = m_held[size_t(knob)];
    if (!held.on) {             // what came before this drag is a change of its own
        settleNewest();
        m_newest.reset();
    }
    held = {.on = true};
}

void Metrics::release(KnobId knob, int64_t requested) {
    Held& held = m_held[size_t(knob)];
    if (!held.on) return;
    if (m_knobRequested[size_t(knob)] == requested) {
        held = {};
    } else {
        held.until = requested;
    }
}

bool Metrics::isHeld(const Marker& marker) const {
    return marker.kind == Marker::Kind::Knob && marker.knob != KnobId::Count &&
           m_held[size_t(marker.knob)].on && m_newest && &m_markers[*m_newest] == &marker;
}

bool Metrics::joins(const KnobEvent& knob, double t) const {
    if (!m_newest || m_markers[*m_newest].knob != KnobId(knob.knob)) return false;
    return isHeld(m_markers[*m_newest]) || t - m_newestStep < kSameChangeSeconds;
}

void Metrics::decide(Marker& marker, Marker::Effect effect, std::string reason) {
    marker.effect = effect;
    marker.reason = std::move(reason);
    if (marker.from != marker.to) m_decided.push_back(marker);   // else put back: no change at all
}

// A change too soon after the session's start is written when no further step can join it.
void Metrics::settleNewest() {
    if (std::exchange(m_undecided, false) && m_newest)
        decide(m_markers[*m_newest], Marker::Effect::NotMeasured, m_markers[*m_newest].reason);
}

std::vector<Marker> Metrics::takeDecided() { return std::exchange(m_decided, {}); }

void Metrics::finish() {
    settleNewest();
    for (const Change& change : m_changes) {
        Marker& marker = m_markers[change.marker];
        decide(marker, Marker::Effect::NotMeasured, endedEarly(change, "the session ended"));
    }
    m_changes.clear();
}

void Metrics::addKnob(const KnobEvent& knob, double t) {
    if (knob.knob >= kKnobCount) return;
    int64_t& value = m_knobValue[knob.knob];
    int64_t& requested = m_knobRequested[knob.knob];
    const int64_t valueBefore = std::exchange(value, knob.effective);
    const int64_t before = std::exchange(requested, knob.requested);
    const bool automatic = before == knob.requested && valueBefore != knob.effective;
    if (automatic && valueBefore >= 0) {
        m_ownDoing[knob.knob] = knob.effective != knob.requested;
        return addAutomatic(knob, valueBefore, t);
    }
    // From a knob that the engine had moved by itself the user goes on from what was asked for.
    const int64_t from = std::exchange(m_ownDoing[knob.knob], false) ? before : valueBefore;
    if (from >= 0 && from != knob.effective) {  // else the initial value of a load, or no change
        if (joins(knob, t)) {
            joinChange(knob);
        } else {
            beginChange(knob, from, before, t);
        }
        m_newestStep = t;
    }
    Held& held = m_held[knob.knob];
    if (held.on && held.until == knob.requested) held = {};
}

void Metrics::addAutomatic(const KnobEvent& knob, int64_t from, double t) {
    const KnobRow& row = knobRow(KnobId(knob.knob));
    addMarker({.t = t, .label = knobLabel(row, from, knob.effective), .kind = Marker::Kind::Knob,
               .knob = row.id, .from = from, .to = knob.effective, .undoTo = knob.requested,
               .automatic = true,
               .reason = std::string(knob.reason, strnlen(knob.reason, sizeof knob.reason))});
}

Metrics::GapsByLoad Metrics::recentByLoad() const {
    GapsByLoad gaps;
    for (const Gap& gap : m_recentGaps) gaps[gap.load].push_back(gap.ns);
    for (auto& [load, values] : gaps)
        if (values.size() > kEffectTokens) values.erase(values.begin(), values.end() - kEffectTokens);
    return gaps;
}

// Why a change was not measured to its end: most tokens came at another load, or `why`.
std::string Metrics::endedEarly(const Change& change, const std::string& why) const {
    const Marker& marker = m_markers[change.marker];
    if (change.elsewhere <= marker.measured)
        return why + " after " + std::to_string(marker.measured) + " of " +
               std::to_string(marker.needed) + " tokens";
    const auto most = [](const GapsByLoad& gaps, const GapsByLoad& without) {
        std::pair<int, size_t> best{};
        for (const auto& [load, values] : gaps)
            if (!without.contains(load) && values.size() > best.second) best = {load, values.size()};
        return best.first;
    };
    const int before = most(change.before, {}), after = most(change.after, change.before);
    return "load changed (" + std::to_string(before) + (before == 1 ? " request" : " requests") +
           " before, " + std::to_string(after) + " after)";
}

void Metrics::beginChange(const KnobEvent& knob, int64_t from, int64_t requestedBefore, double t) {
    const KnobRow& row = knobRow(KnobId(knob.knob));
    Marker marker{.t = t, .label = knobLabel(row, from, knob.effective), .kind = Marker::Kind::Knob,
                  .knob = row.id, .from = from, .to = knob.effective, .undoTo = requestedBefore};
    settleNewest();
    // Tokens that come under this change no longer tell of the one being measured.
    for (const Change& change : m_changes) {
        decide(m_markers[change.marker], Marker::Effect::NotMeasured,
               endedEarly(change, "a further change came"));
    }
    m_changes.clear();
    GapsByLoad before = recentByLoad();
    std::erase_if(before, [](const auto& gaps) { return gaps.second.size() < kEffectMinimum; });
    const bool measurable = !before.empty();
    if (measurable) {
        marker.effect = Marker::Effect::Measuring;
        marker.needed = kEffectTokens;
    } else {
        marker.effect = Marker::Effect::NotMeasured;
        const std::string needed = std::to_string(kEffectMinimum) + " are needed";
        marker.reason = m_recentGaps.size() < kEffectMinimum
                            ? std::to_string(m_recentGaps.size()) + " tokens before it, " + needed
                            : "load changed: tokens before it came at changing numbers of requests, " +
                                  needed + " at one";
    }
    addMarker(marker);
    m_undecided = !measurable;
    m_newest = m_markers.size() - 1;
    if (measurable) m_changes.push_back({*m_newest, std::move(before), {}});
    m_recentGaps.clear();
}

// A further step of the newest change: it is measured from here, against what was before its first.
void Metrics::joinChange(const KnobEvent& knob) {
    Marker& marker = m_markers[*m_newest];
    marker.to = knob.effective;
    marker.label = knobLabel(knobRow(marker.knob), marker.from, marker.to);
    for (Change& change : m_changes) {
        if (change.marker != *m_newest) continue;
        change.after.clear();
        change.skipped = change.elsewhere = 0;
        marker.measured = 0;
    }
    m_recentGaps.clear();
}

void Metrics::measureEffects(double gapNs) {
    m_recentGaps.push_back({gapNs, m_load});
    if (m_recentGaps.size() > kRecentGaps) m_recentGaps.pop_front();
    std::erase_if(m_changes, [&](Change& change) {
        Marker& marker = m_markers[change.marker];
        if (isHeld(marker)) return false;
        if (change.skipped < kEffectSkip) {
            ++change.skipped;
            return false;
        }
        std::vector<double>& after = change.after[m_load];
        after.push_back(gapNs);
        const auto before = change.before.find(m_load);   // like with like
        if (before == change.before.end()) {
            if (++change.elsewhere < kElsewhere) return false;
            decide(marker, Marker::Effect::NotMeasured, endedEarly(change, {}));
            return true;
        }
        marker.measured = std::max(marker.measured, int(after.size()));
        if (marker.measured < kEffectTokens) return false;
        const EffectEstimate estimate = estimateEffect(before->second, after);
        marker.change = estimate.change;
        marker.low = estimate.low;
        marker.high = estimate.high;
        decide(marker, Marker::Effect::Known);
        return true;
    });
}

void Metrics::addMarker(Marker marker) {
    if (m_markers.size() >= kMarkers) {
        const size_t drop = kMarkers / 4;
        m_markers.erase(m_markers.begin(), m_markers.begin() + std::ptrdiff_t(drop));
        std::erase_if(m_changes, [&](const Change& c) { return c.marker < drop; });
        for (Change& change : m_changes) change.marker -= drop;
        if (m_newest) m_newest = *m_newest >= drop ? std::optional(*m_newest - drop) : std::nullopt;
        m_undecided = m_undecided && m_newest;
    }
    m_markers.push_back(std::move(marker));
}

void Metrics::tick(double now, double memoryBytes, double smPercent, const std::string& smReason) {
    // What was not looked at is not known: a hole in the drains is a gap in every series.
    if (now - m_lastTick > kLongestHole)
        for (Series& series : m_series) series.add(m_lastTick, kNoValue);
    m_itl.expire(now - kWindowSeconds);
    m_loads.expire(now - kWindowSeconds);
    m_lookups.expire(now - kWindowSeconds);
    m_decode.expire(now - kWindowSeconds);
    m_reads.expire(now - kReadWindowSeconds);
    m_tokens.expire(now - kRateWindowSeconds);
    m_batches.expire(now - kRateWindowSeconds);

    const auto add = [&](SeriesId id, double y) { m_series[size_t(id)].add(now, y); };
    // A quantity of the engine's work is a gap while no request runs, never a stale figure.
    const auto working = [&](double y) { return m_active > 0 ? y : kNoValue; };
    const auto& [lookups, hits, prefetched, unused] = m_lookups.sums();
    add(SeriesId::HitRate, working(lookups > 0 ? 100 * hits / lookups : kNoValue));
    add(SeriesId::PrefetchHitRate, working(lookups > 0 ? 100 * prefetched / lookups : kNoValue));
    add(SeriesId::LoadP50, working(m_loads.histogram().quantile(0.5) / 1e6));
    add(SeriesId::LoadP99, working(m_loads.histogram().quantile(0.99) / 1e6));
    add(SeriesId::ItlP50, working(m_itl.histogram().quantile(0.5) / 1e6));
    add(SeriesId::ItlP99, working(m_itl.histogram().quantile(0.99) / 1e6));
    const uint64_t count = m_itl.histogram().count();
    m_itlCount.add(now, working(count > 0 ? double(count) : kNoValue));
    const auto& tokens = m_tokens.sums();
    add(SeriesId::TokensPerSecond,
        working(tokens[1] > 0 ? tokens[0] / (tokens[1] / 1e9) : kNoValue));
    add(SeriesId::ReadRate, working(m_reads.sums()[0] / kReadWindowSeconds / 1e9));
    const auto& decode = m_decode.sums();
    add(SeriesId::StallShare, working(decode[1] > 0 ? 100 * decode[2] / decode[1] : kNoValue));
    add(SeriesId::QueueDepth, m_waiting);
    const auto& batches = m_batches.sums();
    add(SeriesId::MeanBatch, working(batches[0] > 0 ? batches[1] / batches[0] : kNoValue));
    tickPrefetch(now);
    add(SeriesId::MemoryGiB, memoryBytes / double(1 << 30));
    Series& sm = m_series[size_t(SeriesId::SmUtilisation)];
    sm.setUnavailable(smReason);
    if (smReason.empty()) sm.add(now, smPercent);

    // As in the series, the figures of a reply stand until the window has passed, and then go.
    if (m_active > 0 || m_turns == 0 || now - m_figuresAt > kWindowSeconds) {
        m_figures = figuresNow();
        m_figuresAt = now;
    }
    if (m_undecided && !isHeld(m_markers[*m_newest]) && now - m_newestStep >= kSameChangeSeconds)
        settleNewest();
    const float decay = float(std::exp2(-(now - m_heatTime) / kHeatHalfLife));
    for (float& heat : m_heat) heat *= decay;
    m_heatTime = now;
    m_lastTick = now;
}

void Metrics::fill(Snapshot& snapshot) const {
    snapshot.now = m_lastTick;
    for (size_t i = 0; i < kSeriesCount; ++i) snapshot.series[i] = m_series[i].data();
    snapshot.itlCount = m_itlCount.data();
    snapshot.markers.clear();
    snapshot.markers.reserve(m_markers.size());
    for (const Marker& marker : m_markers)
        if (!isHeld(marker) && (marker.kind != Marker::Kind::Knob || marker.from != marker.to))
            snapshot.markers.push_back(marker);
    const float hottest = m_heat.empty() ? 0 : *std::max_element(m_heat.begin(), m_heat.end());
    snapshot.heat = m_heat;
    if (hottest > 0) {
        for (float& heat : snapshot.heat) heat /= hottest;
    }
    snapshot.figures = m_figures;
    snapshot.figures.readBytesPerS =
        m_reads.empty() ? kNoValue : m_reads.sums()[0] / kReadWindowSeconds;
}

Figures Metrics::figuresNow() const {
    Figures figures{};
    const auto& tokens = m_tokens.sums();
    const auto& lookups = m_lookups.sums();
    const auto& decode = m_decode.sums();
    figures.decodeTokS = tokens[1] > 0 ? tokens[0] / (tokens[1] / 1e9) : kNoValue;
    figures.itlP50Ms = m_itl.histogram().quantile(0.5) / 1e6;
    figures.itlP99Ms = m_itl.histogram().quantile(0.99) / 1e6;
    figures.itlCount = m_itl.histogram().count();
    figures.hitRate = lookups[0] > 0 ? 100 * lookups[1] / lookups[0] : kNoValue;
    figures.prefetchHitRate = lookups[0] > 0 ? 100 * lookups[2] / lookups[0] : kNoValue;
    figures.loadP50Ms = m_loads.histogram().quantile(0.5) / 1e6;
    figures.loadP99Ms = m_loads.histogram().quantile(0.99) / 1e6;
    figures.stallShare = decode[1] > 0 ? 100 * decode[2] / decode[1] : kNoValue;
    return figures;
}

Histogram Metrics::itlBetween(double t0, double t1) const { return between(m_rawItl, t0, t1); }
Histogram Metrics::loadsBetween(double t0, double t1) const { return between(m_rawLoads, t0, t1); }

}  // namespace colibri
