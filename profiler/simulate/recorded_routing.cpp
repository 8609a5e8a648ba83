// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/recorded_routing.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace colibri {
namespace {

std::string knobOf(const RoutingFacts& facts, const char* name) {
    const auto it = facts.knobs.find(name);
    return it == facts.knobs.end() ? std::string() : it->second;
}

int64_t knobNumber(const RoutingFacts& facts, const char* name) {
    const std::string text = knobOf(facts, name);
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

double shareOf(int64_t part, int64_t whole) {
    return whole > 0 ? double(part) / double(whole) : std::nan("");
}

RecordedSetting settingOf(const RoutingFacts& facts) {
    RecordedSetting out;
    out.cacheSize = knobNumber(facts, "expert_cache_size");
    out.prefetchDepth = knobNumber(facts, "prefetch_depth");
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

// Assigns tokens to the step that generated them, and collects what misses cost.
class StepCollector {
public:
    explicit StepCollector(const RoutingFacts& facts) : m_facts(facts) {}

    void add(const RoutedLayer& layer) {
        if (layer.newStep || m_steps.empty()) {
            endStep(layer.t);
            m_steps.emplace_back();
            m_rows = layer.rows.size();
        }
        const int64_t misses = int64_t(layer.lookups.size()) - layer.hits;
        m_steps.back().misses += misses;
        m_steps.back().missLayers += misses > 0;
        m_layers.push_back({misses, layer.waitNs, layer.computeNs});
    }
    DecodeModel finish() {
        endStep(INFINITY);
        // More rows need more experts and more time: only steps of the usual size are compared.
        MissCost cost;
        for (auto& [rows, ofRows] : m_costs)
            if (ofRows.layers() > cost.layers()) cost = std::move(ofRows);
        cost.finish(m_facts.meanReadNs);
        return {std::move(m_steps), std::move(cost)};
    }

private:
    struct Layer {
        int64_t misses;
        uint64_t waitNs, computeNs;
    };
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
        if (m_steps.back().tokens > 0)
            for (const Layer& layer : m_layers)
                m_costs[m_rows].add(layer.misses, layer.waitNs, layer.computeNs);
        m_layers.clear();
    }

    const RoutingFacts& m_facts;
    std::vector<StepTimes> m_steps;
    std::map<size_t, MissCost> m_costs;  // by rows, of steps that generated tokens
    std::vector<Layer> m_layers;         // of the current step
    size_t m_rows = 0;                   // of the current step
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
