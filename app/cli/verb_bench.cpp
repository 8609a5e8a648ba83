// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "app/cli/engine_args.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/runtime/run_request.h"
#include "engine/runtime/sampler.h"
#include "profiler/record/recording_cost.h"

namespace colibri::cli {

namespace {

constexpr float kEven = 1e9f;  // a temperature so high that all tokens are equally likely

struct BenchArgs {
    EngineArgs engine;
    int prompt = 512, generate = 128, repeat = 3;
    std::string threads;
    uint64_t seed = 1;
    bool recordingCost = false;
};

struct Series {
    std::vector<double> values;

    double mean() const {
        double sum = 0;
        for (const double v : values) sum += v;
        return values.empty() ? std::nan("") : sum / double(values.size());
    }
    double sd() const {  // sample standard deviation; needs two values
        if (values.size() < 2) return std::nan("");
        double sum = 0;
        for (const double v : values) sum += (v - mean()) * (v - mean());
        return std::sqrt(sum / double(values.size() - 1));
    }
    Json json() const { return {{"mean", jsonNumber(mean())}, {"sd", jsonNumber(sd())}}; }
    std::string text() const {
        return values.empty() ? "n/a" : formatSig(mean()) + " ± " + formatSig(sd(), 2) + " tok/s";
    }
};

std::vector<int32_t> randomTokens(int64_t vocab, int count, uint64_t seed) {
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) {
        ids.push_back(int32_t(uniformDraw(seed, uint64_t(i)) * double(vocab)));
    }
    return ids;
}

class Bench {
public:
    Bench(const BenchArgs& args, LoadedEngine& loaded) : m_args(args), m_loaded(loaded) {}

    // Computes one prompt of p tokens, then generates n tokens from an almost empty context.
    Status round(int index, bool measured) {
        const int64_t vocab = m_loaded.engine->info().config.vocabSize;
        const uint64_t seed = m_args.seed * 1000003 + uint64_t(index) * 2;
        if (m_args.prompt > 0) {
            COLIBRI_TRY(request(randomTokens(vocab, m_args.prompt, seed), 1, measured));
            if (measured) prefill.values.push_back(m_result.promptTokS);
        }
        if (m_args.generate > 0) {
            COLIBRI_TRY(request(randomTokens(vocab, 1, seed + 1), m_args.generate + 1, measured));
            if (measured) decode.values.push_back(m_result.decodeTokS);
        }
        return {};
    }

    Series prefill, decode;
    StoreStats experts;

private:
    Status request(std::vector<int32_t> prompt, int tokens, bool measured) {
        Request r;
        r.prompt = std::move(prompt);
        r.maxTokens = tokens;
        r.ignoreEos = true;
        // Tokens are drawn uniformly from the vocabulary, as llama-bench does. Real generated text
        // soon repeats itself and therefore its experts, which would raise the hit rate.
        r.sampling.temperature = kEven;
        r.sampling.seed = m_args.seed;
        Result<RequestResult> result =
            runRequest(*m_loaded.engine, std::move(r), {}, &interrupted());
        if (!result.ok()) return result.status();
        COLIBRI_TRY(result->status);
        if (result->stop == StopReason::Cancelled) return {Code::Cancelled, "stopped"};
        if (int(result->tokens.size()) < tokens) {
            return {Code::InvalidArgument,
                    "the context of " + formatCount(m_loaded.engine->contextLength()) +
                        " tokens was full after " + formatCount(int64_t(result->tokens.size())) +
                        " of " + formatCount(tokens) + " tokens",
                    "Choose a smaller -n or a larger --context-length"};
        }
        m_result = std::move(*result);
        if (measured) experts += m_result.experts;
        return {};
    }

