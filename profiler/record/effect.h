// SPDX-License-Identifier: Apache-2.0
// The measured effect of a knob change: decode speed after against before, with an interval.
#pragma once

#include <vector>

namespace colibri {

struct EffectEstimate {
    double change = 0;       // relative change of tok/s: 0.18 = 18 % faster
    double low = 0, high = 0;  // 95 % interval
};

// `before` and `after`: inter-token gaps in ns. tok/s is tokens over time, so the ratio of mean
// gaps. The interval is a moving-block bootstrap (blocks of 8 gaps, since neighbouring tokens
// resemble each other), 600 resamples, fixed seed. REQUIRES: both hold at least 8 gaps.
EffectEstimate estimateEffect(const std::vector<double>& before, const std::vector<double>& after);

}  // namespace colibri
