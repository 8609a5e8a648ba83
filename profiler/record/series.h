// SPDX-License-Identifier: Apache-2.0
// A bounded time series. New points are kept as they come; when the bound is reached the older
// half is thinned: each pair of neighbours becomes the two points of their minimum and maximum
// over twice the time, so peaks survive and memory stays flat for a session of any length.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "profiler/record/snapshot.h"

namespace colibri {

class Series {
public:
    explicit Series(size_t capacity = 8192) : m_capacity(capacity) {}

    // t must not fall. y = NaN marks a gap; repeated gaps are stored once.
    void add(double t, double y);
    const SeriesData& data() const { return m_data; }
    void setUnavailable(std::string reason) { m_data.unavailable = std::move(reason); }

private:
    void thin();

    size_t m_capacity;
    SeriesData m_data;
};

}  // namespace colibri
