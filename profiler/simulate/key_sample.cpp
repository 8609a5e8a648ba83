// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/key_sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace colibri {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): every bit of the result depends on every
// bit of the key.
uint64_t hashOf(uint64_t key) {
    key += 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    return key ^ key >> 31;
}

}  // namespace

KeySample::KeySample(int64_t moeLayers, int64_t experts, double rate) {
    const auto perLayer =
        std::clamp<int64_t>(int64_t(std::ceil(rate * double(experts))), 1, experts);
    if (rate >= 1 || perLayer == experts) return;
    m_all = false;
    m_rate = double(perLayer) / double(experts);
    m_sampled.resize(size_t(moeLayers * experts));
    m_groups.resize(m_sampled.size());
    std::vector<uint32_t> keys(size_t(experts), 0);
    size_t taken = 0;
    for (int64_t layer = 0; layer < moeLayers; ++layer) {
        std::iota(keys.begin(), keys.end(), uint32_t(layer * experts));
        std::sort(keys.begin(), keys.end(),
                  [](uint32_t a, uint32_t b) { return hashOf(a) < hashOf(b); });
        for (int64_t i = 0; i < perLayer; ++i) {
            m_sampled[keys[size_t(i)]] = true;
            m_groups[keys[size_t(i)]] = uint8_t(taken++ % kGroups);
        }
    }
}

}  // namespace colibri
