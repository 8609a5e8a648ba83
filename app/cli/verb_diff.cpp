// SPDX-License-Identifier: GPL-3.0-or-later
// `diff A B`: compares two sessions.
#include <cmath>

#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "profiler/compare/compare.h"

namespace colibri::cli {

namespace {

struct DiffArgs {
    std::string before, after;
    bool anyway = false, json = false;
};

Json differenceJson(const Difference& d) {
    return {{"before", jsonNumber(d.before)},     {"after", jsonNumber(d.after)},
            {"relative", jsonNumber(d.relative)}, {"low", jsonNumber(d.low)},
            {"high", jsonNumber(d.high)},         {"significant", d.significant}};
}

Json diffJson(const SessionComparison& c, bool shown) {
    Json knobs = Json::array(), differences = Json::object(), quantiles = Json::array();
    for (const auto& knob : c.knobs)
        knobs.push_back({{"name", knob.name}, {"before", knob.before}, {"after", knob.after}});
    for (const auto& [name, difference] : c.figures) differences[name] = differenceJson(difference);
    for (const auto& [share, ms] : c.quantiles)
        quantiles.push_back({{"quantile", share}, {"itl_ms", jsonNumber(ms)}});
    Json out = {{"comparable", c.whyNot.empty()},
                {"why_not", c.whyNot},
                {"matched", c.matched},
                {"knobs", std::move(knobs)}};
    if (shown) {
        out["differences"] = std::move(differences);
        out["itl_quantile_differences"] = std::move(quantiles);
    }
    return out;
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

std::string diffText(const SessionComparison& c) {
    std::string text = c.matched ? "The same tokens in both sessions: the differences are paired.\n"
                                 : "Different tokens: the differences are not paired.\n";
    for (const std::string& reason : c.whyNot) text += "Compared although " + reason + ".\n";
    text += c.knobs.empty() ? "No knob differs.\n" : "Knobs\n";
    for (const auto& knob : c.knobs)
        text += "  " + knob.name + ": " + knob.before + " -> " + knob.after + "\n";
    text += "Figures\n";
    for (const SessionComparison::Row& row : c.figures) text += rowText(row);
    text += "ITL quantiles, after minus before\n ";
    for (const auto& [share, ms] : c.quantiles)
        text += " P" + formatFixed(100 * share, share > 0.99 ? 1 : 0) + " " + (ms >= 0 ? "+" : "") +
                formatMs(ms) + " ";
    return text + "\n";
}

int runDiff(const DiffArgs& args) {
    auto before = SessionDb::open(args.before);
    if (!before.ok()) return fail(before.status());
    auto after = SessionDb::open(args.after);
    if (!after.ok()) return fail(after.status());
    const Result<SessionComparison> c = compareSessions(*before, *after, &interrupted());
    if (!c.ok()) return fail(c.status());
    const bool shown = c->whyNot.empty() || args.anyway;
    if (args.json) {
        const int code = outJson(diffJson(*c, shown));
        return shown ? code : kBadInput;
    }
    if (!shown) {
        std::string reasons;
        for (const std::string& reason : c->whyNot)
            reasons += (reasons.empty() ? "" : "; ") + reason;
        return fail({Code::BadInput, "these sessions cannot be compared: " + reasons,
                     "--anyway compares them regardless"});
    }
    return outText(diffText(*c)) ? kOk : kFailed;
}

}  // namespace

void addDiff(Verbs& verbs) {
    auto args = std::make_shared<DiffArgs>();
    CLI::App* verb = verbs.add("diff", "Compare two sessions: knobs, and figures with intervals",
                               [args] { return runDiff(*args); });
    verb->add_option("A", args->before, "Session file before a change")->required();
    verb->add_option("B", args->after, "Session file after it")->required();
    verb->add_flag("--anyway", args->anyway,
                   "Also compare sessions of other models or other prompts");
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
