// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/time_rows.h"

#include <cmath>
#include <limits>

namespace colibri {

Status TimeRows::open(const SessionDb& db, const std::string& table) {
    m_first = 0;
    m_last = -1;
    if (!db.has(table.c_str(), "t")) return {};
    SessionRows ends;
    COLIBRI_TRY(ends.prepare(db, "SELECT (SELECT min(rowid) FROM " + table +
                                     "), (SELECT max(rowid) FROM " + table + ")"));
    if (ends.next() && !ends.isNull(0)) {
        m_first = ends.integer(0);
        m_last = ends.integer(1);
    }
    COLIBRI_TRY(ends.status());
    return m_time.prepare(db,
                          "SELECT t FROM " + table + " WHERE rowid >= ? ORDER BY rowid LIMIT 1");
}

double TimeRows::timeOf(int64_t row) {
    if (empty()) return std::numeric_limits<double>::quiet_NaN();
    m_time.rewind();
    m_time.bind(row);
    return m_time.next() ? m_time.real(0) : std::numeric_limits<double>::quiet_NaN();
}

int64_t TimeRows::firstAt(double t) {
    int64_t low = m_first, high = m_last + 1;  // the answer is in [low, high]
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const double at = timeOf(middle);
        if (std::isfinite(at) && at < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

}  // namespace colibri
