// SPDX-License-Identifier: Apache-2.0
// The measured effect of a knob change: decode speed after against before, with an interval.
#pragma once

#include <string>
#include <vector>

#include "profiler/record/snapshot.h"

namespace colibri {

struct EffectEstimate {
    double change = 0;         // relative change of tok/s: 0.18 = 18 % faster
    double low = 0, high = 0;  // 95 % interval
};

// `before` and `after`: inter-token gaps in ns. tok/s is tokens over time, so the ratio of mean
// gaps. The interval is a moving-block bootstrap (blocks of 8 gaps, since neighbouring tokens
// resemble each other), 600 resamples, fixed seed. REQUIRES: both hold at least 8 gaps.
EffectEstimate estimateEffect(const std::vector<double>& before, const std::vector<double>& after);

// "8 → 16", "25 → none": how a change of this knob is written everywhere.
std::string knobChangeText(KnobId knob, int64_t from, int64_t to);
// How a relative change is written everywhere: "+18.2 %", "−6.0 %", and from twice as fast on
// "11.9 ×". The interval carries no unit of its own: "15.1..21.4" or "10.6..13.6", as the figure.
std::string effectFigure(const Marker& marker);
std::string effectInterval(const Marker& marker);
// "+18.2 % tok/s (95 %: 15.1..21.4)", "not measured: ...": the outcome as the session file has it.
std::string effectText(const Marker& marker);

}  // namespace colibri