    const BenchArgs& m_args;
    LoadedEngine& m_loaded;
    RequestResult m_result;
};

int report(const BenchArgs& args, const Bench& bench, const LoadedEngine& loaded,
           const Histogram& loads) {
    const Engine& engine = *loaded.engine;
    const double perToken = double(engine.bytesPerToken());
    const double rate = bench.decode.mean() * perToken;
    const Calibration machine = engine.calibration();
    const auto rateJson = [](double rate) { return rate > 0 ? Json(rate) : Json(nullptr); };
    if (args.engine.json) {
        return outJson({{"model", engine.info().config.name},
                        {"machine", machineFingerprint()},
                        {"isa", isaName(engine.isa())},
                        {"prompt", args.prompt},
                        {"generate", args.generate},
                        {"repeat", args.repeat},
                        {"prompt_tok_s", bench.prefill.json()},
                        {"decode_tok_s", bench.decode.json()},
                        {"bytes_per_token", engine.bytesPerToken()},
                        {"weight_bytes_per_s", jsonNumber(rate)},
                        {"reads", engine.store().readPath()},
                        {"calibration",
                         {{"disk_bytes_per_s", rateJson(machine.diskBytesPerSecond)},
                          {"memory_bytes_per_s", rateJson(machine.memoryBytesPerSecond)},
                          {"direct", machine.direct},
                          {"reason", machine.reason}}},
                        {"experts", expertsJson(bench.experts, loads)},
                        {"router", routerJson(engine)},
                        {"knobs", knobsJson(engine)},
                        {"peak_rss_bytes", processPeakRss()}});
    }
    const StoreStats& e = bench.experts;
    std::string router = routerLine(engine);
    if (!router.empty()) router += "\n";
    const double hitRate = e.lookups ? double(e.hits) / double(e.lookups) : std::nan("");
    return out("prompt " + std::to_string(args.prompt) + "   " + bench.prefill.text() + "\n" +
               "decode " + std::to_string(args.generate) + "   " + bench.decode.text() + "\n" +
               "weights   " + formatGiB(perToken) + " per token, " + formatRate(rate) + "\n" +
               "experts   hit rate " + formatPercent(hitRate) + ", read " +
               formatGiB(double(e.bytesRead)) + "\n" + "peak      " +
               formatGiB(double(processPeakRss())) + "\n" + router)
               ? kOk
               : kFailed;
}

std::string signedShare(double share) {
    return (share >= 0 ? "+" : "") + formatPercent(share, 2);
}

Json costJson(const RecordingCost& c) {
    return {{"itl_ms_without", jsonNumber(c.itl.before)},
            {"itl_ms_with", jsonNumber(c.itl.after)},
            {"relative", jsonNumber(c.itl.relative)},
            {"low", jsonNumber(c.itl.low)},
            {"high", jsonNumber(c.itl.high)},
            {"events_per_s", jsonNumber(c.eventsPerSecond)},
            {"file_bytes_per_s", jsonNumber(c.fileBytesPerSecond)},
            {"processor_share", jsonNumber(c.processorShare)},
            {"dropped", c.dropped}};
}

std::string costText(const RecordingCost& c) {
    return "recording  " + signedShare(c.itl.relative) +
           " time per token (95 %: " + signedShare(c.itl.low) + " .. " + signedShare(c.itl.high) +
           "), " + formatMs(c.itl.before) + " without, " + formatMs(c.itl.after) + " with\n" +
           "events     " + formatCount(int64_t(c.eventsPerSecond)) + " per second, " +
           formatCount(int64_t(c.dropped)) + " dropped\n" + "file       " +
           formatRate(c.fileBytesPerSecond) + "\n" + "recorder   " +
           formatPercent(c.processorShare) + " of one processor\n";
}

int measureCost(const BenchArgs& args, LoadedEngine& loaded) {
    loaded.recorder.reset();  // the measurement has its own
    ProgressLine progress;
    const Result<RecordingCost> cost =
        measureRecordingCost(*loaded.engine, {args.generate, args.repeat, args.seed},
                             progress.function(), &interrupted());
    progress.finish();
    if (!cost.ok()) return fail(cost.status());
    if (args.engine.json)
        return outJson({{"model", loaded.engine->info().config.name},
                        {"machine", machineFingerprint()},
                        {"recording", costJson(*cost)},
                        {"knobs", knobsJson(*loaded.engine)}});
    return out(costText(*cost)) ? kOk : kFailed;
}

int run(BenchArgs args) {
    if (args.prompt == 0 && args.generate == 0) {
        return fail({Code::InvalidArgument, "nothing to measure: -p and -n are both 0"});
    }
    if (!args.threads.empty()) args.engine.knobs.setText(KnobId::ComputeThreads, args.threads);
    args.engine.contextAtLeast = std::max(args.prompt, args.generate + 1) + 1;
    Result<LoadedEngine> loaded = loadEngine(args.engine);
    if (!loaded.ok()) return fail(loaded.status());
    if (args.recordingCost) return measureCost(args, *loaded);
    Bench bench(args, *loaded);
    ProgressLine progress;
    double from = 0;
    for (int i = -1; i < args.repeat; ++i) {  // round -1 is the warm-up
        progress.show({i < 0 ? "Warm-up" : "Measuring", uint64_t(std::max(i, 0)),
                       uint64_t(args.repeat), "rounds"});
        if (i == 0) from = loaded->recorder->sessionTime(monotonicNs());
        const Status status = bench.round(i + 1, i >= 0);
        if (!status.ok()) {
            progress.finish();
            return i < 0 ? refuse(*loaded, args.engine, status) : fail(status);
        }
    }
    progress.finish();
    (void)loaded->recorder->flush();  // endRecording reports a failure
    const Histogram loads =
        loaded->recorder->expertLoadBetween(from, loaded->recorder->sessionTime(monotonicNs()));
    return endRecording(*loaded, report(args, bench, *loaded, loads));
}

}  // namespace

void addBench(Verbs& verbs) {
    auto args = std::make_shared<BenchArgs>();
    CLI::App* verb =
        verbs.add("bench", "Measure prompt and decode speed with random prompts and tokens",
                  [args] { return run(*args); });
    args->engine.addTo(*verb);
    verb->add_option("-p,--prompt", args->prompt, "Prompt tokens; 0: none")
        ->check(CLI::Range(0, 1 << 20))
        ->capture_default_str();
    verb->add_option("-n,--generate", args->generate, "Tokens to generate; 0: none")
        ->check(CLI::Range(0, 1 << 20))
        ->capture_default_str();
    verb->add_option("-t,--threads", args->threads, "As --compute-threads");
    verb->add_option("--repeat", args->repeat, "Number of rounds, after one warm-up round")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    verb->add_option("--seed", args->seed, "Seed of the random tokens")->capture_default_str();
    verb->add_flag("--recording-cost", args->recordingCost,
                   "Measure instead what recording a session costs: --repeat pairs of requests of "
                   "-n tokens, with and without recording")
        ->excludes(verb->get_option("--session"));
}

}  // namespace colibri::cli
