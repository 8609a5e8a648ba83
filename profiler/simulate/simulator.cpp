// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/simulator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "profiler/simulate/belady.h"
#include "profiler/simulate/lru_simulation.h"
#include "profiler/simulate/policy_replay.h"

namespace colibri {
namespace {

constexpr int64_t kAllSizes = 32;  // up to so many experts per layer, every size is simulated
constexpr double kSizeRatio = 1.19;

int64_t slotsOf(const RoutingTrace& trace, int64_t cacheSize) {
    return simulatedSlots(cacheSize, trace.moeLayers(), trace.sample());
}

// The misses of one cache, and what they cost by block of tokens.
class MissTally {
public:
    MissTally(const RoutingTrace& trace, const DecodeModel* decode)
        : m_trace(trace), m_decode(decode), m_costNs(decode ? decode->blocks() : 0) {}

    void add(size_t request, int64_t misses) {
        m_misses += uint64_t(misses);
        if (m_decode)
            m_decode->addCost(m_trace.stepOf(request), misses, m_trace.sample().rate(), m_costNs);
    }
    // Misses of the sample stand for misses / rate of all keys (see LruCurve).
    CurvePoint point(int64_t cacheSize) const {
        const double expected = double(m_trace.lookups()) * m_trace.sample().rate();
        const double hitRate = expected > 0 ? 1 - double(m_misses) / expected : std::nan("");
        return {cacheSize, hitRate, rateOrUnknown(m_decode, m_costNs)};
    }

private:
    const RoutingTrace& m_trace;
    const DecodeModel* m_decode;
    uint64_t m_misses = 0;
    std::vector<double> m_costNs;
};

CurvePoint replayBelady(const Belady& belady, const RoutingTrace& trace, int64_t cacheSize,
                        const DecodeModel* decode) {
    MissTally tally(trace, decode);
    belady.replay(slotsOf(trace, cacheSize),
                  [&](size_t request, int64_t misses) { tally.add(request, misses); });
    return tally.point(cacheSize);
}

// The simulations of one session.
class Runs {
public:
    Runs(const RecordedRouting& recorded, const ProgressFn& progress, const CancelFlag* cancel)
        : m_recorded(recorded),
          m_trace(*recorded.trace),
          m_decode(recorded.decode.get()),
          m_progress(progress),
          m_cancel(cancel) {}

    Status run(const std::vector<int64_t>& sizes, Simulation& out) {
        m_runs = 3 * sizes.size() + 1;
        COLIBRI_TRY(next());
        COLIBRI_TRY(runLru(out));
        for (const auto& [policy, points] : {std::pair(CachePolicyKind::Slru, &out.slru),
                                             std::pair(CachePolicyKind::Lfru, &out.lfru)}) {
            for (const int64_t size : sizes) {
                COLIBRI_TRY(next());
                points->push_back(simulatePolicy(m_trace, policy, size, m_decode));
            }
        }
        const Belady belady(m_trace);
        for (const int64_t size : sizes) {
            COLIBRI_TRY(next());
            out.belady.push_back(replayBelady(belady, m_trace, size, m_decode));
        }
        return {};
    }

    Status runPrefetch(const std::vector<int64_t>& sizes, Simulation& out) {
        const RecordedSetting& setting = m_recorded.setting;
        const CachePolicyKind policy = setting.policy == "slru"   ? CachePolicyKind::Slru
                                       : setting.policy == "lfru" ? CachePolicyKind::Lfru
                                                                  : CachePolicyKind::Lru;
        const std::vector<CurvePoint>& curve = policy == CachePolicyKind::Slru   ? out.slru
                                               : policy == CachePolicyKind::Lfru ? out.lfru
                                                                                 : out.lru;
        out.prefetch.policy = setting.policy;
        auto points = simulatePreviousToken(
            m_recorded, {policy, std::max<int64_t>(1, setting.prefetchDepth), sizes}, m_progress,
            m_cancel);
        if (!points) return points.status();
        out.prefetch.previousToken = std::move(*points);
        if (setting.prefetchSource != "next_router" && setting.prefetchSource != "router_table")
            return {};
        const double missed = 1 - setting.hitRate, avoided = setting.prefetchedShare;
        out.prefetch.avoidedShare = avoided > 0 ? avoided / (avoided + missed) : 0;
        for (const CurvePoint& point : curve) {
            const double misses = (1 - point.hitRate) * (1 - out.prefetch.avoidedShare);
            out.prefetch.recordedSource.push_back(
                {point.cacheSize, 1 - misses, rateOrUnknown(nullptr, {})});
        }
        return {};
    }

private:
    Status next() {
        if (m_progress) m_progress({"Simulating", m_done++, m_runs, "caches"});
        return m_cancel && m_cancel->load() ? Status(Code::Cancelled, "stopped") : Status();
    }
    // Exact, and with the sample if there is one.
    Status runLru(Simulation& out) {
        out.lru = simulateLru(m_trace, m_decode, &out.samplingError);
        if (m_trace.sample().all()) return {};
        const KeySample all(m_trace.moeLayers(), m_trace.experts(), 1);
        LruSimulation exact(m_trace.moeLayers(), m_trace.experts(), all, m_decode,
                            m_trace.largestRequestOfAll());
        COLIBRI_TRY(visitLookups(
            m_recorded,
            {[&](uint32_t key) { exact.preload(key); },
             [&](uint32_t step, std::span<const uint32_t> keys) { exact.add(step, keys); }},
            m_progress, m_cancel));
        const std::vector<CurvePoint> sampled = std::exchange(out.lru, exact.points());
        for (size_t i = 0; i < sampled.size(); ++i) {
            const double off = std::abs(out.lru[i].hitRate - sampled[i].hitRate);
            out.samplingError = std::max(out.samplingError, off);
        }
        return {};
    }

