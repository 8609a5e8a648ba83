// SPDX-License-Identifier: Apache-2.0
// Which experts a simulation follows: all, or a sample of them.
#pragma once

#include <cstdint>
#include <vector>

namespace colibri {

// Spatial sampling (SHARDS: Waldspurger, Park, Garthwaite, Ahmad, FAST 2015): a hash of the key
// decides whether a key is in the sample, so that all uses of a key are followed or none. A cache
// of n slots over all keys then behaves approximately like one of n * rate slots over the sample.
//
// The keys are known in advance (MoE layers * experts), so the sample takes the same number of
// experts of each layer: those with the smallest hash. Its rate is therefore exact.
class KeySample {
public:
    // `rate` >= 1: all keys.
    KeySample(int64_t moeLayers, int64_t experts, double rate);

    bool contains(uint32_t key) const { return m_all || m_sampled[key]; }
    bool all() const { return m_all; }
    double rate() const { return m_rate; }  // sampled keys / all keys, 0..1
    // The group of a sampled key, 0..kGroups-1. Differences between the groups tell how much the
    // result depends on which keys are in the sample.
    static constexpr int kGroups = 64;
    int group(uint32_t key) const { return m_all ? 0 : m_groups[key]; }

private:
    bool m_all = true;
    double m_rate = 1;
    std::vector<bool> m_sampled;    // (keys)
    std::vector<uint8_t> m_groups;  // (keys)
};

}  // namespace colibri
