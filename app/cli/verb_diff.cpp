// SPDX-License-Identifier: GPL-3.0-or-later
// `diff A B`: compares two sessions.
#include "app/cli/difference_text.h"
#include "engine/base/format.h"

namespace colibri::cli {

namespace {

struct DiffArgs {
    std::string before, after;
    bool anyway = false, json = false;
};

Json diffJson(const SessionComparison& c, bool shown) {
    Json knobs = Json::array(), quantiles = Json::array();
    for (const auto& knob : c.knobs)
        knobs.push_back({{"name", knob.name}, {"before", knob.before}, {"after", knob.after}});
    for (const auto& [share, ms] : c.quantiles)
        quantiles.push_back({{"quantile", share}, {"itl_ms", jsonNumber(ms)}});
    Json out = {{"comparable", c.whyNot.empty()},
                {"why_not", c.whyNot},
                {"matched", c.matched},
                {"knobs", std::move(knobs)}};
    if (shown) {
        out["differences"] = differencesJson(c);
        out["itl_quantile_differences"] = std::move(quantiles);
    }
    return out;
}

std::string diffText(const SessionComparison& c) {
    std::string text = c.matched ? "The same tokens in both sessions: the differences are paired.\n"
                                 : "Different tokens: the differences are not paired.\n";
    for (const std::string& reason : c.whyNot) text += "Compared although " + reason + ".\n";
    text += c.knobs.empty() ? "No knob differs.\n" : "Knobs\n";
    for (const auto& knob : c.knobs)
        text += "  " + knob.name + ": " + knob.before + " -> " + knob.after + "\n";
    text += "Figures\n" + differencesText(c);
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
