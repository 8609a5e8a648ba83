// SPDX-License-Identifier: Apache-2.0
// How long at least one of several things has been under way, in all. Nanoseconds, handed in and
// never going back. Not thread-safe.
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
