// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace colibri {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kBucketSeconds = 0.05;
constexpr size_t kRawValues = 1 << 18;  // newest raw gaps and reads kept for pooled percentiles
constexpr double kLongestHole = 1;      // longest time between ticks without a gap, in seconds
constexpr double kHeatHalfLife = 5;     // seconds
constexpr float kLeastHeat = 1e-6f;     // of one use; lower values count as zero

Histogram between(const std::deque<std::pair<double, uint64_t>>& values, double t0, double t1) {
    Histogram histogram;
    auto it = std::lower_bound(values.begin(), values.end(), t0,
                               [](const auto& v, double t) { return v.first < t; });
    for (; it != values.end() && it->first <= t1; ++it) histogram.add(it->second);
    return histogram;
}

}  // namespace

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
    if (m_buckets.empty()) m_sums = {};  // removes accumulated rounding errors
}

Metrics::Metrics(int64_t moeLayers, int64_t experts, const std::vector<int64_t>& moeLayerIndices)
    : m_experts(experts),
      m_changes(m_markers, moeLayers, experts),
      m_heat(size_t(moeLayers * experts)),
      m_figures(figuresNow()) {
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
        case EventType::RequestPreempted:
        case EventType::RequestResumed:
            addRequest(event, t);
            break;
        case EventType::Token:
            addToken(event.token, t);
            break;
        case EventType::LayerStep:
            addLayerStep(event.layerStep, t);
            break;
        case EventType::ExpertRead:
            addRead(event.expertRead, t);
            break;
        case EventType::KnobChanged:
            m_changes.add(event.knob, t);
            break;
        case EventType::Note:
            m_markers.add(
                {.t = t, .label = event.note.text, .kind = Marker::Kind::Note, .automatic = true});
            break;
        case EventType::BatchFormed:
            m_changes.addStep(event.batch.requests);
            m_batches.add(t, {1, double(event.batch.requests), 0, 0});
            if (const uint32_t all = event.batch.kvBlocks) {
                m_kvHeld = 100.0 * event.batch.kvHeld / all;
                m_kvKept = 100.0 * event.batch.kvKept / all;
            }
            break;
        case EventType::PrefetchOutcome:
            addPrefetch(event.prefetch, t);
            break;
        case EventType::Eviction:  // the count comes from the store
        case EventType::Step:      // for the session file
        case EventType::StepMember:
        case EventType::Prompt:
            break;
    }
}

void Metrics::note(double t, const std::string& text) {
    m_markers.add({.t = t, .label = text, .kind = Marker::Kind::Note});
}

void Metrics::addRequest(const Event& event, double t) {
    const RequestEvent& request = event.request;
    if (event.type == EventType::RequestArrived) {
        ++m_waiting;
    } else if (event.type == EventType::RequestAdmitted) {
        m_waiting = std::max(0, m_waiting - 1);
        ++m_active;
        m_markers.add({.t = t,
                       .label = "turn " + std::to_string(++m_turns),
                       .kind = Marker::Kind::TurnStart,
                       .request = request.request});
    } else if (event.type == EventType::RequestFirstToken) {
        m_prompts.add(t, {double(request.promptTokens), double(request.cachedTokens), 0, 0});
    } else if (event.type == EventType::RequestPreempted) {
        m_active = std::max(0, m_active - 1);
        ++m_waiting;
    } else if (event.type == EventType::RequestResumed) {
        m_waiting = std::max(0, m_waiting - 1);
        ++m_active;
    } else if (event.type == EventType::RequestDone) {
        const auto started =
            std::find_if(m_markers.all().rbegin(), m_markers.all().rend(), [&](auto& m) {
                return m.kind == Marker::Kind::TurnStart && m.request == request.request;
            });
        if (started ==
            m_markers.all().rend()) {  // never admitted: cancelled or rejected while it waited
            m_waiting = std::max(0, m_waiting - 1);
            return;
        }
        if (m_figuresAt < started->t) keepFigures(t);  // started and ended between two ticks
        m_active = std::max(0, m_active - 1);
        const std::string label = started->label;
        m_markers.add(
            {.t = t, .label = label, .kind = Marker::Kind::TurnEnd, .request = request.request});
        if (request.stop == StopReason::Error) {
            m_markers.add({.t = t, .label = label + " failed", .kind = Marker::Kind::Error});
        }
    }
}

