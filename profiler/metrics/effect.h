// SPDX-License-Identifier: Apache-2.0
// The measured effect of a knob change: decode rate after the change relative to before, with an
// interval.
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
    // Misses that the step's expert lookups would have in a settled LRU cache of this setting's
    // size: the demand of the step's text, regardless of the cache's actual content.
    std::vector<double> misses;
};

// Estimates the long-run change of the decode rate between two settings, for the text in `pool`.
//
// The text differs before and after a change, and steps with many misses are slow. Therefore the
// gaps of each side are fitted to its misses (least squares), and both fits are evaluated at the
// mean misses of the same steps: `pool` holds, for each recent step, the misses at the size before
// and at the size after (a regression estimator, as in survey sampling). The variance is the sum of
// three parts: the residuals of both sides; the mixture; a drift of the machine that two periods
// cannot show (kDrift). The first two are computed from the means of blocks of steps, because
// neighbouring steps are similar, with the block length that gives the largest result. Student's t
// has Welch's degrees of freedom. REQUIRES: at least 16 steps on each side; the lists of `pool` are
// equally long.
struct PooledMisses {
    std::vector<double> before, after;
};
EffectEstimate estimateEffect(const DecodeSteps& before, const DecodeSteps& after,
                              const PooledMisses& pool);
// Whether the rate of one side differs between its first and second half by more than chance and
// its misses explain, because it had not settled.
bool drifts(const DecodeSteps& steps);

// "8 → 16", "25 → none": the text of a change of this knob.
std::string knobChangeText(KnobId knob, int64_t from, int64_t to);
// The text of a relative change: "+18.2 %", "−6.0 %", or a factor "11.9 ×" if the rate at least
// doubled. The interval has the same unit without naming it: "15.1..21.4" or "10.6..13.6".
std::string effectFigure(const Marker& marker);
std::string effectInterval(const Marker& marker);
// "+18.2 % tok/s (95 %: 15.1..21.4), from 92 tokens before, ...", "not measured: ...", "settling":
// the current outcome, in one line. The session file has the final one.
std::string effectText(const Marker& marker);

}  // namespace colibri
