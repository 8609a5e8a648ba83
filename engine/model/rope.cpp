// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/model/config.h"

namespace colibri {

namespace {

// The dimension that makes `rotations` turns within the original context.
double yarnDimension(const RopeSpec& rope, double rotations) {
    return rope.rotaryDim * std::log(double(rope.originalPositions) / (rotations * 2 * M_PI)) /
           (2 * std::log(rope.theta));
}

// YaRN (Peng et al., 2023): slow dimensions are scaled, fast ones are not, with a ramp between
// them.
void stretchYarn(const RopeSpec& rope, std::vector<float>& frequencies) {
    double low = yarnDimension(rope, rope.betaFast), high = yarnDimension(rope, rope.betaSlow);
    if (rope.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, double(rope.rotaryDim - 1));
    if (low == high) high += 0.001;
    for (size_t i = 0; i < frequencies.size(); ++i) {
        const auto ramp = float(std::clamp((double(i) - low) / (high - low), 0.0, 1.0));
        const float f = frequencies[i];
        frequencies[i] = f / float(rope.factor) * ramp + f * (1 - ramp);
    }
}

// Llama 3.1: wavelengths longer than the original context are scaled.
void stretchLlama3(const RopeSpec& rope, std::vector<float>& frequencies) {
    const auto original = double(rope.originalPositions);
    const double longest = original / rope.lowFreqFactor, shortest = original / rope.highFreqFactor;
    for (float& f : frequencies) {
        const double wavelength = 2 * M_PI / double(f);
        if (wavelength > longest) {
            f /= float(rope.factor);
        } else if (wavelength >= shortest) {
            const auto smooth = float((original / wavelength - rope.lowFreqFactor) /
                                      (rope.highFreqFactor - rope.lowFreqFactor));
            f = (1 - smooth) * f / float(rope.factor) + smooth * f;
        }
    }
}

}  // namespace

std::vector<float> ropeFrequencies(const RopeSpec& rope) {
    std::vector<float> out;
    for (int i = 0; i < rope.rotaryDim; i += 2) {
        out.push_back(1.0f / float(std::pow(rope.theta, double(float(i) / float(rope.rotaryDim)))));
    }
    if (rope.type == "linear") {
        for (float& f : out) f /= float(rope.factor);
    } else if (rope.type == "yarn") {
        stretchYarn(rope, out);
    } else if (rope.type == "llama3") {
        stretchLlama3(rope, out);
    }
    for (size_t i = 0; i < rope.divisors.size(); ++i) out[i] /= rope.divisors[i];
    return out;
}

}  // namespace colibri
