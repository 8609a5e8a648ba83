// SPDX-License-Identifier: Apache-2.0
// Finds rows of a session's tables by time. The tables have no index on time, but the recorder
// writes their rows in order of time, up to the length of one drain, so row ids can be searched.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/session/session_db.h"

namespace colibri {

// The largest time by which a row can be in the wrong order: rows of other threads that a drain
// found later.
constexpr double kRowDisorder = 0.25;  // seconds

// Not thread-safe; uses the database of the caller, which must outlive it.
class TimeRows {
public:
    // A table that does not exist or has no rows: empty(). Errors: those of reading.
    Status open(const SessionDb& db, const std::string& table);
    bool empty() const { return m_last < m_first; }
    int64_t first() const { return m_first; }
    int64_t last() const { return m_last; }
    int64_t count() const { return empty() ? 0 : m_last - m_first + 1; }
    // The first row at or after `t`, within the disorder of the table; last() + 1: there is none.
    int64_t firstAt(double t);
    double timeOf(int64_t row);  // NaN: no such row

private:
    SessionRows m_time;
    int64_t m_first = 0, m_last = -1;
};

}  // namespace colibri
