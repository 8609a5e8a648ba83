// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/previous_token.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "profiler/simulate/prefetch_replay.h"

namespace colibri {
namespace {

constexpr size_t kMostSequences = 4096;  // remembered at once

// The experts that each sequence's last token used, and the hints that follow from them
// (MoeStage::hintPreviousToken).
class LastExperts {
public:
    LastExperts(int64_t moeLayers, int64_t experts, int64_t topK)
        : m_moeLayers(moeLayers), m_experts(experts), m_topK(topK), m_counts(size_t(experts)) {}

    // The hints for `moeLayer`, most likely key first, from the rows of the current step.
    void hints(const RoutedLayer& step, int64_t moeLayer, std::vector<uint32_t>& out) {
        out.clear();
        if (step.prefill) return;
        m_ids.clear();
        for (const RoutedLayer::Row& row : step.rows) {
            const auto it = m_of.find(row.request);
            if (it == m_of.end()) continue;
            const uint16_t* const used = &it->second[size_t(moeLayer * m_topK)];
            for (int64_t i = 0; i < m_topK && used[i] != kNone; ++i) {
                if (m_counts[used[i]] == 0) m_ids.push_back(used[i]);
                m_counts[used[i]] += 2 * m_topK - i;
            }
        }
        std::sort(m_ids.begin(), m_ids.end());
        std::stable_sort(m_ids.begin(), m_ids.end(),
                         [this](uint16_t a, uint16_t b) { return m_counts[a] > m_counts[b]; });
        for (const uint16_t id : m_ids) {
            out.push_back(uint32_t(moeLayer * m_experts + id));
            m_counts[id] = 0;
        }
    }
    void remember(const RoutedLayer& layer) {
        if (m_of.size() > kMostSequences) m_of.clear();
        for (const RoutedLayer::Row& row : layer.rows) {
            std::vector<uint16_t>& used = m_of[row.request];
            used.resize(size_t(m_moeLayers * m_topK), kNone);
            const size_t count = std::min(row.end - row.begin, size_t(m_topK));
            std::copy_n(layer.experts.begin() + std::ptrdiff_t(row.begin), count,
                        used.begin() + std::ptrdiff_t(layer.moeLayer * m_topK));
        }
    }

private:
    static constexpr uint16_t kNone = UINT16_MAX;
    int64_t m_moeLayers, m_experts, m_topK;
    std::unordered_map<uint64_t, std::vector<uint16_t>> m_of;  // by request
    std::vector<int64_t> m_counts;                             // (experts)
    std::vector<uint16_t> m_ids;
};

class PreviousToken {
public:
    PreviousToken(const RecordedRouting& recorded, const PrefetchOptions& options)
        : m_decode(*recorded.decode),
          m_steps(recorded.trace->steps()),
          m_moeLayers(recorded.trace->moeLayers()),
          m_experts(recorded.trace->experts()),
          m_depth(options.depth),
          m_readNs(recorded.facts.meanReadNs),
          m_last(m_moeLayers, m_experts, recorded.facts.topK) {
        for (const int64_t size : options.sizes)
            m_caches.push_back({size,
                                {options.policy, PrefetchSource::PreviousToken, m_moeLayers,
                                 m_experts, size * m_moeLayers},
                                std::vector<double>(m_decode.blocks())});
    }

    void add(const RoutedLayer& layer) {
        m_step += layer.newStep;
        if (m_step > m_steps) return;
        m_keys.clear();
        for (const uint16_t expert : layer.lookups)
            m_keys.push_back(uint32_t(layer.moeLayer * m_experts + expert));
        // The experts were requested when router and earlier stages had ended.
        const double requested = layer.t - double(layer.waitNs + layer.computeNs) * 1e-9;
        const double idleNs = std::max(0.0, (requested - m_requested) * 1e9 - m_waitNs);
        for (Cache& cache : m_caches) {
            if (!layer.newStep) readAhead(cache, idleNs);
            const int64_t misses = cache.replay.request(layer.moeLayer, m_keys);
            m_decode.addCost(uint32_t(m_step - 1), misses, 1, cache.costNs);
        }
        m_requested = requested;
        m_waitNs = double(layer.waitNs);
        m_hints.clear();
        std::vector<uint32_t> hints;
        const int64_t last = std::min(layer.moeLayer + m_depth, m_moeLayers - 1);
        for (int64_t next = layer.moeLayer + 1; next <= last; ++next) {
            m_last.hints(layer, next, hints);
            m_hints.insert(m_hints.end(), hints.begin(), hints.end());
        }
        m_last.remember(layer);
    }

    std::vector<PrefetchPoint> points() const {
        double tokens = 0;
        for (uint32_t step = 0; step < m_steps; ++step) tokens += m_decode.weightOf(step);
        std::vector<PrefetchPoint> out;
        for (const Cache& cache : m_caches) {
            const PrefetchReplay& replay = cache.replay;
            const auto lookups = double(replay.lookups());
            out.push_back(
                {{cache.size, 1 - double(replay.misses()) / lookups, m_decode.rate(cache.costNs)},
                 double(replay.prefetched()) / lookups,
                 double(replay.reads()) / std::max(1.0, tokens)});
        }
        return out;
    }

private:
    struct Cache {
        int64_t size;
        PrefetchReplay replay;
        std::vector<double> costNs;
    };

    // Between the previous request and this one.
    void readAhead(Cache& cache, double idleNs) {
        if (m_hints.empty() || m_readNs <= 0) return;
        const auto fit = int64_t(idleNs / m_readNs);
        const int64_t done = cache.replay.prefetch(m_hints, fit, uint64_t(m_readNs));
        if (done < fit) return;
        // One more has begun.
        for (const uint32_t hint : m_hints) {
            if (cache.replay.contains(hint)) continue;
            if (std::find(m_keys.begin(), m_keys.end(), hint) != m_keys.end())
                cache.replay.late(uint64_t(idleNs - double(fit) * m_readNs));
            return;
        }
    }

    const DecodeModel& m_decode;
    size_t m_steps;
    int64_t m_moeLayers, m_experts, m_depth;
    double m_readNs;
    LastExperts m_last;
    std::vector<Cache> m_caches;
    size_t m_step = 0;              // counted from 1
    double m_requested = 0;         // s, time of the previous request
    double m_waitNs = 0;            // of the previous request
    std::vector<uint32_t> m_hints;  // for the coming layers, next layer first
    std::vector<uint32_t> m_keys;   // of this request
};

}  // namespace

Result<std::vector<PrefetchPoint>> simulatePreviousToken(const RecordedRouting& recorded,
                                                         const PrefetchOptions& options,
                                                         const ProgressFn& progress,
                                                         const CancelFlag* cancel) {
    PreviousToken simulation(recorded, options);
    COLIBRI_TRY(readRouting(
        recorded.facts, [&](const RoutedLayer& layer) { simulation.add(layer); }, progress,
        cancel));
    return simulation.points();
}

}  // namespace colibri
