// SPDX-License-Identifier: GPL-3.0-or-later
// Checks measured effects of knob changes on the demo model: seeded changes of several knobs during
// replies, each interval compared with the long-run rates of both settings for the same story
// (sampled replies to the same prompt). Needs a quiet machine, because the long runs and the
// changes are measured minutes apart.
// Usage: bench_effects MODEL [CHANGES] [SEED]
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "profiler/loadtest/load_run.h"
#include "profiler/metrics/effect.h"
#include "profiler/record/recorder.h"

using namespace colibri;

namespace {

constexpr int kLongRunTokens = 1000, kReplyTokens = 200, kMostTokens = 1200;
constexpr unsigned kStories[] = {0, 8, 16};  // shipped prompts

using Setting = std::map<KnobId, int64_t>;
struct Change {
    KnobId knob;
    int64_t from, to;
    Setting rest;
    bool null;  // has no effect
};

Setting with(Setting setting, KnobId knob, int64_t value) {
    setting[knob] = value;
    return setting;
}

// Answers one prompt repeatedly on this thread, each time with the next seed.
class Talk {
public:
    Talk(Engine& engine, unsigned story, uint64_t seed)
        : m_engine(engine), m_messages(shippedLoadPrompts().at(story).messages), m_seed(seed) {}
    // Runs until onToken(tokens so far) returns false. Appends the gaps in ms to `gaps`.
    void run(const std::function<bool(int)>& onToken, std::vector<double>* gaps = nullptr) {
        bool goOn = true;
        while (goOn) {
            Request request;
            request.prompt = *m_engine.encodeChat(m_messages);
            request.maxTokens = kReplyTokens;
            request.sampling.temperature = 0.7f;
            request.sampling.seed = m_seed++;
            std::mutex mutex;
            std::condition_variable ended;
            bool done = false;
            RequestCallbacks callbacks;
            callbacks.onToken = [&](const GeneratedToken& token) {
                if (gaps && token.gapNs) gaps->push_back(double(token.gapNs) / 1e6);
                return goOn = onToken(++m_tokens);
            };
            callbacks.onDone = [&](RequestResult result) {
                if (!result.status.ok()) std::fprintf(stderr, "%s\n", result.status.text().c_str());
                const std::lock_guard lock(mutex);
                done = true;
                ended.notify_all();
            };
            if (auto id = m_engine.submit(std::move(request), std::move(callbacks)); !id) {
                std::fprintf(stderr, "%s\n", id.status().text().c_str());
                std::exit(1);
            }
            std::unique_lock lock(mutex);
            ended.wait(lock, [&] { return done; });
        }
    }

private:
    Engine& m_engine;
    nlohmann::ordered_json m_messages;
    uint64_t m_seed;
    int m_tokens = 0;
};

void setAll(Engine& engine, const Setting& setting) {
    for (const auto& [knob, value] : setting) engine.applyKnob(knob, value);
}

// Seconds per token after settling, with the same replies for every setting.
double longRun(Engine& engine, const Setting& setting, unsigned story) {
    setAll(engine, setting);
    Talk(engine, story, 1).run([](int tokens) { return tokens < 60; });
    std::vector<double> gaps;
    Talk(engine, story, 2).run([](int tokens) { return tokens < kLongRunTokens; }, &gaps);
    double sum = 0;
    for (const double gap : gaps) sum += gap;
    return sum / double(gaps.size()) / 1000;
}

Marker measured(Engine& engine, const Change& change, unsigned story, std::mt19937& random) {
    setAll(engine, with(change.rest, change.knob, change.from));
    std::vector<Event> earlier;  // events before the recorder started
    engine.telemetry().drain(earlier);
    auto recorder = Recorder::start(engine, {});
    const int at = int(60 + random() % 240);
    Marker last;
    Talk(engine, story, random()).run([&](int tokens) {
        if (tokens == at) engine.setKnob(change.knob, change.to);
        if (tokens <= at || tokens % 8) return true;
        for (const Marker& marker : (*recorder)->snapshot()->markers)
            if (marker.kind == Marker::Kind::Knob && !marker.automatic) last = marker;
        const bool final = last.effect == Marker::Effect::NotMeasured ||
                           (last.effect == Marker::Effect::Known && !last.refining);
        return !final && tokens < kMostTokens;
    });
    return last;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench_effects MODEL [CHANGES] [SEED]\n");
        return 2;
    }
    const int count = argc > 2 ? std::atoi(argv[2]) : 100;
    std::mt19937 random(argc > 3 ? unsigned(std::atoi(argv[3])) : 1u);
    EngineOptions options;
    options.model = argv[1];
    auto loaded = Engine::load(options, {}, nullptr);
    if (!loaded) {
        std::fprintf(stderr, "%s\n", loaded.status().text().c_str());
        return 3;
    }
    Engine& engine = **loaded;
    const Setting base{{KnobId::ExpertCacheSize, 12}, {KnobId::LinkLimit, 40},
                       {KnobId::CachePolicy, 0},      {KnobId::PrefetchSource, 3},
                       {KnobId::IoDepth, 8},          {KnobId::BatchTimeout, 10},
                       {KnobId::ComputeThreads, 1}};
    const Setting slow = with(with(base, KnobId::LinkLimit, 25), KnobId::ExpertCacheSize, 8);
    const std::vector<Change> changes{
        {KnobId::ExpertCacheSize, 8, 16, slow, false},
        {KnobId::ExpertCacheSize, 16, 8, slow, false},
        {KnobId::ExpertCacheSize, 12, 20, base, false},
        {KnobId::ExpertCacheSize, 12, 13, base, false},
        {KnobId::LinkLimit, 40, 60, base, false},
        {KnobId::LinkLimit, 40, 25, base, false},
        {KnobId::PrefetchSource, 3, 0, base, false},
        {KnobId::CachePolicy, 0, 2, base, false},
        {KnobId::IoDepth, 8, 12, base, true},
        {KnobId::BatchTimeout, 10, 40, base, true},
    };
    std::map<std::pair<Setting, unsigned>, double> secondsPerToken;
    const auto seconds = [&](const Setting& setting, unsigned story) {
        const auto key = std::make_pair(setting, story);
        if (!secondsPerToken.contains(key))
            secondsPerToken.emplace(key, longRun(engine, setting, story));
        return secondsPerToken.at(key);
    };
    int held = 0, known = 0, none = 0, nulls = 0;
    for (int i = 0; i < count; ++i) {
        const Change& change = changes[size_t(i) % changes.size()];
        const unsigned story = kStories[random() % std::size(kStories)];
        // A knob without an effect changes nothing by definition, so this needs no measurement.
        const double truth =
            change.null ? 0
                        : seconds(with(change.rest, change.knob, change.from), story) /
                                  seconds(with(change.rest, change.knob, change.to), story) -
                              1;
        const Marker marker = measured(engine, change, story, random);
        setAll(engine, base);
        const bool hit = marker.low <= truth && truth <= marker.high;
        if (marker.effect == Marker::Effect::Known) {
            ++known;
            held += hit;
            nulls += change.null;
            none += change.null && marker.low <= 0 && marker.high >= 0;
        }
        std::printf("%3d %s %s: truth %+.1f %%, %s%s\n", i, knobRow(change.knob).name,
                    knobChangeText(change.knob, change.from, change.to).c_str(), 100 * truth,
                    effectText(marker).c_str(), hit ? "" : "   MISSED");
        std::fflush(stdout);
    }
    std::printf(
        "%d of %d measured; the interval holds the long-run change in %d (%.1f %%); "
        "without effect %d, called so %d\n",
        known, count, held, 100.0 * held / std::max(1, known), nulls, none);
}
