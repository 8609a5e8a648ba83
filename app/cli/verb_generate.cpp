// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/sampling_args.h"
#include "app/serve/logprobs_json.h"
#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/runtime/run_request.h"
#include "engine/text/reply_parts.h"

namespace colibri::cli {

namespace {

struct GenerateArgs {
    EngineArgs engine;
    SamplingArgs sampling;
    ChatOptionArgs chatOptions;
    std::string prompt, file, tokens, system;
    bool chat = false, noBos = false;
    std::optional<int> logprobs;
    CLI::Option *promptOption = nullptr, *fileOption = nullptr, *tokensOption = nullptr;
};

Result<std::vector<int32_t>> promptIds(const GenerateArgs& args, const Engine& engine) {
    if (args.tokensOption->count()) return parseIds(args.tokens);
    std::string text = args.prompt;
    if (args.fileOption->count()) {
        Result<std::string> read = readInput(args.file);
        if (!read.ok()) return read.status();
        text = std::move(*read);
    }
    if (args.chat) {
        Json messages = Json::array();
        if (!args.system.empty())
            messages.push_back({{"role", "system"}, {"content", args.system}});
        messages.push_back({{"role", "user"}, {"content", text}});
        Result<ChatOptions> options = args.chatOptions.options();
        if (!options.ok()) return options.status();
        return engine.encodeChat(messages, *options);
    }
    if (!engine.tokenizer()) {
        return missingText(engine, "tokenizer", "Use --tokens 1,2,3");
    }
    return engine.tokenizer()->encode(text, {.special = true, .bos = !args.noBos});
}

// One entry for each token, in the format of a chat reply of `serve`.
Json logprobsJson(const RequestResult& result, const Engine& engine) {
    Json list = Json::array();
    for (const std::vector<Logprob>& token : result.logprobs) {
        list.push_back(serve::chatLogprob(engine.tokenizer(), token));
    }
    return list;
}

int run(const GenerateArgs& args) {
    Result<LoadedEngine> loaded = loadEngine(args.engine);
    if (!loaded.ok()) return fail(loaded.status());
    Engine& engine = *loaded->engine;
    Result<std::vector<int32_t>> ids = promptIds(args, engine);
    if (!ids.ok()) return refuse(*loaded, args.engine, ids.status());
    const bool json = args.engine.json;
    const auto show = [&](const std::string& text) { return json || outText(text); };
    const double from = loaded->recorder->sessionTime(monotonicNs());
    Request request = args.sampling.request(std::move(*ids), Sampling());
    request.logprobs = args.logprobs;
    request.specialText = args.chat && marksAreSpecial(*engine.tokenizer());
    Result<RequestResult> result =
        runRequest(engine, std::move(request), {.onText = show}, &interrupted());
    if (!result.ok()) return refuse(*loaded, args.engine, result.status());
    (void)loaded->recorder->flush();  // endRecording reports a failure
    if (!result->status.ok()) return fail(result->status);
    const Histogram loads =
        loaded->recorder->expertLoadBetween(from, loaded->recorder->sessionTime(monotonicNs()));
    if (json) {
        Json reply = {{"tokens", result->tokens},
                      {"text", result->text},
                      {"stop", stopReasonName(result->stop)},
                      {"stats", statsJson(*result, loads, engine)}};
        if (args.logprobs) reply["logprobs"] = logprobsJson(*result, engine);
        if (const int code = outJson(reply); code != kOk) return code;
    } else {
        if (!engine.tokenizer()) {
            std::string list;
            for (const int32_t id : result->tokens) {
                list += (list.empty() ? "" : ",") + std::to_string(id);
            }
            out(list);
        }
        if (!out("\n")) return kFailed;
        messageFigures(statsLine(*result));
        if (const std::string line = routerLine(engine); !line.empty()) message(line);
        if (engine.chatTemplate() && !args.chat && args.promptOption->count()) {
            message(
                "The prompt was continued as raw text. For an answer, use --chat or colibri chat.");
        }
    }
    return endRecording(*loaded, interrupted().load() ? kFailed : kOk);
}

}  // namespace

Json statsJson(const RequestResult& r, const Histogram& loads, const Engine& engine) {
    Histogram itl;
    for (const double ms : r.gapsMs) itl.add(uint64_t(ms * 1e6));
    return {{"prompt_tokens", r.promptTokens},
            {"cached_tokens", r.cachedTokens},
            {"generated_tokens", r.tokens.size()},
            {"preemptions", r.preemptions},
            {"recomputed_tokens", r.recomputedTokens},
            {"preempted_ms", r.preemptedMs},
            {"ttft_ms", r.ttftMs},
            {"prompt_tok_s", jsonNumber(r.promptTokS)},
            {"decode_tok_s", r.gapsMs.empty() ? Json(nullptr) : jsonNumber(r.decodeTokS)},
            {"itl_ms",
             {{"p50", jsonNumber(itl.quantile(0.5) * 1e-6)},
              {"p99", jsonNumber(itl.quantile(0.99) * 1e-6)},
              {"max", jsonNumber(itl.max() * 1e-6)},
              {"n", itl.count()}}},
            {"experts", expertsJson(r.experts, loads)},
            {"router", routerJson(engine)},
            {"peak_rss_bytes", processPeakRss()}};
}

std::string statsLine(const RequestResult& r) {
    const StoreStats& e = r.experts;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return formatCount(int64_t(r.tokens.size())) + " tokens (" + stopReasonName(r.stop) + ")  " +
           "first after " + formatMs(r.tokens.empty() ? nan : r.ttftMs) + "  prompt " +
           formatCount(r.promptTokens) +
           (r.cachedTokens ? " (" + formatCount(r.cachedTokens) + " cached)" : "") + " at " +
           formatSig(r.tokens.empty() ? nan : r.promptTokS) + " tok/s  decode " +
           formatSig(r.gapsMs.empty() ? nan : r.decodeTokS) + " tok/s  hit rate " +
           formatPercent(e.lookups ? double(e.hits) / double(e.lookups) : nan) + "  read " +
           formatGiB(double(e.bytesRead)) + "  stall " + formatMs(double(e.stallNs) * 1e-6) +
           (r.preemptions
                ? "  preempted " + formatCount(r.preemptions) + " times, " + formatMs(r.preemptedMs)
                : "");
}

void SamplingArgs::addTo(CLI::App& verb, bool ofChat) {
    const auto shown = [&](double plain, const char* chat) {
        return ofChat ? chat : formatSig(plain);
    };
    const Sampling plain;
    verb.add_option("--max-tokens", maxTokens, "Maximum number of tokens to generate")
        ->capture_default_str();
    verb.add_option("--temperature", temperature, "0 is greedy")
        ->default_str(shown(plain.temperature, "the model's value, else 0.7"));
    verb.add_option("--top-k", topK, "0 is off")
        ->default_str(shown(plain.topK, "the model's value, else 0"));
    verb.add_option("--top-p", topP, "1 is off")
        ->default_str(shown(plain.topP, "the model's value, else 0.95"));
    verb.add_option("--min-p", minP, "0 is off")->default_str(formatSig(plain.minP));
    verb.add_option("--repetition-penalty", repetitionPenalty, "1 is off")
        ->default_str(formatSig(plain.repetitionPenalty));
    verb.add_option("--seed", seed, "Same seed, same text")
        ->default_str(std::to_string(ofChat ? chatSampling({}).seed : plain.seed));
    verb.add_option("--stop", stops, "Stop before this string; repeatable");
    verb.add_flag("--ignore-eos", ignoreEos, "Continue after an end-of-sequence token");
}

Request SamplingArgs::request(std::vector<int32_t> prompt, const Sampling& defaults) const {
    Request r;
    r.prompt = std::move(prompt);
    Sampling& s = r.sampling;
    s.temperature = temperature.value_or(defaults.temperature);
    s.topK = topK.value_or(defaults.topK);
    s.topP = topP.value_or(defaults.topP);
    s.minP = minP.value_or(defaults.minP);
    s.repetitionPenalty = repetitionPenalty.value_or(defaults.repetitionPenalty);
    s.seed = seed.value_or(defaults.seed);
    r.maxTokens = maxTokens;
    r.stops = stops;
    r.ignoreEos = ignoreEos;
    return r;
}

void addGenerate(Verbs& verbs) {
    auto args = std::make_shared<GenerateArgs>();
    CLI::App* verb = verbs.add("generate", "Continue a prompt", [args] { return run(*args); });
    args->engine.addTo(*verb);
    args->promptOption = verb->add_option("-p,--prompt", args->prompt, "The prompt");
    args->fileOption =
        verb->add_option("--file", args->file, "Read the prompt from a file; - is standard input")
            ->type_name("FILE");
    args->tokensOption =
        verb->add_option("--tokens", args->tokens, "The prompt as token ids")->type_name("1,2,3");
    args->promptOption->excludes(args->fileOption)->excludes(args->tokensOption);
    args->fileOption->excludes(args->tokensOption);
    verb->add_flag("--chat", args->chat,
                   "Treat the prompt as a user message: use the chat template");
    verb->add_option("--system", args->system, "System message, with --chat");
    args->chatOptions.addTo(*verb, "--chat");
    verb->add_flag("--no-bos", args->noBos,
                   "Do not put a beginning-of-sequence token before the prompt");
    args->sampling.addTo(*verb);
    verb->add_option("--logprobs", args->logprobs,
                     "With --json: log-probability of each token and of the N most likely, before "
                     "temperature")
        ->type_name("N")
        ->check(CLI::Range(0, kMaxLogprobs))
        ->needs("--json");
    verb->parse_complete_callback([args] {
        if (args->promptOption->count() + args->fileOption->count() + args->tokensOption->count() ==
            0) {
            throw CLI::RequiredError("--prompt, --file or --tokens");
        }
    });
}

}  // namespace colibri::cli
