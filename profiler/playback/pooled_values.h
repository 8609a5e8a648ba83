// SPDX-License-Identifier: Apache-2.0
// Durations of a recorded session with their times, and the histogram of those in any range:
// inter-token gaps, times of demand reads. Histograms of blocks of values make it quick.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/metrics/histogram.h"

namespace colibri {

// Thread-safe for reading once it is filled.
class PooledValues {
public:
    // Of a session with more values only every n-th is kept, and counts n times.
    static constexpr int64_t kMost = 4 << 20;
    explicit PooledValues(int64_t expected = 0);

    void add(double t, uint64_t ns);  // t must not decrease, except by the disorder of the rows
    int64_t count() const { return m_added; }
    Histogram between(double t0, double t1) const;
    int64_t countBetween(double t0, double t1) const;  // values with a time in [t0, t1]

private:
    struct Value {
        uint32_t ticks;  // of 0.1 ms
        float ns;
    };
    static constexpr size_t kBlock = 1 << 14;
    size_t firstAt(double t) const;

    int64_t m_every = 1, m_added = 0;
    std::vector<Value> m_values;
    std::vector<Histogram> m_blocks;  // of each complete block
};

}  // namespace colibri
