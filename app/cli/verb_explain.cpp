// SPDX-License-Identifier: GPL-3.0-or-later
// `explain SESSION`: where the time between tokens went, and what to change.
#include <cmath>
#include <limits>

#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "profiler/explain/verdicts.h"

namespace colibri::cli {

namespace {

struct ExplainArgs {
    std::string session;
    double from = 0, to = std::numeric_limits<double>::infinity();
    bool json = false;
};

Json explainJson(const SessionFacts& facts, const std::vector<Verdict>& verdicts) {
    const Causes& c = facts.causes;
    Json causes = Json::array(), list = Json::array();
    for (const Cause cause : c.largestFirst())
        causes.push_back({{"name", causeName(cause)}, {"share", jsonNumber(c.share(cause))}});
    for (const Verdict& verdict : verdicts) {
        Json figures = Json::object();
        for (const auto& [name, value] : verdict.figures) figures[name] = jsonNumber(value);
        list.push_back({{"name", verdict.name},
                        {"text", verdict.text},
                        {"confidence", jsonNumber(verdict.confidence)},
                        {"knob", verdict.knob.empty() ? Json(nullptr) : Json(verdict.knob)},
                        {"figures", std::move(figures)}});
    }
    return {{"tokens", c.tokens},
            {"explained_share", jsonNumber(c.explained())},
            {"decode_tok_s", jsonNumber(facts.tokensPerSecond())},
            {"itl_ms",
             {{"p50", jsonNumber(facts.itl.quantile(0.5) / 1e6)},
              {"p99", jsonNumber(facts.itl.quantile(0.99) / 1e6)},
              {"n", facts.itl.count()}}},
            {"causes", std::move(causes)},
            {"note", facts.note.empty() ? Json(nullptr) : Json(facts.note)},
            {"verdicts", std::move(list)}};
}

std::string explainText(const SessionFacts& facts, const std::vector<Verdict>& verdicts) {
    const Causes& c = facts.causes;
    std::string text = formatCount(int64_t(c.tokens)) + " tokens, " +
                       formatSig(facts.tokensPerSecond()) + " tok/s of one request, ITL P50 " +
                       formatMs(facts.itl.quantile(0.5) / 1e6) + ", P99 " +
                       formatMs(facts.itl.quantile(0.99) / 1e6) + "\n\nTime between tokens\n";
    for (const Cause cause : c.largestFirst()) {
        if (c.share(cause) < 0.001) continue;
        char share[32];
        std::snprintf(share, sizeof share, "  %5.1f %%  ", 100 * c.share(cause));
        text += share + std::string(causeText(cause)) + "\n";
    }
    if (std::isfinite(c.explained()))
        text += "  " + formatPercent(c.explained()) + " of it has a cause\n";
    text += "\nVerdicts\n";
    for (const Verdict& verdict : verdicts) {
        text += "  " + verdict.text;
        if (!verdict.knob.empty()) text += " Knob: " + verdict.knob + ".";
        if (verdict.confidence < 1)
            text += " (confidence " + formatPercent(verdict.confidence, 0) + ")";
        text += "\n";
    }
    if (!facts.note.empty()) text += "\n" + facts.note + ".\n";
    return text;
}

int runExplain(const ExplainArgs& args) {
    auto db = SessionDb::open(args.session);
    if (!db.ok()) return fail(db.status());
    if (args.to < args.from)
        return fail({Code::InvalidArgument, "--to is before --from", "Give a range in seconds"});
    ProgressLine progress;
    const Result<SessionFacts> facts =
        readSessionFacts(*db, {args.from, args.to}, progress.function(), &interrupted());
    progress.finish();
    if (!facts.ok()) return fail(facts.status());
    const std::vector<Verdict> verdicts = verdictsOf(*facts);
    if (args.json) return outJson(explainJson(*facts, verdicts));
    return outText(explainText(*facts, verdicts)) ? kOk : kFailed;
}

}  // namespace

void addExplain(Verbs& verbs) {
    auto args = std::make_shared<ExplainArgs>();
    CLI::App* verb = verbs.add("explain",
                               "Say where the time between the tokens of a session went, what "
                               "limits it, and which knob to move",
                               [args] { return runExplain(*args); });
    verb->add_option("SESSION", args->session, "Session file (*.colibri-session)")->required();
    addRange(*verb, args->from, args->to);
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
