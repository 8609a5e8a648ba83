// SPDX-License-Identifier: Apache-2.0
// The total time during which at least one of several activities was running. The caller passes
// times in nanoseconds, which never decrease. Not thread-safe.
#pragma once

#include <cstdint>

namespace colibri {

class BusyTime {
public:
    void begin(uint64_t now) {
        if (m_running++ == 0) m_since = now;
    }
    void end(uint64_t now) {
        if (--m_running == 0) m_total += now - m_since;
    }
    uint64_t at(uint64_t now) const { return m_total + (m_running > 0 ? now - m_since : 0); }

private:
    int64_t m_running = 0;
    uint64_t m_since = 0, m_total = 0;
};

}  // namespace colibri
