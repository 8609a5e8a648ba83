// SPDX-License-Identifier: Apache-2.0
// The difference of a figure between two runs of the same tokens, with an interval.
//
// Block bootstrap (Kuensch 1989): neighbouring tokens are similar, so blocks of consecutive tokens
// are drawn with replacement instead of single tokens. Both runs are drawn at the same places, so
// what the text does to both cancels out.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace colibri {

struct Difference {
    double before = 0, after = 0;
    double relative = 0;       // after / before - 1
    double low = 0, high = 0;  // 95 % interval of `relative`; NaN: too few values
    bool significant = false;  // the interval does not hold 0
};

// A figure of values: a mean, a quantile. Never called without values.
using Figure = std::function<double(std::vector<double>& values)>;
double meanOf(std::vector<double>& values);
Figure quantileFigure(double q);  // nearest rank

// REQUIRES: `before` and `after` have the same length; value i belongs to the same token in both
// runs. The result depends on the seed only within the accuracy of the bootstrap.
Difference pairedDifference(std::span<const double> before, std::span<const double> after,
                            const Figure& figure, uint64_t seed = 1);
// Of two runs of different tokens: each is drawn on its own.
Difference unpairedDifference(std::span<const double> before, std::span<const double> after,
                              const Figure& figure, uint64_t seed = 1);

// For values too few to draw from: their medians, and `relative` as the ratio of their geometric
// means with an interval by Student's t over the logarithms (Welch's if not paired). Needs three
// positive values of each run, else the interval is NaN. REQUIRES: as of pairedDifference() if
// `paired`.
Difference ratioDifference(std::span<const double> before, std::span<const double> after,
                           bool paired);

}  // namespace colibri