    const RecordedRouting& m_recorded;
    const RoutingTrace& m_trace;
    const DecodeModel* m_decode;
    const ProgressFn& m_progress;
    const CancelFlag* m_cancel;
    uint64_t m_runs = 0, m_done = 0;
};

std::vector<std::string> notesOn(const RecordedSetting& setting, const DecodeModel& decode) {
    std::vector<std::string> notes;
    if (setting.prefetchSource != "off")
        notes.emplace_back("Prefetching is off in the simulation; it was " +
                           setting.prefetchSource +
                           " in the session, whose measured figures include it");
    if (setting.changes > 0)
        notes.emplace_back(
            "Cache size or policy changed during the session; its measured figures cover all "
            "settings");
    if (setting.preloaded > 0)
        notes.emplace_back(
            "The cache starts with the experts that the session preloaded; a larger cache would "
            "have preloaded more");
    if (decode.unknownReason().empty() && !decode.cost().measured())
        notes.emplace_back(
            "No token waited for an expert, so each miss is assumed to cost a mean read");
    return notes;
}

}  // namespace

std::vector<int64_t> sizesToSimulate(int64_t experts, const std::vector<int64_t>& also) {
    std::vector<int64_t> sizes;
    if (experts <= kAllSizes) {
        sizes.resize(size_t(experts));
        std::iota(sizes.begin(), sizes.end(), 1);
        return sizes;
    }
    for (double size = 1; size < double(experts); size = std::max(size + 1, size * kSizeRatio))
        sizes.push_back(int64_t(size));
    sizes.push_back(experts);
    for (const int64_t size : also)
        if (size >= 1 && size <= experts) sizes.push_back(size);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

std::vector<CurvePoint> simulateLru(const RoutingTrace& trace, const DecodeModel* decode,
                                    double* samplingError) {
    LruSimulation lru(trace.moeLayers(), trace.experts(), trace.sample(), decode,
                      trace.largestRequest());
    size_t nextPreload = 0;
    for (size_t request = 0; request < trace.requests(); ++request) {
        trace.preloadsBefore(request, nextPreload, [&](uint32_t key) { lru.preload(key); });
        lru.add(trace.stepOf(request), trace.request(request));
    }
    lru.skip(trace.lookups() - trace.keys().size());
    if (samplingError) *samplingError = lru.samplingError();
    return lru.points();
}

CurvePoint simulatePolicy(const RoutingTrace& trace, CachePolicyKind policy, int64_t cacheSize,
                          const DecodeModel* decode) {
    PolicyReplay replay(policy, trace.keyCount(), slotsOf(trace, cacheSize));
    MissTally tally(trace, decode);
    size_t nextPreload = 0;
    for (size_t request = 0; request < trace.requests(); ++request) {
        trace.preloadsBefore(request, nextPreload, [&](uint32_t key) { replay.preload(key); });
        tally.add(request, replay.request(trace.request(request)));
    }
    return tally.point(cacheSize);
}

std::vector<CurvePoint> simulateBelady(const RoutingTrace& trace, const std::vector<int64_t>& sizes,
                                       const DecodeModel* decode) {
    const Belady belady(trace);
    std::vector<CurvePoint> points;
    for (const int64_t size : sizes) points.push_back(replayBelady(belady, trace, size, decode));
    return points;
}

Result<Simulation> simulateSession(const std::filesystem::path& session,
                                   const SimulateOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel) {
    Result<RecordedRouting> recorded =
        readRecordedRouting(session, options.mostLookups, progress, cancel);
    if (!recorded) return recorded.status();
    const RoutingTrace& trace = *recorded->trace;
    Simulation out;
    const auto model = recorded->facts.meta.find("model");
    if (model != recorded->facts.meta.end()) out.model = model->second;
    out.lookups = trace.lookups();
    out.moeLayers = trace.moeLayers();
    out.experts = trace.experts();
    out.topK = recorded->facts.topK;
    out.recorded = recorded->setting;
    out.samplingRate = trace.sample().rate();
    out.noDecodeRate = recorded->decode->unknownReason();
    out.notes = notesOn(out.recorded, *recorded->decode);
    const std::vector<int64_t> sizes =
        options.sizes.empty() ? sizesToSimulate(trace.experts(), {out.topK, out.recorded.cacheSize})
                              : options.sizes;
    Runs runs(*recorded, progress, cancel);
    COLIBRI_TRY(runs.run(sizes, out));
    COLIBRI_TRY(runs.runPrefetch(sizes, out));
    return out;
}

}  // namespace colibri