void Metrics::addToken(const TokenEvent& token, double t) {
    m_decode.add(t, {1, double(token.stepNs), double(token.stallNs), double(token.memoryStallNs)});
    if (token.gapNs == 0) return;  // the first token of a request has no gap
    m_pauses.add(t, {double(token.gapNs), double(token.preemptedNs), 0, 0});
    m_itl.add(t, token.gapNs);
    m_tokens.add(t, {1, double(token.gapNs), 0, 0});
    m_rawItl.emplace_back(t, token.gapNs);
    if (m_rawItl.size() > kRawValues) m_rawItl.pop_front();
    // Gaps that include a preemption are waits for other requests, not an effect of a knob.
    if (token.preemptedNs == 0) m_changes.addToken(double(token.gapNs));
}

void Metrics::addLayerStep(const LayerStepEvent& step, double t) {
    const unsigned first = step.firstBits;
    m_lookups.add(t, {double(std::popcount(first)), double(std::popcount(first & step.hitBits)),
                      double(std::popcount(first & step.hitBits & step.prefetchBits)), 0});
    const int moe = step.layer < m_moeOfLayer.size() ? m_moeOfLayer[step.layer] : -1;
    if (moe < 0) return;
    m_changes.addLookups(moe, step);
    for (int i = 0; i < std::min<int>(step.count, kEventExperts); ++i) {
        const size_t cell = size_t(moe) * size_t(m_experts) + step.experts[i];
        if (step.experts[i] < m_experts && cell < m_heat.size()) m_heat[cell] += 1;
    }
}

void Metrics::addRead(const ExpertReadEvent& read, double t) {
    if (read.failed) return;
    m_reads.add(t, {double(read.bytes), 0, 0, 0});
    if (read.needNs == 0) return;  // nothing waited for this prefetch
    m_expertLoad.add(t, read.needNs);
    m_rawExpertLoad.emplace_back(t, read.needNs);
    if (m_rawExpertLoad.size() > kRawValues) m_rawExpertLoad.pop_front();
}

void Metrics::addPrefetch(const PrefetchEvent& counts, double t) {
    if (counts.source >= m_prefetch.size()) return;
    m_prefetch[counts.source].add(t, {double(counts.issued), double(counts.useful),
                                      double(counts.late), double(counts.wasted)});
}

// Counts the current source. During back-off it is still the requested source and reads nothing.
void Metrics::tickPrefetch(double now) {
    for (WindowedSums& sums : m_prefetch) sums.expire(now - kRateWindowSeconds);
    const int64_t source = m_changes.requested(KnobId::PrefetchSource);
    const bool on = m_active > 0 && source > int64_t(PrefetchSource::Off) &&
                    source < int64_t(m_prefetch.size());
    for (size_t i = 0; i < WindowedSums::kFields; ++i) {
        const double rate =
            on ? m_prefetch[size_t(source)].sums()[i] / kRateWindowSeconds : kNoValue;
        m_series[size_t(SeriesId::PrefetchIssued) + i].add(now, rate);
    }
}

void Metrics::expireWindows(double now) {
    m_itl.expire(now - kWindowSeconds);
    m_expertLoad.expire(now - kWindowSeconds);
    m_lookups.expire(now - kWindowSeconds);
    m_decode.expire(now - kWindowSeconds);
    m_reads.expire(now - kReadWindowSeconds);
    m_tokens.expire(now - kRateWindowSeconds);
    m_batches.expire(now - kRateWindowSeconds);
    m_pauses.expire(now - kWindowSeconds);
    m_prompts.expire(now - kPromptWindowSeconds);
}

