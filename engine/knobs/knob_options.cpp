// SPDX-License-Identifier: Apache-2.0
#include "engine/knobs/knob_options.h"

#include <algorithm>
#include <string_view>

namespace colibri {

namespace {

std::string optionHelp(const KnobRow& row) {
    std::string text = knobTitle(row);
    if (row.choices.empty()) {
        text += ", " + std::to_string(row.min) + ".." + std::to_string(row.max);
        if (*row.unit) text += std::string(" ") + row.unit;
    }
    text += row.defaultValue >= 0 ? ", default " + knobValueText(row, row.defaultValue)
                                  : ", default depends on model and machine";
    const std::string_view help = row.help;
    const size_t end = help.find(". ");
    return text + ". " +
           std::string(end == std::string_view::npos ? help : help.substr(0, end + 1));
}

std::string optionType(const KnobRow& row) {
    if (row.choices.empty()) return "INT";
    std::string text;
    for (const char* choice : row.choices) text += (text.empty() ? "{" : "|") + std::string(choice);
    return text + "}";
}

}  // namespace

std::string knobOptionName(const KnobRow& row) {
    std::string name = row.name;
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

std::vector<KnobOption> knobOptions() {
    std::vector<KnobOption> options;
    for (const KnobRow& row : knobTable()) {
        options.push_back({row.id, knobOptionName(row), optionType(row), optionHelp(row)});
    }
    return options;
}

Result<KnobValues> knobsFromOptions(const KnobTexts& texts,
                                    const std::function<KnobLimits(KnobId)>& limits) {
    KnobValues values;
    for (const KnobRow& row : knobTable()) {
        const std::optional<std::string>& text = texts[size_t(row.id)];
        if (!text) continue;
        const KnobLimits allowed =
            limits ? limits(row.id) : KnobLimits{row.min, row.max, row.defaultValue};
        const Result<int64_t> value = parseKnobValue(row, *text, allowed);
        if (!value.ok()) return value.status();
        values[size_t(row.id)] = *value;
    }
    return values;
}

}  // namespace colibri
