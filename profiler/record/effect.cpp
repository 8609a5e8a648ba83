// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/effect.h"

#include <algorithm>
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

}  // namespace

EffectEstimate estimateEffect(const std::vector<double>& before,
                              const std::vector<double>& after) {
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

std::string effectText(const Marker& marker) {
    if (marker.effect == Marker::Effect::NotMeasured) return "not measured: " + marker.reason;
    const auto percent = [](double share) { return formatFixed(100 * share, 1); };
    return (marker.change > 0 ? "+" : "") + percent(marker.change) + " % tok/s (95 %: " +
           percent(marker.low) + ".." + percent(marker.high) + ")";
}

}  // namespace colibri
