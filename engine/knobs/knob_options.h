// SPDX-License-Identifier: Apache-2.0
// Knobs as command-line options: name, help text and value checks for each row of the knob table,
// for any command-line parser.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/knobs/knobs.h"

namespace colibri {

struct KnobOption {
    KnobId id;
    std::string name;  // "expert-cache-size"
    std::string type;  // "INT", "{lru|slru|lfru}"
    // "Prefetch threads, 0..1024 threads, default 1. Threads that read predicted experts while ..."
    std::string help;
};

std::string knobOptionName(const KnobRow& row);
std::vector<KnobOption> knobOptions();  // in the order of the table

// The text of each option; none: the option was not given.
using KnobTexts = std::array<std::optional<std::string>, kKnobCount>;
// The values of the given options. `limits` returns the range of a knob, for example for one model;
// the default is the range of the table. Errors: those of parseKnobValue.
Result<KnobValues> knobsFromOptions(const KnobTexts& texts,
                                    const std::function<KnobLimits(KnobId)>& limits = {});

}  // namespace colibri
