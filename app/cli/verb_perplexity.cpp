// SPDX-License-Identifier: GPL-3.0-or-later
// `perplexity DIR --file F` and `compare A B --file F`: measure the loss caused by a weight type.
#include "app/cli/engine_args.h"
#include "engine/base/file.h"
#include "profiler/quality/perplexity.h"

namespace colibri::cli {

namespace {

struct TextArgs {
    std::string file;
    PerplexityOptions options;
    CLI::Option* window = nullptr;

    void addTo(CLI::App& verb) {
        verb.add_option("--file", file, "Text file; - is standard input")
            ->type_name("FILE")
            ->required();
        window = verb.add_option("--window", options.window,
                                 "Tokens of context, half of them new (default: 512, or the "
                                 "context length if that is less)")
                     ->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
        verb.add_option("--max-tokens", options.maxTokens,
                        "Maximum tokens of the text to use (default: all)")
            ->check(CLI::NonNegativeNumber);
    }
};

Result<std::vector<int32_t>> encodeFile(const Engine& engine, const std::string& file) {
    if (!engine.tokenizer()) {
        return missingText(engine, "tokenizer", "Put its tokenizer.json into the folder");
    }
    Result<std::string> text = readInput(file);
    if (!text.ok()) return text.status();
    return engine.tokenizer()->encode(*text);
}

Json perplexityJson(const Perplexity& p) {
    return {{"tokens", p.tokens},
            {"perplexity", jsonNumber(p.perplexity())},
            {"mean_nll", jsonNumber(p.meanNll)},
            {"standard_error", jsonNumber(p.standardError)}};
}

std::string perplexityText(const Perplexity& p) {
    char line[160];
    std::snprintf(line, sizeof line, "perplexity %.4f  (%.4f +- %.4f nats per token, %lld tokens)",
                  p.perplexity(), p.meanNll, p.standardError, (long long)p.tokens);
    return line;
}

struct PerplexityArgs {
    EngineArgs engine;
    TextArgs text;
};

int runPerplexity(PerplexityArgs& args) {
    Result<LoadedEngine> loaded = loadEngine(args.engine);
    if (!loaded.ok()) return fail(loaded.status());
    Engine& engine = *loaded->engine;
    PerplexityOptions options = args.text.options;
    if (!args.text.window->count()) {
        options.window = std::min(options.window, engine.contextLength());
    }
    Result<std::vector<int32_t>> ids = encodeFile(engine, args.text.file);
    if (!ids.ok()) return fail(ids.status());
    ProgressLine progress;
    Result<Perplexity> p =
        measurePerplexity(engine, *ids, options, progress.function(), &interrupted());
    progress.finish();
    if (!p.ok()) return fail(p.status());
    if (args.engine.json) {
        Json json = perplexityJson(*p);
        json["window"] = options.window;
        return outJson(json);
    }
    return out(perplexityText(*p) + "\n") ? kOk : kFailed;
}

struct CompareArgs {
    EngineArgs engine;
    std::string other;
    TextArgs text;
};

int runCompare(CompareArgs& args) {
    Result<LoadedEngine> a = loadEngine(args.engine);
    if (!a.ok()) return fail(a.status());
    EngineArgs second = args.engine;
    second.model = args.other;
    Result<LoadedEngine> b = loadEngine(second);
    if (!b.ok()) return fail(b.status());
    PerplexityOptions options = args.text.options;
    if (!args.text.window->count()) {
        options.window =
            std::min({options.window, a->engine->contextLength(), b->engine->contextLength()});
    }
    Result<std::vector<int32_t>> ids = encodeFile(*a->engine, args.text.file);
    if (!ids.ok()) return fail(ids.status());
    ProgressLine progress;
    Result<Comparison> c =
        compareModels(*a->engine, *b->engine, *ids, options, progress.function(), &interrupted());
    progress.finish();
    if (!c.ok()) return fail(c.status());
    if (args.engine.json) {
        return outJson({{"a", perplexityJson(c->a)},
                        {"b", perplexityJson(c->b)},
                        {"window", options.window},
                        {"kl",
                         {{"mean", jsonNumber(c->meanKl)},
                          {"p99", jsonNumber(c->p99Kl)},
                          {"max", jsonNumber(c->maxKl)}}},
                        {"top1_agreement", c->top1Agreement}});
    }
    char line[200];
    std::snprintf(line, sizeof line,
                  "KL(A || B) mean %.5f  P99 %.5f  max %.5f nats, same most likely token %.2f %%\n",
                  c->meanKl, c->p99Kl, c->maxKl, 100 * c->top1Agreement);
    return out("A: " + perplexityText(c->a) + "\nB: " + perplexityText(c->b) + "\n" + line)
               ? kOk
               : kFailed;
}

}  // namespace

void addPerplexity(Verbs& verbs) {
    auto args = std::make_shared<PerplexityArgs>();
    CLI::App* verb = verbs.add("perplexity", "Measure how well a model predicts a text",
                               [args] { return runPerplexity(*args); });
    args->engine.addTo(*verb, false);
    args->text.addTo(*verb);
}

void addCompare(Verbs& verbs) {
    auto args = std::make_shared<CompareArgs>();
    CLI::App* verb =
        verbs.add("compare", "Measure how much two containers of one model differ on a text",
                  [args] { return runCompare(*args); });
    args->engine.addTo(*verb, false);
    verb->add_option("OTHER", args->other, "The second model folder")->required();
    args->text.addTo(*verb);
}

}  // namespace colibri::cli
