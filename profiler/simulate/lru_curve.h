// SPDX-License-Identifier: Apache-2.0
// The hit rate of the expert cache with the policy lru, for every cache size at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/metrics/stack_distances.h"
#include "profiler/simulate/key_sample.h"

namespace colibri {

// Takes layer requests one at a time, as the engine makes them; the curve can be read after each.
// Not thread-safe. Memory: O(keys); time: O(log keys) per lookup.
//
// LRU is a stack algorithm (Mattson, Gecsei, Slutz, Traiger, 1970): a cache of n slots holds the n
// keys that were used last. One pass that finds each lookup's stack distance (the number of other
// keys used since the last use of its key) gives the hits of every size: a lookup hits in n slots
// if and only if its distance is below n.
//
// The store looks up all experts of a layer's request before it moves any of them, so the distances
// are those at the beginning of the request. The cache is shared by all MoE layers: a cache size of
// c experts per layer means c * MoE layers slots. If a request needs more experts than there are
// slots, the store computes the resident ones first and the cache no longer holds a prefix of the
// stack: for these small sizes see PolicyReplay.
//
// With a sample of the keys (KeySample), distances are divided by its rate. The sample has more or
// fewer lookups than expected if it has more or fewer of the hot keys, which the estimate corrects:
//
//   misses = (misses of the sample + b * (lookups * rate - lookups of the sample)) / rate
//
// SHARDS divides by the lookups of the sample (b = its miss ratio); "SHARDS-adj" of the same paper
// takes all missing lookups for hits (b = 0). Here b is the slope of the misses over the lookups of
// the groups of sampled keys (a regression estimator, as in survey sampling), which adapts to the
// cache size.
class LruCurve {
public:
    // `sample` must outlive the curve.
    LruCurve(int64_t moeLayers, int64_t experts, const KeySample& sample);

    // An expert was preloaded; in the order of reading, most used first.
    void preload(uint32_t key);
    // A request: distinct keys (moeLayer * experts + expert), in order of first use. The distances
    // are valid until the next call; StackDistances::kNever for a first use. Keys that are not in
    // the sample have kNotSampled.
    static constexpr uint32_t kNotSampled = UINT32_MAX - 1;
    std::span<const uint32_t> add(std::span<const uint32_t> keys);
    // Counts lookups of keys that are not in the sample and were not passed to add().
    void skip(uint64_t lookups) { m_lookups += lookups; }

    uint64_t lookups() const { return m_lookups; }  // of all keys
    // For cache sizes 1..experts: 0..1; NaN before the first lookup.
    std::vector<double> hitRates() const;
    // Three standard errors of the hit rate, at the cache size where they are largest, because of
    // the sample: 0 if it has all keys, at most 1.
    double samplingError() const;
    // The smallest cache size at which a lookup of this distance hits; more than `experts`: none.
    int64_t sizeThatHits(uint32_t distance) const;

private:
    struct Estimate {
        double hitRate, variance;  // the variance without that of the distances
    };
    std::vector<Estimate> estimates() const;
    Estimate estimate(const std::vector<double>& misses, const std::vector<double>& lookups) const;

    const KeySample& m_sample;
    int64_t m_moeLayers, m_experts;
    StackDistances m_stack;
    uint64_t m_lookups = 0;
    std::vector<uint32_t> m_distances;          // of the last request
    std::vector<std::vector<uint64_t>> m_hits;  // (groups, experts + 1) by size - 1
};

}  // namespace colibri
