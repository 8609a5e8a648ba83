// SPDX-License-Identifier: GPL-3.0-or-later
// `replay SESSION [knobs]`: runs the requests of a session with its knobs and with changed ones.
#include <filesystem>

#include "app/cli/difference_text.h"
#include "app/cli/engine_args.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/base/temporary_folder.h"
#include "profiler/replay/replay.h"

namespace colibri::cli {

namespace {

struct ReplayArgs {
    EngineArgs engine;  // here the model is the session file until it is read
    std::string model;
    bool recordedArrivals = false;
};

// The engine with recorded knobs ("before") or with changed ones ("after"), and its session.
struct Side {
    EngineArgs args;
    LoadedEngine loaded;
    Json knobs;  // effective when loaded
    std::array<bool, kKnobCount> fixed{};

    Status load(const std::string& fingerprint) {
        Result<LoadedEngine> engine = loadEngine(args);
        if (!engine.ok()) return engine.status();
        loaded = std::move(*engine);
        knobs = knobsJson(*loaded.engine);
        const ContainerInfo& info = loaded.engine->info();
        const Result<KnobValues> given = args.knobs.values(info);
        if (!given.ok()) return given.status();
        for (size_t i = 0; i < fixed.size(); ++i) fixed[i] = (*given)[i].has_value();
        if (info.fingerprint == fingerprint) return {};
        return {Code::BadInput, "the session was recorded with another model than " + args.model,
                "Give the model of the session with --model DIR"};
    }
    // Completes the session file.
    Status end() {
        COLIBRI_TRY(loaded.recorder->finish());
        loaded = {};
        return {};
    }
    ReplaySide replaySide() const { return {*loaded.engine, fixed}; }
};

struct ReplayResult {
    bool inTurns = false;  // of some tokens
    Json before, after;    // knobs
    SessionComparison comparison;
};

// A second engine in the same process needs about as much memory as the first one.
bool secondFits(const Side& first) {
    const int64_t free = memoryFreeNow();
    return free > 0 && first.loaded.engine->memory().parts.total() < free / 10 * 9;
}

Status runSides(const ReplayArgs& args, const RecordedRequests& recorded, Side& before, Side& after,
                bool& inTurns) {
    const ReplayArrivals arrivals =
        args.recordedArrivals ? ReplayArrivals::AsRecorded : ReplayArrivals::OneByOne;
    ProgressLine progress;
    const ProgressFn show = progress.function();
    const auto run = [&](std::initializer_list<ReplaySide> sides) {
        return replayRequests(recorded, {sides.begin(), sides.size()}, arrivals, show,
                              &interrupted());
    };
    COLIBRI_TRY(before.load(recorded.fingerprint));
    inTurns = !args.recordedArrivals && secondFits(before);
    if (inTurns) {
        COLIBRI_TRY(after.load(recorded.fingerprint));
        COLIBRI_TRY(run({before.replaySide(), after.replaySide()}));
        progress.finish();
        COLIBRI_TRY(before.end());
        return after.end();
    }
    COLIBRI_TRY(run({before.replaySide()}));
    progress.finish();
    COLIBRI_TRY(before.end());
    COLIBRI_TRY(after.load(recorded.fingerprint));
    COLIBRI_TRY(run({after.replaySide()}));
    progress.finish();
    return after.end();
}

Result<ReplayResult> replayBoth(const ReplayArgs& args, const RecordedRequests& recorded) {
    Result<TemporaryFolder> folder = TemporaryFolder::make("colibri-replay");
    if (!folder.ok()) return folder.status();
    Side before, after;
    for (Side* side : {&before, &after}) {
        side->args = args.engine;
        side->args.model = args.model.empty() ? recorded.modelDir : args.model;
        side->args.otherKnobs = recorded.knobs;
    }
    before.args.knobs = {};
    before.args.session = (folder->path() / "before").string();
    if (after.args.session.empty()) after.args.session = (folder->path() / "after").string();
    ReplayResult out;
    COLIBRI_TRY(runSides(args, recorded, before, after, out.inTurns));
    out.before = std::move(before.knobs);
    out.after = std::move(after.knobs);
    const auto first = SessionDb::open(before.args.session);
    if (!first.ok()) return first.status();
    const auto second = SessionDb::open(after.args.session);
    if (!second.ok()) return second.status();
    Result<SessionComparison> comparison = compareSessions(*first, *second, &interrupted());
    if (!comparison.ok()) return comparison.status();
    out.comparison = std::move(*comparison);
    if (!out.comparison.matched)
        return Status(Code::Internal, "records of the replay were lost", "Replay it again");
    return out;
}

Json replayJson(const ReplayArgs& args, const RecordedRequests& recorded, const ReplayResult& r) {
    return {{"model", recorded.model},
            {"requests", recorded.requests.size()},
            {"tokens", recorded.tokens()},
            {"matched", true},
            {"arrivals", args.recordedArrivals ? "recorded" : "one_by_one"},
            {"in_turns", r.inTurns},
            {"before", r.before},
            {"after", r.after},
            {"differences", differencesJson(r.comparison)},
            {"notes", recorded.notes}};
}

std::string knobText(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string replayText(const RecordedRequests& recorded, const ReplayResult& r) {
    std::string text = formatCount(recorded.tokens()) + " tokens of " +
                       formatCount(int64_t(recorded.requests.size())) +
                       " requests, the same in both runs.\n";
    text += r.inTurns
                ? "The runs took turns of some tokens.\n"
                : "One run followed the other: a machine that became slower or faster in between "
                  "changes the differences, too.\n";
    std::string knobs;
    for (const auto& [name, value] : r.after.items())
        if (value != r.before[name])
            knobs +=
                "  " + name + ": " + knobText(r.before[name]) + " -> " + knobText(value) + "\n";
    text += knobs.empty() ? "Both runs had the recorded knobs.\n" : "Knobs\n" + knobs;
    text += "Figures\n" + differencesText(r.comparison);
    for (const std::string& note : recorded.notes) text += note + ".\n";
    return text;
}

int runReplay(ReplayArgs args) {
    const auto session = SessionDb::open(args.engine.model);
    if (!session.ok()) return fail(session.status());
    const Result<RecordedRequests> recorded = readRecordedRequests(*session, &interrupted());
    if (!recorded.ok()) return fail(recorded.status());
    std::error_code ignored;
    if (args.model.empty() && !std::filesystem::exists(recorded->modelDir, ignored)) {
        return fail({Code::BadInput,
                     "the model of the session is no longer in " + recorded->modelDir,
                     "Give its folder with --model DIR"});
    }
    const Result<ReplayResult> r = replayBoth(args, *recorded);
    if (!r.ok()) return fail(r.status());
    if (args.engine.json) return outJson(replayJson(args, *recorded, *r));
    return outText(replayText(*recorded, *r)) ? kOk : kFailed;
}

}  // namespace

void addReplay(Verbs& verbs) {
    auto args = std::make_shared<ReplayArgs>();
    CLI::App* verb = verbs.add("replay",
                               "Run the requests of a session with its knobs and with changed "
                               "ones: the differences, with intervals",
                               [args] { return runReplay(*args); });
    args->engine.coldStart = true;  // what earlier runs used must not matter
    args->engine.addTo(*verb, true, "SESSION", "Session file, written with --session");
    verb->add_option("--model", args->model, "Model folder, if not where it was recorded")
        ->type_name("DIR");
    verb->add_flag("--recorded-arrivals", args->recordedArrivals,
                   "Send each request at its recorded time, not after the one before it");
}

}  // namespace colibri::cli
