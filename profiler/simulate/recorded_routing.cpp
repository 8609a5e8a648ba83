// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/recorded_routing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace colibri {
namespace {

std::string knobOf(const RoutingFacts& facts, const char* name) {
    const auto it = facts.knobs.find(name);
    return it == facts.knobs.end() ? std::string() : it->second;
}

double shareOf(int64_t part, int64_t whole) {
    return whole > 0 ? double(part) / double(whole) : std::nan("");
}

RecordedSetting settingOf(const RoutingFacts& facts) {
    RecordedSetting out;
    const std::string size = knobOf(facts, "expert_cache_size");
    std::from_chars(size.data(), size.data() + size.size(), out.cacheSize);
    out.policy = knobOf(facts, "cache_policy");
    out.prefetchSource = knobOf(facts, "prefetch_source");
    if (knobOf(facts, "prefetch_depth") == "0" || knobOf(facts, "prefetch_threads") == "0" ||
        out.prefetchSource.empty())
        out.prefetchSource = "off";
    out.changes = facts.cacheChanges;
    out.hitRate = shareOf(facts.hits, facts.lookups);
    out.prefetchedShare = shareOf(facts.prefetched, facts.lookups);
    out.preloaded = int64_t(facts.preloaded.size());
    double tokens = 0, ns = 0;
    for (const TokenTimes& token : facts.tokens) {
        if (token.gapNs == 0) continue;
        ++tokens;
        ns += double(token.gapNs);
    }
    out.decodeTokS = tokens > 0 ? 1e9 * tokens / ns : std::nan("");
    return out;
}

// Assigns tokens to the step that generated them, and collects what waiting for misses took.
class StepCollector {
public:
    explicit StepCollector(const RoutingFacts& facts) : m_facts(facts) {}

    void add(const RoutedLayer& layer) {
        if (layer.newStep || m_steps.empty()) {
            endStep(layer.t);
            m_steps.push_back({.rows = int64_t(layer.rows.size())});
        }
        const int64_t misses = int64_t(layer.lookups.size()) - layer.hits;
        m_steps.back().misses += misses;
        m_waits.emplace_back(misses, layer.waitNs);
    }
    DecodeModel finish() {
        endStep(INFINITY);
        MissCost& cost = m_decodeCost.empty() ? m_promptCost : m_decodeCost;
        cost.finish(m_facts.meanReadNs);
        return {std::move(m_steps), std::move(cost)};
    }

private:
    // The tokens up to the next step belong to the current one.
    void endStep(double nextStep) {
        for (; m_nextToken < m_facts.tokens.size() && m_facts.tokens[m_nextToken].t < nextStep;
             ++m_nextToken) {
            const TokenTimes& token = m_facts.tokens[m_nextToken];
            if (m_steps.empty() || token.gapNs == 0) continue;
            StepTimes& step = m_steps.back();
            ++step.tokens;
            const uint64_t waits = token.stallNs + token.preemptedNs;
            step.otherNs += double(token.gapNs - std::min(token.gapNs, waits));
        }
        if (m_steps.empty()) return;
        MissCost& cost = m_steps.back().tokens > 0 ? m_decodeCost : m_promptCost;
        for (const auto& [misses, waitNs] : m_waits) cost.add(misses, waitNs);
        m_waits.clear();
    }

    const RoutingFacts& m_facts;
    std::vector<StepTimes> m_steps;
    MissCost m_decodeCost, m_promptCost;  // of steps with and without generated tokens
    std::vector<std::pair<int64_t, uint64_t>> m_waits;  // misses and ns, of the current step
    size_t m_nextToken = 0;
};

// Calls `preload` for the experts that were preloaded before a layer was computed.
class PreloadsByTime {
public:
    explicit PreloadsByTime(const RoutingFacts& facts) : m_preloaded(facts.preloaded) {}
    template <class Take>
    void before(double t, Take preload) {
        for (; m_next < m_preloaded.size() && m_preloaded[m_next].t < t; ++m_next)
            preload(m_preloaded[m_next].moeLayer, m_preloaded[m_next].expert);
    }

private:
    const std::vector<RoutingFacts::Preloaded>& m_preloaded;
    size_t m_next = 0;
};

}  // namespace

Result<RecordedRouting> readRecordedRouting(const std::filesystem::path& session,
                                            int64_t mostLookups, const ProgressFn& progress,
                                            const CancelFlag* cancel) {
    Result<RoutingFacts> facts = readRoutingFacts(session);
    if (!facts) return facts.status();
    RecordedRouting out;
    out.facts = std::move(*facts);
    out.setting = settingOf(out.facts);
    const auto layers = int64_t(out.facts.moeLayers.size());
    const double rate = double(mostLookups) / double(std::max<int64_t>(1, out.facts.lookups));
    out.sample = std::make_unique<KeySample>(layers, out.facts.experts, rate);
    out.trace = std::make_unique<RoutingTrace>(layers, out.facts.experts, *out.sample);
    StepCollector steps(out.facts);
    PreloadsByTime preloads(out.facts);
    const auto take = [&](const RoutedLayer& layer) {
        preloads.before(layer.t, [&](int64_t moeLayer, int64_t expert) {
            out.trace->addPreload(moeLayer, expert);
        });
        if (layer.newStep) out.trace->beginStep();
        out.trace->addRequest(layer.moeLayer, layer.lookups);
        steps.add(layer);
    };
    COLIBRI_TRY(readRouting(out.facts, take, progress, cancel));
    out.decode = std::make_unique<DecodeModel>(steps.finish());
    return out;
}

Status visitLookups(const RecordedRouting& recorded, const LookupVisitor& visitor,
                    const ProgressFn& progress, const CancelFlag* cancel) {
    const int64_t experts = recorded.facts.experts;
    PreloadsByTime preloads(recorded.facts);
    uint32_t steps = 0;
    std::vector<uint32_t> keys;
    const auto take = [&](const RoutedLayer& layer) {
        preloads.before(layer.t, [&](int64_t moeLayer, int64_t expert) {
            visitor.preload(uint32_t(moeLayer * experts + expert));
        });
        // A session that is still being recorded has grown since the first reading.
        steps += layer.newStep;
        if (steps > recorded.trace->steps()) return;
        keys.clear();
        for (const uint16_t expert : layer.lookups)
            keys.push_back(uint32_t(layer.moeLayer * experts + expert));
        visitor.request(steps - 1, keys);
    };
    return readRouting(recorded.facts, take, progress, cancel);
}

}  // namespace colibri
