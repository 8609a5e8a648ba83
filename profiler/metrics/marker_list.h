// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "profiler/metrics/snapshot.h"

namespace colibri {

// The newest kMost markers of a session, sorted by time. An id is valid until its marker is
// dropped.
class MarkerList {
public:
    static constexpr size_t kMost = 2000;

    uint64_t add(Marker marker) {
        if (m_markers.size() == kMost) {
            m_markers.pop_front();
            ++m_dropped;
        }
        m_markers.push_back(std::move(marker));
        return m_dropped + m_markers.size() - 1;
    }
    // nullptr: the marker was dropped
    Marker* find(uint64_t id) { return id < m_dropped ? nullptr : &m_markers[id - m_dropped]; }
    const Marker* find(uint64_t id) const {
        return id < m_dropped ? nullptr : &m_markers[id - m_dropped];
    }
    const std::deque<Marker>& all() const { return m_markers; }

private:
    std::deque<Marker> m_markers;
    uint64_t m_dropped = 0;
};

}  // namespace colibri