void Metrics::tick(double now, double memoryBytes, const GpuPoint& gpu) {
    // No data was collected during a pause between drains, so every series gets a gap.
    if (now - m_lastTick > kLongestHole)
        for (Series& series : m_series) series.add(m_lastTick, kNoValue);
    expireWindows(now);

    const auto add = [&](SeriesId id, double y) { m_series[size_t(id)].add(now, y); };
    // Metrics of running requests have no value while no request runs, instead of an outdated one.
    const auto working = [&](double y) { return m_active > 0 ? y : kNoValue; };
    const auto& [lookups, hits, prefetched, unused] = m_lookups.sums();
    add(SeriesId::HitRate, working(lookups > 0 ? 100 * hits / lookups : kNoValue));
    add(SeriesId::PrefetchHitRate, working(lookups > 0 ? 100 * prefetched / lookups : kNoValue));
    add(SeriesId::ExpertLoadP50, working(m_expertLoad.histogram().quantile(0.5) / 1e6));
    add(SeriesId::ExpertLoadP99, working(m_expertLoad.histogram().quantile(0.99) / 1e6));
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
    add(SeriesId::MemoryStallShare,
        working(decode[1] > 0 ? 100 * decode[3] / decode[1] : kNoValue));
    add(SeriesId::QueueDepth, m_waiting);
    const auto& batches = m_batches.sums();
    add(SeriesId::MeanBatch, working(batches[0] > 0 ? batches[1] / batches[0] : kNoValue));
    tickPrefetch(now);
    add(SeriesId::KvHeld, working(m_batches.empty() ? kNoValue : m_kvHeld));
    add(SeriesId::KvKept, working(m_batches.empty() ? kNoValue : m_kvKept));
    const auto& prompts = m_prompts.sums();
    add(SeriesId::PromptReuse, prompts[0] > 0 ? 100 * prompts[1] / prompts[0] : kNoValue);
    const auto& pauses = m_pauses.sums();
    add(SeriesId::PreemptedShare, working(pauses[0] > 0 ? 100 * pauses[1] / pauses[0] : kNoValue));
    add(SeriesId::MemoryGiB, memoryBytes / double(1 << 30));
    const auto addGpu = [&](SeriesId id, double percent, const std::string& missing) {
        m_series[size_t(id)].setUnavailable(missing);
        if (missing.empty()) add(id, percent);
    };
    addGpu(SeriesId::SmUtilisation, gpu.sm, gpu.noCounters);
    addGpu(SeriesId::GpuDram, gpu.dram, gpu.noCounters);
    addGpu(SeriesId::GpuBusy, gpu.busy, gpu.noGpu);

    if (m_active > 0 || m_turns == 0) keepFigures(now);
    m_changes.tick(now);
    if (m_active + m_waiting > 0)
        m_lastActivity = now;
    else if (!m_markers.all().empty())
        m_lastActivity = std::max(m_lastActivity, m_markers.all().back().t);
    coolExperts(now);
    m_lastTick = now;
}

void Metrics::coolExperts(double now) {
    const float decay = float(std::exp2(-(now - m_heatTime) / kHeatHalfLife));
    for (float& heat : m_heat) {
        heat *= decay;
        if (heat < kLeastHeat) heat = 0;
    }
    m_heatTime = now;
}

void Metrics::fill(Snapshot& snapshot) const {
    snapshot.now = m_lastTick;
    for (size_t i = 0; i < kSeriesCount; ++i) snapshot.series[i] = m_series[i].data();
    snapshot.itlCount = m_itlCount.data();
    snapshot.markers.clear();
    snapshot.markers.reserve(m_markers.all().size());
    for (const Marker& marker : m_markers.all())
        if (m_changes.shows(marker)) snapshot.markers.push_back(marker);
    // Relative to the hottest expert, or to one full use: experts unused for long are cold.
    const float hottest =
        std::accumulate(m_heat.begin(), m_heat.end(), 1.0f,
                        [](float most, float heat) { return std::max(most, heat); });
    snapshot.heat = m_heat;
    for (float& heat : snapshot.heat) heat /= hottest;
    snapshot.running = m_active;
    snapshot.turns = m_turns;
    snapshot.figures = m_figures;
    snapshot.figuresAt = m_figuresAt;
    snapshot.lastActivity = m_lastActivity;
    snapshot.readNowBytesPerS = m_reads.sums()[0] / kReadWindowSeconds;
}

void Metrics::keepFigures(double t) {
    m_figures = figuresNow();
    m_figuresAt = t;
}

Figures Metrics::figuresNow() const {
    Figures figures{};
    const auto& tokens = m_tokens.sums();
    const auto& lookups = m_lookups.sums();
    const auto& decode = m_decode.sums();
    figures.decodeTokS = tokens[1] > 0 ? tokens[0] / (tokens[1] / 1e9) : kNoValue;
    figures.allTokS = tokens[0] > 0 ? tokens[0] / kRateWindowSeconds : kNoValue;
    figures.itlP50Ms = m_itl.histogram().quantile(0.5) / 1e6;
    figures.itlP99Ms = m_itl.histogram().quantile(0.99) / 1e6;
    figures.itlCount = m_itl.histogram().count();
    figures.hitRate = lookups[0] > 0 ? 100 * lookups[1] / lookups[0] : kNoValue;
    figures.prefetchHitRate = lookups[0] > 0 ? 100 * lookups[2] / lookups[0] : kNoValue;
    figures.expertLoadP50Ms = m_expertLoad.histogram().quantile(0.5) / 1e6;
    figures.expertLoadP99Ms = m_expertLoad.histogram().quantile(0.99) / 1e6;
    figures.stallShare = decode[1] > 0 ? 100 * decode[2] / decode[1] : kNoValue;
    figures.readBytesPerS = m_reads.sums()[0] / kReadWindowSeconds;
    return figures;
}

Histogram Metrics::itlBetween(double t0, double t1) const {
    return between(m_rawItl, t0, t1);
}
Histogram Metrics::expertLoadBetween(double t0, double t1) const {
    return between(m_rawExpertLoad, t0, t1);
}

}  // namespace colibri
