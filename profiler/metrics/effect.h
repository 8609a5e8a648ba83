// SPDX-License-Identifier: Apache-2.0
// The measured effect of a knob change: decode speed after compared with before, with an interval.
#pragma once

#include <string>
#include <vector>

#include "profiler/metrics/snapshot.h"

namespace colibri {

struct EffectEstimate {
    double change = 0;         // relative change of tok/s: 0.18 = 18 % faster
    double low = 0, high = 0;  // 95 % interval
};

// Decode steps under one setting, in order, all at the same number of requests.
struct DecodeSteps {
    std::vector<double> gapNs;  // inter-token gap
    // Misses of the step's expert lookups in a settled LRU cache of this setting's size: what the
    // step's text demands of the cache, regardless of its actual content.
    std::vector<double> misses;
};

// The long-run change of decode speed between two settings, for the mixture of text in `pool`.
//
// Text differs before and after a change, and steps with many misses are slow. Each side's gaps are
// therefore fitted to its misses (least squares), and both fits are read at the mean misses of the
// same steps: `pool` holds, for every step of the recent past, the misses at the size before and at
// the size after (a regression estimator as of survey sampling). The variance is that of the
// residuals of both sides and of the mixture, each computed from the means of blocks of steps, at
// the block length with the largest result, since neighbouring steps are similar; plus that of a
// drift of the machine that two periods cannot show (kDrift). Student's t with Welch's degrees of
// freedom. REQUIRES: 16 steps or more on each side; pool's lists are equally long.
struct PooledMisses {
    std::vector<double> before, after;
};
EffectEstimate estimateEffect(const DecodeSteps& before, const DecodeSteps& after,
                              const PooledMisses& pool);
// Whether the speed of one side differs between its first and second half by more than chance and
// its misses explain: it had not settled.
bool drifts(const DecodeSteps& steps);

// "8 → 16", "25 → none": the text of a change of this knob.
std::string knobChangeText(KnobId knob, int64_t from, int64_t to);
// The text of a relative change: "+18.2 %", "−6.0 %", and from twice as fast on "11.9 ×". The
// interval has the same unit without repeating it: "15.1..21.4" or "10.6..13.6".
std::string effectFigure(const Marker& marker);
std::string effectInterval(const Marker& marker);
// "+18.2 % tok/s (95 %: 15.1..21.4), from 92 tokens before, ...", "not measured: ...", "settling":
// the current outcome, in one line. The session file has the final one.
std::string effectText(const Marker& marker);

}  // namespace colibri
