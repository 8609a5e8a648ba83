// SPDX-License-Identifier: Apache-2.0
// What a session says about its setting, in words: what limits it, with the figures behind it and
// the knob to move. Pure rules over SessionFacts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiler/explain/session_facts.h"

namespace colibri {

struct Verdict {
    std::string name;       // "disk_bound"
    std::string text;       // one or two sentences
    double confidence = 0;  // 0..1: how far the figures are from the rule's threshold, and how many
    std::string knob;       // the knob to move, by name; "": none
    std::vector<std::pair<std::string, double>> figures;  // by name, with the unit in the name
};

// The verdicts with the largest effect first. Never empty: with nothing to change the only verdict
// is "nothing_to_gain"; with too few tokens it is "too_short".
std::vector<Verdict> verdictsOf(const SessionFacts& facts);

}  // namespace colibri
