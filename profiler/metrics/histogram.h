// SPDX-License-Identifier: Apache-2.0
// A mergeable log-linear histogram (HDR style): 3 significant digits, 1 us .. 100 s. This is the
// only percentile implementation of the program. Percentiles are never averaged; histograms are
// merged.
#pragma once

#include <cstdint>
#include <vector>

namespace colibri {

class Histogram {
public:
    Histogram();
    void add(uint64_t ns, uint64_t count = 1);  // values above 100 s count as 100 s in quantiles
    void remove(uint64_t ns);                   // REQUIRES: the value was added before
    void merge(const Histogram& other);
    void clear();
    uint64_t count() const { return m_count; }
    // Value at quantile q in [0, 1], in ns, nearest rank; NaN if empty.
    double quantile(double q) const;
    double mean() const;  // NaN if empty
    // Exact, but after remove() of the minimum or maximum only accurate to a bin.
    double min() const;  // NaN if empty
    double max() const;

    struct Bin {
        double lowNs, highNs;
        uint64_t count;
    };
    std::vector<Bin> bins() const;  // non-empty bins in ascending order

private:
    std::vector<uint32_t> m_bins;  // grows to the largest value's bin
    uint64_t m_count;
    double m_sum;
    uint64_t m_min, m_max;
};

}  // namespace colibri
