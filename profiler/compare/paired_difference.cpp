// SPDX-License-Identifier: Apache-2.0
#include "profiler/compare/paired_difference.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>

namespace colibri {
namespace {

constexpr int kDraws = 1000;
constexpr size_t kFewestValues = 32;     // for an interval
constexpr double kNormal975 = 1.959964;  // quantile of the normal distribution
constexpr size_t kFewestRatios = 3;
constexpr size_t kFewestDrawnBlocks = 5;  // of the draws
constexpr size_t kMostValues = 20'000;    // per draw: a longer run is drawn in part

// The squared error of the mean of `influence`, estimated from blocks of that length.
double squaredError(std::span<const double> influence, size_t length) {
    const size_t blocks = influence.size() / length;
    double squares = 0;
    for (size_t b = 0; b < blocks; ++b) {
        double sum = 0;
        for (size_t i = b * length; i < (b + 1) * length; ++i) sum += influence[i];
        squares += sum * sum;
    }
    const auto used = double(blocks * length);
    return squares / (used * used) * double(blocks) / double(blocks - 1);
}

// Noise that lasts longer than a block is underestimated, so the length is the one with the largest
// error: from one that grows with the cube root of the number of values (Hall, Horowitz and Jing
// 1995), in doublings, while enough blocks remain. `influence`: what each value adds to the figure,
// with mean 0.
size_t blockLength(std::span<const double> influence) {
    const size_t n = influence.size();
    auto length = size_t(std::max<long>(1, std::lround(2 * std::cbrt(double(n)))));
    length = std::min(length, std::max<size_t>(1, n / kFewestDrawnBlocks));
    size_t best = length;
    for (double most = 0; n / length >= kFewestDrawnBlocks; length *= 2) {
        const double error = squaredError(influence, length);
        if (error <= most) continue;
        most = error;
        best = length;
    }
    return best;
}

// The values as shares of their mean, less one.
std::vector<double> influenceOf(std::span<const double> values) {
    std::vector<double> out(values.begin(), values.end());
    const double mean = meanOf(out);
    for (double& value : out) value = mean != 0 ? value / mean - 1 : 0;
    return out;
}

size_t pairedBlockLength(std::span<const double> before, std::span<const double> after) {
    std::vector<double> influence = influenceOf(after);
    const std::vector<double> less = influenceOf(before);
    for (size_t i = 0; i < influence.size(); ++i) influence[i] -= less[i];
    return blockLength(influence);
}

// Percentiles of few blocks give too narrow an interval: the factor by which Student's t is wider
// than the normal distribution.
double widening(size_t blocks) {
    const auto n = double(std::max<size_t>(2, blocks));
    return boost::math::quantile(boost::math::students_t(n - 1), 0.975) / kNormal975 *
           std::sqrt(n / (n - 1));
}

// The begins of the blocks of one draw.
std::vector<size_t> drawBlocks(size_t n, size_t length, std::mt19937_64& random) {
    std::uniform_int_distribution<size_t> at(0, n - length);
    std::vector<size_t> begins(std::min(n, kMostValues) / length);
    for (size_t& begin : begins) begin = at(random);
    return begins;
}

double figureOf(std::span<const double> values, const std::vector<size_t>& begins, size_t length,
                const Figure& figure) {
    std::vector<double> drawn;
    drawn.reserve(begins.size() * length);
    for (const size_t begin : begins)
        drawn.insert(drawn.end(), values.begin() + std::ptrdiff_t(begin),
                     values.begin() + std::ptrdiff_t(begin + length));
    return figure(drawn);
}

double wholeFigure(std::span<const double> values, const Figure& figure) {
    std::vector<double> all(values.begin(), values.end());
    return all.empty() ? std::nan("") : figure(all);
}

Difference difference(std::span<const double> before, std::span<const double> after,
                      const Figure& figure, uint64_t seed, bool paired) {
    Difference out;
    out.before = wholeFigure(before, figure);
    out.after = wholeFigure(after, figure);
    out.relative = out.after / out.before - 1;
    out.low = out.high = std::nan("");
    if (std::min(before.size(), after.size()) < kFewestValues || !std::isfinite(out.relative))
        return out;
    std::mt19937_64 random(seed);
    const size_t lengthA =
        paired ? pairedBlockLength(before, after) : blockLength(influenceOf(before));
    const size_t lengthB = paired ? lengthA : blockLength(influenceOf(after));
    std::vector<double> drawn;
    for (int i = 0; i < kDraws; ++i) {
        const std::vector<size_t> a = drawBlocks(before.size(), lengthA, random);
        const std::vector<size_t> b = paired ? a : drawBlocks(after.size(), lengthB, random);
        const double x = figureOf(before, a, lengthA, figure);
        const double y = figureOf(after, b, lengthB, figure);
        if (x != 0) drawn.push_back(y / x - 1);
    }
    if (drawn.size() < size_t(kDraws) / 2) return out;
    const double wider = widening(std::min(before.size() / lengthA, after.size() / lengthB));
    const auto limit = [&](double q) {
        return out.relative + wider * (quantileFigure(q)(drawn) - out.relative);
    };
    out.low = limit(0.025);
    out.high = limit(0.975);
    out.significant = out.low > 0 || out.high < 0;
    return out;
}

struct LogMoments {
    double mean = 0, variance = 0;  // variance of a single value
    double count = 0;
};

LogMoments logMoments(std::span<const double> values) {
    LogMoments out;
    out.count = double(values.size());
    for (const double value : values) out.mean += std::log(value) / out.count;
    for (const double value : values)
        out.variance += std::pow(std::log(value) - out.mean, 2) / (out.count - 1);
    return out;
}

// Mean and its squared error, and the degrees of freedom.
struct LogRatio {
    double mean, variance, freedom;
};

LogRatio pairedLogRatio(std::span<const double> before, std::span<const double> after) {
    std::vector<double> ratios;
    for (size_t i = 0; i < before.size(); ++i) ratios.push_back(after[i] / before[i]);
    const LogMoments m = logMoments(ratios);
    return {m.mean, m.variance / m.count, m.count - 1};
}

// Welch 1947: the runs may vary differently.
LogRatio welchLogRatio(std::span<const double> before, std::span<const double> after) {
    const LogMoments a = logMoments(before), b = logMoments(after);
    const double x = a.variance / a.count, y = b.variance / b.count;
    const double freedom = (x + y) * (x + y) / (x * x / (a.count - 1) + y * y / (b.count - 1));
    return {b.mean - a.mean, x + y, freedom};
}

}  // namespace

double meanOf(std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / double(values.size());
}

Figure quantileFigure(double q) {
    return [q](std::vector<double>& values) {
        const auto rank = size_t(std::ceil(q * double(values.size())));
        const auto at = values.begin() + std::ptrdiff_t(std::max<size_t>(rank, 1) - 1);
        std::nth_element(values.begin(), at, values.end());
        return *at;
    };
}

Difference pairedDifference(std::span<const double> before, std::span<const double> after,
                            const Figure& figure, uint64_t seed) {
    return difference(before, after, figure, seed, true);
}

Difference unpairedDifference(std::span<const double> before, std::span<const double> after,
                              const Figure& figure, uint64_t seed) {
    return difference(before, after, figure, seed, false);
}

Difference ratioDifference(std::span<const double> before, std::span<const double> after,
                           bool paired) {
    Difference out;
    out.before = wholeFigure(before, quantileFigure(0.5));
    out.after = wholeFigure(after, quantileFigure(0.5));
    out.relative = out.after / out.before - 1;
    out.low = out.high = std::nan("");
    const auto usable = [](std::span<const double> values) {
        return values.size() >= kFewestRatios &&
               std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
    };
    if (!usable(before) || !usable(after)) return out;
    const LogRatio ratio = paired ? pairedLogRatio(before, after) : welchLogRatio(before, after);
    if (!std::isfinite(ratio.freedom)) return out;  // nothing varies
    const double t =
        boost::math::quantile(boost::math::students_t(std::max(1.0, ratio.freedom)), 0.975);
    const double half = t * std::sqrt(ratio.variance);
    out.relative = std::expm1(ratio.mean);
    out.low = std::expm1(ratio.mean - half);
    out.high = std::expm1(ratio.mean + half);
    out.significant = out.low > 0 || out.high < 0;
    return out;
}

}  // namespace colibri
