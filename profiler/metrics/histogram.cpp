// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace colibri {
namespace {

// Values are stored in units of 2^9 ns (about half a microsecond). Each octave has kHalf = 1024
// equal bins, so the width of a bin is at most 1/1024 of its values: three digits.
constexpr int kUnitShift = 9;
constexpr uint64_t kHalf = 1024;
constexpr int kHalfBits = 10;
constexpr uint64_t kMaxNs = 100'000'000'000;  // 100 s
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

size_t binOf(uint64_t ns) {
    const uint64_t units = std::min(ns, kMaxNs) >> kUnitShift;
    if (units < 2 * kHalf) return size_t(units);
    const int shift = std::bit_width(units) - 1 - kHalfBits;  // units >> shift is in [1024, 2047]
    return size_t(shift) * kHalf + size_t(units >> shift);
}

uint64_t lowOf(size_t bin) {
    if (bin < 2 * kHalf) return uint64_t(bin) << kUnitShift;
    const int shift = int(bin / kHalf) - 1;
    return (kHalf + bin % kHalf) << (shift + kUnitShift);
}

uint64_t highOf(size_t bin) {
    return lowOf(bin + 1);
}

}  // namespace

Histogram::Histogram() {
    clear();
}

void Histogram::clear() {
    m_bins.clear();
    m_count = 0;
    m_sum = 0;
    m_min = std::numeric_limits<uint64_t>::max();
    m_max = 0;
}

void Histogram::add(uint64_t ns, uint64_t count) {
    if (count == 0) return;
    const size_t bin = binOf(ns);
    if (bin >= m_bins.size()) m_bins.resize(bin + 1);
    m_bins[bin] += uint32_t(count);
    m_count += count;
    m_sum += double(ns) * double(count);
    m_min = std::min(m_min, ns);
    m_max = std::max(m_max, ns);
}

void Histogram::merge(const Histogram& other) {
    if (other.m_bins.size() > m_bins.size()) m_bins.resize(other.m_bins.size());
    for (size_t i = 0; i < other.m_bins.size(); ++i) m_bins[i] += other.m_bins[i];
    m_count += other.m_count;
    m_sum += other.m_sum;
    m_min = std::min(m_min, other.m_min);
    m_max = std::max(m_max, other.m_max);
}

void Histogram::remove(uint64_t ns) {
    const size_t bin = binOf(ns);
    if (bin >= m_bins.size() || m_bins[bin] == 0) return;
    --m_bins[bin];
    m_sum -= double(ns);
    if (--m_count == 0) return clear();
    // The exact minimum or maximum has been removed. Uses the edge of the outermost remaining bin
    // instead.
    if (ns == m_min || ns == m_max) {
        const auto first = std::find_if(m_bins.begin(), m_bins.end(), [](auto n) { return n > 0; });
        const auto last =
            std::find_if(m_bins.rbegin(), m_bins.rend(), [](auto n) { return n > 0; });
        if (ns == m_min) m_min = std::max(m_min, lowOf(size_t(first - m_bins.begin())));
        if (ns == m_max) m_max = std::min(m_max, highOf(size_t(m_bins.rend() - last) - 1));
    }
}

double Histogram::quantile(double q) const {
    if (m_count == 0) return kNaN;
    // Nearest rank: the smallest value such that at least a share q of the values is not larger.
    const double rank = std::max(1.0, std::ceil(std::clamp(q, 0.0, 1.0) * double(m_count)));
    uint64_t seen = 0;
    for (size_t i = 0; i < m_bins.size(); ++i) {
        seen += m_bins[i];
        if (double(seen) >= rank) {
            const double middle = 0.5 * (double(lowOf(i)) + double(highOf(i)));
            return std::clamp(middle, double(m_min), double(m_max));
        }
    }
    return double(m_max);
}

double Histogram::mean() const {
    return m_count ? m_sum / double(m_count) : kNaN;
}
double Histogram::min() const {
    return m_count ? double(m_min) : kNaN;
}
double Histogram::max() const {
    return m_count ? double(m_max) : kNaN;
}

std::vector<Histogram::Bin> Histogram::bins() const {
    std::vector<Bin> bins;
    for (size_t i = 0; i < m_bins.size(); ++i) {
        if (m_bins[i]) bins.push_back({double(lowOf(i)), double(highOf(i)), m_bins[i]});
    }
    return bins;
}

}  // namespace colibri
