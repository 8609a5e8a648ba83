// SPDX-License-Identifier: Apache-2.0
// Where the forward pass is: the MoE layer that was requested last, and how many times each layer
// was requested. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace colibri {

class LayerSteps {
public:
    explicit LayerSteps(int64_t moeLayers) : m_requests(size_t(moeLayers)) {}

    void request(int64_t moeLayer) {
        m_current = moeLayer;
        ++m_requests[size_t(moeLayer)];
    }
    int64_t current() const { return m_current; }  // -1: no layer was requested yet
    uint32_t requestsOf(int64_t moeLayer) const { return m_requests[size_t(moeLayer)]; }
    // The number of layers from the current one to the next pass through `moeLayer`, 1..M.
    int64_t distance(int64_t moeLayer) const {
        const auto layers = int64_t(m_requests.size());
        const int64_t distance = (moeLayer - m_current + layers) % layers;
        return distance == 0 ? layers : distance;
    }

private:
    int64_t m_current = -1;
    std::vector<uint32_t> m_requests;  // (MoE layers)
};

}  // namespace colibri
