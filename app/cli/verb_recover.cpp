// SPDX-License-Identifier: GPL-3.0-or-later
// `recover SESSION`: checks a session file; completes one that was killed, and copies what can be
// read of a damaged one.
#include <filesystem>

#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/session_salvage.h"

namespace colibri::cli {

namespace {

struct RecoverArgs {
    std::filesystem::path session, out;
    bool json = false;
};

int report(const RecoverArgs& args, const char* outcome, const std::string& text, Json details) {
    Json json = {{"session", args.session.string()}, {"outcome", outcome}};
    json.update(details);
    if (args.json) return outJson(json);
    return outText(text + "\n") ? kOk : kFailed;
}

// The file is not damaged: the recording of a killed process only needs its end.
int complete(const RecoverArgs& args) {
    Result<SessionSummary> summary = readSessionSummary(args.session);
    if (!summary.ok()) return fail(summary.status());
    const bool killed = !summary->endedCleanly;
    if (killed) {
        if (const Status status = recoverSession(args.session); !status.ok()) return fail(status);
    }
    const std::string content = formatCount(summary->requests) + " requests, " +
                                formatCount(summary->tokens) + " tokens, " +
                                formatCount(summary->loads) + " reads";
    return report(args, killed ? "completed" : "sound",
                  killed ? "The recording was interrupted; the file is complete now: " + content
                         : "The file is not damaged: " + content,
                  {{"requests", summary->requests}, {"tokens", summary->tokens}});
}

int salvage(RecoverArgs args, const std::vector<std::string>& damage) {
    if (args.out.empty()) {
        args.out = args.session;
        args.out.replace_filename(args.session.stem().string() + "-recovered" +
                                  args.session.extension().string());
    }
    ProgressLine progress;
    const auto tables = salvageSession(args.session, args.out, progress.function(), &interrupted());
    progress.finish();
    if (!tables.ok()) return fail(tables.status());
    Json rows = Json::object();
    std::string text = "The file is damaged: " + damage.front();
    if (damage.size() > 1) text += ", and " + formatCount(int64_t(damage.size()) - 1) + " more";
    text += ".\nWhat can be read is in " + args.out.string() + ":";
    for (const SalvagedTable& table : *tables) {
        rows[table.name] = {{"kept", table.kept}, {"lost", table.lost}};
        if (table.kept + table.lost == 0) continue;
        text += "\n  " + table.name + ": " + formatCount(table.kept) + " rows";
        if (table.lost > 0) text += ", " + formatCount(table.lost) + " lost";
    }
    return report(args, "salvaged", text,
                  {{"file", args.out.string()}, {"damage", damage}, {"tables", std::move(rows)}});
}

int runRecover(const RecoverArgs& args) {
    const Result<std::vector<std::string>> damage = checkSession(args.session);
    if (!damage.ok()) return fail(damage.status());
    return damage->empty() ? complete(args) : salvage(args, *damage);
}

}  // namespace

void addRecover(Verbs& verbs) {
    auto args = std::make_shared<RecoverArgs>();
    CLI::App* verb = verbs.add("recover",
                               "Check a session file, complete one whose recording was "
                               "interrupted, and copy what can be read of a damaged one",
                               [args] { return runRecover(*args); });
    verb->add_option("SESSION", args->session, "Session file")->required();
    verb->add_option("-o,--output", args->out,
                     "New file for what can be read of a damaged one (default: "
                     "SESSION-recovered)");
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
