// SPDX-License-Identifier: Apache-2.0
// The policy lru at every cache size: hit rates and decode rates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "profiler/simulate/curve_point.h"
#include "profiler/simulate/decode_model.h"
#include "profiler/simulate/lru_curve.h"
#include "profiler/simulate/policy_replay.h"

namespace colibri {

// Takes layer requests one at a time and keeps none of them. Memory: O(keys).
class LruSimulation {
public:
    // `largestRequest`: the number of experts in the largest request to come. Sizes with fewer
    // slots are replayed (see LruCurve). `decode` may be nullptr: no rates. Both `sample` and
    // `decode` must outlive the simulation.
    LruSimulation(int64_t moeLayers, int64_t experts, const KeySample& sample,
                  const DecodeModel* decode, size_t largestRequest);

    void preload(uint32_t key);
    void add(uint32_t step, std::span<const uint32_t> keys);  // as LruCurve::add()
    void skip(uint64_t lookups) { m_curve.skip(lookups); }    // as LruCurve::skip()
    std::vector<CurvePoint> points() const;                   // of cache sizes 1..experts
    double samplingError() const { return m_curve.samplingError(); }

private:
    struct Small {
        std::unique_ptr<PolicyReplay> replay;
        std::vector<double> costNs;  // by block
    };
    void addCosts(uint32_t step, std::span<const uint32_t> distances);

    const KeySample& m_sample;
    const DecodeModel* m_decode;
    int64_t m_experts;
    LruCurve m_curve;
    std::vector<Small> m_small;           // of sizes 1, 2, ...
    std::vector<double> m_costNs;         // (blocks, experts + 2) by the smallest size that hits
    std::vector<uint32_t> m_sorted;       // distances of a request
    std::vector<uint32_t> m_sampledKeys;  // of a request
};

}  // namespace colibri
