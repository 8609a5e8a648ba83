// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/effect.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr size_t kBlockLength = 8;
constexpr int kResamples = 600;

double mean(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
}

double resampledMean(const std::vector<double>& v, std::mt19937& random) {
    std::uniform_int_distribution<size_t> start(0, v.size() - kBlockLength);
    double sum = 0;
    size_t count = 0;
    while (count < v.size()) {
        const size_t at = start(random);
        for (size_t i = 0; i < kBlockLength && count < v.size(); ++i, ++count) sum += v[at + i];
    }
    return sum / double(count);
}

// "a change of 1,087 %" is hard to read: from twice as fast on, a factor.
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

EffectEstimate estimateEffect(const std::vector<double>& before, const std::vector<double>& after) {
    EffectEstimate effect;
    effect.change = mean(before) / mean(after) - 1;
    std::mt19937 random(20260);
    std::vector<double> changes(kResamples);
    for (double& change : changes) {
        const double b = resampledMean(before, random);
        change = b / resampledMean(after, random) - 1;
    }
    std::sort(changes.begin(), changes.end());
    effect.low = changes[size_t(kResamples * 0.025)];
    effect.high = changes[size_t(kResamples * 0.975) - 1];
    return effect;
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
    return effectFigure(marker) + " tok/s (95 %: " + effectInterval(marker) + ")";
}

}  // namespace colibri
