// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/difference_text.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"

namespace colibri::cli {

namespace {

Json differenceJson(const Difference& d) {
    return {{"before", jsonNumber(d.before)},     {"after", jsonNumber(d.after)},
            {"relative", jsonNumber(d.relative)}, {"low", jsonNumber(d.low)},
            {"high", jsonNumber(d.high)},         {"significant", d.significant}};
}

std::string valueText(const std::string& name, double value) {
    if (name.ends_with("_ms")) return formatMs(value);
    if (name == "hit_rate") return formatPercent(value);
    if (name == "bytes") return formatGiB(value);
    return formatSig(value) + " tok/s";
}

std::string signedPercent(double share) {
    return (share >= 0 ? "+" : "") + formatPercent(share);
}

std::string rowText(const SessionComparison::Row& row) {
    const Difference& d = row.difference;
    const std::string name = row.name;
    std::string text = "  " + name + std::string(14 - std::min<size_t>(13, name.size()), ' ') +
                       valueText(name, d.before) + " -> " + valueText(name, d.after);
    if (std::isfinite(d.relative)) text += "  " + signedPercent(d.relative);
    if (std::isfinite(d.low)) {
        text += " (95 %: " + signedPercent(d.low) + " .. " + signedPercent(d.high) + ")";
        if (!d.significant) text += ", not significant";
    }
    return text + "\n";
}

}  // namespace

Json differencesJson(const SessionComparison& comparison) {
    Json out = Json::object();
    for (const auto& [name, difference] : comparison.figures)
        out[name] = differenceJson(difference);
    return out;
}

std::string differencesText(const SessionComparison& comparison) {
    std::string text;
    for (const SessionComparison::Row& row : comparison.figures) text += rowText(row);
    return text;
}

}  // namespace colibri::cli
