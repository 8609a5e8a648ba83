// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/effect.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr double kDrift = 0.004;  // relative standard deviation of the machine's own drift
constexpr double kConfidence = 0.95;
constexpr double kChanceOfDrift = 0.002;  // probability of judging a settled side to be drifting
constexpr size_t kShortestBlock = 4, kFewestBlocks = 6;

double mean(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
}

// The variance of a mean, and the degrees of freedom of this estimate.
struct MeanVariance {
    double value = 0, freedom = 1;
};

MeanVariance varianceOfMean(const std::vector<double>& v) {
    MeanVariance most;
    for (size_t length = kShortestBlock; v.size() / length >= kFewestBlocks || most.value == 0;
         length *= 2) {
        const size_t blocks = v.size() / length;
        if (blocks < 2) break;
        std::vector<double> means(blocks);
        for (size_t b = 0; b < blocks; ++b)
            means[b] = std::accumulate(v.begin() + std::ptrdiff_t(b * length),
                                       v.begin() + std::ptrdiff_t((b + 1) * length), 0.0) /
                       double(length);
        const double centre = mean(means);
        double squares = 0;
        for (const double m : means) squares += (m - centre) * (m - centre);
        const double variance = squares / double(blocks - 1) / double(blocks) *
                                (double(blocks * length) / double(v.size()));
        if (variance > most.value) most = {variance, double(blocks - 1)};
    }
    return most;
}

// Quantile `share` of Student's t for a sum of variances, with Welch's degrees of freedom.
double studentQuantile(double share, std::initializer_list<MeanVariance> parts) {
    double variance = 0, ofVariance = 0;
    for (const MeanVariance& part : parts) {
        variance += part.value;
        ofVariance += part.value * part.value / part.freedom;
    }
    const double freedom = ofVariance > 0 ? variance * variance / ofVariance : 1e6;
    return boost::math::quantile(boost::math::students_t(std::max(1.0, freedom)), share);
}

// A linear fit of one side's gaps to its misses.
struct Fit {
    std::vector<double> residuals;  // ns
    double slope = 0;               // ns per miss
    double gap = 0;                 // ns, at the pool's mean misses
    MeanVariance variance;          // of `gap`, relative to its square, for a given pool
};

Fit fit(const DecodeSteps& steps, double pooledMisses) {
    const double gapMean = mean(steps.gapNs), missMean = mean(steps.misses);
    const size_t n = steps.gapNs.size();
    double xx = 0, xy = 0;
    for (size_t i = 0; i < n; ++i) {
        const double x = steps.misses[i] - missMean;
        xx += x * x;
        xy += x * (steps.gapNs[i] - gapMean);
    }
    Fit f;
    // A negative slope is chance, since a miss does not make a step faster.
    f.slope = xx > 0 ? std::max(0.0, xy / xx) : 0;
    // The line is not extrapolated below the observed gaps.
    f.gap = std::max(gapMean + f.slope * (pooledMisses - missMean),
                     *std::min_element(steps.gapNs.begin(), steps.gapNs.end()));
    f.residuals.resize(n);
    double squares = 0;
    for (size_t i = 0; i < n; ++i) {
        f.residuals[i] = steps.gapNs[i] - gapMean - f.slope * (steps.misses[i] - missMean);
        squares += f.residuals[i] * f.residuals[i];
    }
    f.variance = varianceOfMean(f.residuals);
    const double off = pooledMisses - missMean;
    const double ofSlope = f.slope > 0 ? off * off * squares / double(n - 2) / xx : 0;
    f.variance.value = (f.variance.value * double(n) / double(n - 2) + ofSlope) / (f.gap * f.gap);
    return f;
}

// Changes of a factor of two and more are shown as a factor, because "a change of 1,087 %" is hard
// to read.
bool isFactor(const Marker& marker) {
    return marker.change >= 1;
}

// 0.182 -> "18.2", 1.5 -> "150", -0.06 -> "−6.0".
std::string percentText(double share) {
    const double percent = 100 * std::abs(share);
    const std::string text = formatFixed(percent, percent < 99.95 ? 1 : 0);
    return (share < 0 && text != "0.0" ? "\u2212" : "") + text;
}

}  // namespace

EffectEstimate estimateEffect(const DecodeSteps& before, const DecodeSteps& after,
                              const PooledMisses& pool) {
    const double poolBefore = mean(pool.before), poolAfter = mean(pool.after);
    const Fit b = fit(before, poolBefore), a = fit(after, poolAfter);
    std::vector<double> mixture(pool.before.size());
    for (size_t i = 0; i < mixture.size(); ++i)
        mixture[i] = b.slope * (pool.before[i] - poolBefore) / b.gap -
                     a.slope * (pool.after[i] - poolAfter) / a.gap;
    const MeanVariance m = varianceOfMean(mixture);
    const double t = studentQuantile(0.5 + kConfidence / 2, {b.variance, a.variance, m});
    const double variance = b.variance.value + a.variance.value + m.value;
    const double reach = t * std::sqrt(variance + kDrift * kDrift);
    const double ratio = b.gap / a.gap;
    return {ratio - 1, ratio * std::exp(-reach) - 1, ratio * std::exp(reach) - 1};
}

bool drifts(const DecodeSteps& steps) {
    const std::vector<double> residuals = fit(steps, mean(steps.misses)).residuals;
    const auto middle = residuals.begin() + std::ptrdiff_t(residuals.size() / 2);
    const std::vector<double> first(residuals.begin(), middle), second(middle, residuals.end());
    const MeanVariance f = varianceOfMean(first), s = varianceOfMean(second);
    const double reach =
        studentQuantile(1 - kChanceOfDrift / 2, {f, s}) * std::sqrt(f.value + s.value);
    return std::abs(mean(first) - mean(second)) > reach + 2 * kDrift * mean(steps.gapNs);
}

std::string knobChangeText(KnobId knob, int64_t from, int64_t to) {
    const auto value = [&](int64_t v) {
        return knob == KnobId::LinkLimit && v == 0 ? "none" : knobValueText(knobRow(knob), v);
    };
    return value(from) + " \u2192 " + value(to);
}

std::string effectFigure(const Marker& marker) {
    if (isFactor(marker)) return formatSig(1 + marker.change) + " \u00d7";
    const std::string text = percentText(marker.change);
    return (text.starts_with("\u2212") || text == "0.0" ? "" : "+") + text + " %";
}

std::string effectInterval(const Marker& marker) {
    if (isFactor(marker)) return formatSig(1 + marker.low) + ".." + formatSig(1 + marker.high);
    const std::string high = percentText(marker.high);
    const bool signedHigh = marker.low < 0 && marker.high > 0 && high != "0.0";
    return percentText(marker.low) + ".." + (signedHigh ? "+" : "") + high;
}

std::string effectText(const Marker& marker) {
    if (marker.effect == Marker::Effect::NotMeasured) return "not measured: " + marker.reason;
    if (marker.effect == Marker::Effect::Measuring)
        return marker.settling ? "settling"
                               : "measuring, " + formatCount(marker.measured) + " of " +
                                     formatCount(marker.needed) + " tokens";
    return effectFigure(marker) + " tok/s (95 %: " + effectInterval(marker) + ")" +
           (marker.validity.empty() ? "" : ", from " + marker.validity) +
           (marker.refining ? "; more tokens will narrow the interval" : "");
}

}  // namespace colibri
