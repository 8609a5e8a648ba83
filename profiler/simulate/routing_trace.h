// SPDX-License-Identifier: Apache-2.0
// The expert lookups of a recorded session, in memory, as the simulations need them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/simulate/key_sample.h"

namespace colibri {

// A key is moeLayer * experts + expert. A request has the distinct experts of one layer of one step
// of the batch, in order of first use. Built by adding requests, steps and preloads in order.
class RoutingTrace {
public:
    // With a sample, only the lookups of its keys are kept. `sample` must outlive the trace.
    RoutingTrace(int64_t moeLayers, int64_t experts, const KeySample& sample);

    int64_t moeLayers() const { return m_moeLayers; }
    int64_t experts() const { return m_experts; }
    int64_t keyCount() const { return m_moeLayers * m_experts; }
    const KeySample& sample() const { return m_sample; }

    void beginStep() { ++m_steps; }
    void addRequest(int64_t moeLayer, std::span<const uint16_t> experts);
    void addPreload(int64_t moeLayer, int64_t expert);  // before the next request

    uint64_t lookups() const { return m_lookups; }  // also of keys that are not in the sample
    size_t steps() const { return m_steps; }
    size_t requests() const { return m_begin.size(); }
    std::span<const uint32_t> request(size_t index) const;
    uint32_t stepOf(size_t request) const { return m_stepOf[request]; }
    // The number of keys in the largest request: sampled ones, and all.
    size_t largestRequest() const { return m_largest; }
    size_t largestRequestOfAll() const { return m_largestOfAll; }
    const std::vector<uint32_t>& keys() const { return m_keys; }  // of all requests
    // Calls `take` for each key that was preloaded before this request and after the one before.
    template <class Take>
    void preloadsBefore(size_t request, size_t& next, Take take) const {
        for (; next < m_preloads.size() && m_preloads[next].request <= request; ++next)
            take(m_preloads[next].key);
    }

private:
    struct Preload {
        uint64_t request = 0;
        uint32_t key = 0;
    };
    int64_t m_moeLayers, m_experts;
    const KeySample& m_sample;
    uint64_t m_lookups = 0;
    size_t m_steps = 0, m_largest = 0, m_largestOfAll = 0;
    std::vector<uint32_t> m_keys;
    std::vector<uint64_t> m_begin;   // (requests) first key
    std::vector<uint32_t> m_stepOf;  // (requests)
    std::vector<Preload> m_preloads;
};

}  // namespace colibri
