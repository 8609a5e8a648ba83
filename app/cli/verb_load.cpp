// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstdlib>

#include "app/cli/sampling_args.h"
#include "app/serve/http_target.h"
#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "profiler/loadtest/engine_target.h"

namespace colibri::cli {

namespace {

constexpr double kOnePerPiece = 0.1;  // tokens; some give no text

struct LoadArgs {
    EngineArgs engine;  // here the model is a URL or a folder
    LoadOptions load;
    std::string prompts, csv, apiKey;
    int maxTokens = 128;
    bool ignoreEos = false;
};

std::string row(const char* name, const Histogram& h) {
    const auto cell = [](double ns) {
        const std::string text = formatMs(ns * 1e-6);
        return std::string(text.size() < 12 ? 12 - text.size() : 1, ' ') + text;
    };
    return std::string(name) + cell(h.quantile(0.5)) + cell(h.quantile(0.9)) +
           cell(h.quantile(0.99)) + cell(h.max()) + cell(h.mean()) + "  " +
           formatCount(int64_t(h.count()));
}

void printReport(const LoadReport& r) {
    message("                 p50         p90         p99         max        mean  n");
    message(row("TTFT    ", r.ttft));
    message(row("ITL     ", r.itl));
    message(row("request ", r.endToEnd));
    const std::string rate = r.tokens ? formatSig(r.tokensPerSecond()) + " tok/s"
                                      : std::string("tok/s n/a: the server does not count tokens");
    message(formatCount(r.completed) + " of " + formatCount(int64_t(r.samples.size())) +
            " requests completed in " + formatFixed(r.durationS, 1) +
            " s: " + formatSig(r.requestsPerSecond()) + " req/s, " + rate);
    // The gaps are then not those between tokens.
    if (r.pieces > 0 && !(std::fabs(r.tokensPerPiece() - 1) <= kOnePerPiece)) {
        message("ITL is measured between pieces of text, " + formatCount(int64_t(r.pieces)) +
                " in total" +
                (r.tokens ? ", of " + formatSig(r.tokensPerPiece()) + " tokens each" : ""));
    }
    for (const auto& [kind, count] : r.errors) message(formatCount(count) + " ended: " + kind);
}

Result<std::vector<LoadPrompt>> promptsOf(const LoadArgs& args) {
    if (args.prompts.empty()) return shippedLoadPrompts();
    Result<std::string> text = readInput(args.prompts);
    if (!text.ok()) return text.status();
    return parseLoadPrompts(*text, args.prompts);
}

// Describes the target. Together with the command line this is enough to repeat the test.
Json settingsOf(const Engine& engine) {
    const ContainerInfo& info = engine.info();
    return {{"model", engine.info().config.name},
            {"fingerprint", info.fingerprint},
            {"dense_dtype", info.denseTypeNames()},
            {"expert_dtype", info.expertTypeNames()},
            {"context_length", engine.contextLength()},
            {"machine", machineFingerprint()},
            {"isa", isaName(engine.isa())},
            {"knobs", knobsJson(engine)}};
}

// What a server reports about itself; its settings are not known here.
Json settingsOf(const serve::HttpTarget& server) {
    const std::optional<int64_t> context = server.contextLength();
    return {{"model", server.model()},
            {"context_length", context ? Json(*context) : Json(nullptr)}};
}

Json requestSettings(const LoadArgs& args) {
    return {{"prompts", args.prompts.empty() ? Json(nullptr) : Json(args.prompts)},
            {"max_tokens", args.maxTokens},
            {"ignore_eos", args.ignoreEos},
            {"requests", args.load.requests > 0 ? Json(args.load.requests) : Json(nullptr)},
            {"duration_s", args.load.durationS > 0 ? Json(args.load.durationS) : Json(nullptr)}};
}

// `loaded`: receives the engine if the target is a model; keep it until the report was printed.
// `settings`: receives the description of the target.
Result<LoadReport> runOn(const LoadArgs& args, const std::vector<LoadPrompt>& prompts,
                         LoadedEngine& loaded, Json& settings) {
    std::unique_ptr<LoadTarget> target;
    if (args.engine.model.find("://") != std::string::npos) {
        if (!args.engine.session.empty()) {
            return Status(Code::InvalidArgument, "--session records a model, not a server",
                          "Record in the server's process: colibri serve DIR --session FILE");
        }
        Result<std::unique_ptr<serve::HttpTarget>> http = serve::HttpTarget::connect(
            args.engine.model, {args.apiKey, args.maxTokens, args.ignoreEos}, &interrupted());
        if (!http.ok()) return http.status();
        settings = settingsOf(**http);
        target = std::move(*http);
    } else {
        Result<LoadedEngine> engine = loadEngine(args.engine);
        if (!engine.ok()) return engine.status();
        loaded = std::move(*engine);
        settings = settingsOf(*loaded.engine);
        Request model;
        model.maxTokens = args.maxTokens;
        model.ignoreEos = args.ignoreEos;
        target = std::make_unique<EngineTarget>(*loaded.engine, model);
    }
    ProgressLine progress;
    Result<LoadReport> report =
        runLoad(*target, prompts, args.load, progress.function(), interrupted());
    progress.finish();
    return report;
}

int run(LoadArgs args) {
    if (const char* key = std::getenv("COLIBRI_API_KEY"); key && args.apiKey.empty()) {
        args.apiKey = key;
    }
    if (args.load.requests == 0 && args.load.durationS == 0) args.load.requests = 32;
    Result<std::vector<LoadPrompt>> prompts = promptsOf(args);
    if (!prompts.ok()) return fail(prompts.status());
    LoadedEngine loaded;
    Json settings;
    Result<LoadReport> report = runOn(args, *prompts, loaded, settings);
    if (!report.ok()) return fail(report.status());
    printReport(*report);
    // A write error is reported after the figures, which are printed in any case.
    const Status written =
        args.csv.empty() ? Status() : writeFileAtomically(args.csv, loadCsv(*report));
    if (args.engine.json) {
        Json json = {{"target", args.engine.model}, {"version", COLIBRI_VERSION}};
        json.update(settings);
        json["asked"] = requestSettings(args);
        if (args.load.rate > 0) {
            json["rate"] = args.load.rate;
            json["seed"] = args.load.seed;
        } else {
            json["users"] = args.load.users;
        }
        json.update(loadJson(*report));
        if (const int code = outJson(json); code != kOk) return code;
    }
    int code = report->completed > 0 && !interrupted().load() ? kOk : kFailed;
    if (!written.ok()) code = fail(written);
    return loaded.recorder ? endRecording(loaded, code) : code;
}

}  // namespace

void addLoad(Verbs& verbs) {
    auto args = std::make_shared<LoadArgs>();
    CLI::App* verb = verbs.add("load", "Send requests to a server or a model and measure latencies",
                               [args] { return run(*args); });
    args->engine.addTo(
        *verb, true, "TARGET",
        "Address of an OpenAI-compatible server (http://HOST:PORT), or a model folder");
    verb->add_option(
            "--prompts", args->prompts,
            "Lines of text or JSON ({\"prompt\"} or {\"messages\"}; default: a built-in set)")
        ->type_name("FILE");
    verb->add_option("--users", args->load.users,
                     "Closed loop: number of users, each sending one request after another")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    verb->add_option("--rate", args->load.rate,
                     "Open loop: average requests per second, at random times")
        ->check(CLI::PositiveNumber)
        ->excludes("--users");
    verb->add_option("--seed", args->load.seed, "Seed of the random times")->capture_default_str();
    verb->add_option("--requests", args->load.requests, "Total number of requests (default 32)")
        ->check(CLI::PositiveNumber);
    verb->add_option("--duration", args->load.durationS, "Seconds during which requests arrive")
        ->check(CLI::PositiveNumber);
    verb->add_option("--max-tokens", args->maxTokens, "Maximum tokens of a reply")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_flag("--ignore-eos", args->ignoreEos, "Replies continue to the token limit");
    verb->add_option("--csv", args->csv, "One line per request")->type_name("FILE");
    verb->add_option("--api-key", args->apiKey,
                     "API key of the server (or set the variable COLIBRI_API_KEY)");
    verb->footer(
        "Latencies count from the scheduled arrival of a request. --json also reports the version "
        "and "
        "the options, and for a model its types, context, knobs and machine.");
}

}  // namespace colibri::cli
