// SPDX-License-Identifier: GPL-3.0-or-later
// Three tables of one model on one machine, each with all other knobs at rest:
//
//   cache size         miss rate, ITL P50 and P99, tok/s, memory of the cache
//   batch timeout      mean batch, tok/s, end-to-end P99 and P99.9 under concurrent requests
//   prefetch threads   hit rate, prefetches by outcome, ITL P99, tok/s
//
// The last one uses a cache that misses: twice the experts of a token, unless expert_cache_size is
// set. A percentile is n/a if there are too few samples to distinguish it from the maximum.
//
//   bench_tables MODEL [KNOB=VALUE ...] [tokens=N] [users=N] [requests=N]
//
// Prompts are random tokens, and text is sampled at temperature 1 from fixed seeds: every row has
// the same requests. Each row is warmed up first.
#include <unistd.h>

#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "engine/base/format.h"
#include "engine/runtime/engine.h"
#include "profiler/metrics/histogram.h"

using namespace colibri;

namespace {

[[noreturn]] void stop(const Status& status) {
    std::fprintf(stderr, "bench_tables: %s\n", status.text().c_str());
    std::exit(1);
}

struct Work {
    int tokens = 96, users = 8, requests = 128;
};

// The measurements of one row of a table.
struct Figures {
    Histogram itl, whole;  // gaps of all requests; arrival to last token of each
    StoreStats experts;
    uint64_t tokens = 0;
    double seconds = 0, meanBatch = 0;

    double rate() const { return double(tokens) / seconds; }
    double hitRate() const {
        return experts.lookups ? double(experts.hits) / double(experts.lookups) : std::nan("");
    }
};

std::vector<int32_t> randomPrompt(int64_t vocab, int length, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int32_t> ids;
    for (int i = 0; i < length; ++i) ids.push_back(int32_t(random() % uint64_t(vocab)));
    return ids;
}

class Bench {
public:
    Bench(Engine& engine, const Work& work) : m_engine(engine), m_work(work) {}

    void set(KnobId id, int64_t value) {
        m_engine.setKnob(id, value);
        // Immediate when idle, except for the evictions of a shrink.
        for (int i = 0; i < 200; ++i) {
            const KnobState s = m_engine.knobState(id);
            if (s.effective == s.requested) return;
            usleep(5000);
        }
    }

    // `users` users send one request after another, until `requests` are done.
    Figures run(int users, int requests, uint64_t seed) {
        Figures f;
        const StoreStats before = m_engine.store().stats();
        const BatchStats batchesBefore = m_engine.batchStats();
        const uint64_t start = monotonicNs();
        std::mutex mutex;
        std::vector<std::thread> threads;
        for (int u = 0; u < users; ++u) {
            threads.emplace_back([&, u] {
                for (int r = u; r < requests; r += users) {
                    const uint64_t sent = monotonicNs();
                    const RequestResult result = one(seed + uint64_t(r));
                    std::lock_guard lock(mutex);
                    f.whole.add(monotonicNs() - sent);
                    for (const double ms : result.gapsMs) f.itl.add(uint64_t(ms * 1e6));
                    f.tokens += result.tokens.size();
                }
            });
        }
        for (std::thread& t : threads) t.join();
        f.seconds = double(monotonicNs() - start) * 1e-9;
        f.experts = difference(m_engine.store().stats(), before);
        const BatchStats batches = m_engine.batchStats();
        const uint64_t steps = batches.steps - batchesBefore.steps;
        f.meanBatch = steps ? double(batches.requests - batchesBefore.requests) / double(steps) : 0;
        return f;
    }

    // Runs twice, the first time without measuring, so that the prompts are cached in every row.
    Figures alone() {
        run(1, 3, 100);
        return run(1, 3, 100);
    }
    Figures crowd() {
        run(m_work.users, m_work.users, 1);
        return run(m_work.users, m_work.requests, 100);
    }

private:
    RequestResult one(uint64_t seed) {
        Request request;
        request.prompt = randomPrompt(m_engine.info().config.vocabSize, 16, seed);
        request.maxTokens = m_work.tokens;
        request.ignoreEos = true;
        request.sampling.temperature = 1;
        request.sampling.seed = seed;
        std::mutex mutex;
        std::condition_variable ended;
        bool done = false;
        RequestResult result;
        RequestCallbacks callbacks;
        callbacks.onDone = [&](RequestResult r) {
            std::lock_guard lock(mutex);
            result = std::move(r);
            done = true;
            ended.notify_one();
        };
        const auto id = m_engine.submit(std::move(request), std::move(callbacks));
        if (!id.ok()) stop(id.status());
        std::unique_lock lock(mutex);
        ended.wait(lock, [&] { return done; });
        if (!result.status.ok()) stop(result.status);
        return result;
    }

    Engine& m_engine;
    const Work m_work;
};

double ms(double ns) {
    return ns * 1e-6;
}

std::string percentile(const Histogram& h, double q) {
    if (double(h.count()) * (1 - q) < 1) return "n/a";
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", ms(h.quantile(q)));
    return text;
}

void cacheTable(Bench& bench, Engine& engine) {
    std::printf("\nexperts/layer   miss %%   ITL P50 ms   P99 ms    tok/s   cache MiB\n");
    const int64_t k = engine.info().config.topK, all = engine.info().config.numExperts;
    const int64_t before = engine.knobState(KnobId::ExpertCacheSize).effective;
    for (const int64_t size : std::set<int64_t>{k, 3 * k / 2, 2 * k, 3 * k, 4 * k, 6 * k, all}) {
        if (size > all) continue;
        bench.set(KnobId::ExpertCacheSize, size);
        const Figures f = bench.alone();
        std::printf("%13lld %8.1f %12s %8s %8.1f %11.1f\n", (long long)size,
                    100 * (1 - f.hitRate()), percentile(f.itl, 0.5).c_str(),
                    percentile(f.itl, 0.99).c_str(), f.rate(),
                    double(engine.store().stats().slotBytes) / 1048576);
    }
    bench.set(KnobId::ExpertCacheSize, before);
}

void batchTable(Bench& bench, const Work& work) {
    std::printf(
        "\nbatch timeout   mean batch   tok/s   request P50 ms     P99 ms   P99.9 ms     max ms   "
        "(%d requests of %d users)\n",
        work.requests, work.users);
    const auto row = [&](const char* name, int64_t timeout, int64_t rows) {
        bench.set(KnobId::MaxBatch, rows);
        bench.set(KnobId::BatchTimeout, timeout);
        const Figures f = bench.crowd();
        std::printf("%13s %12.2f %7.1f %16s %10s %10s %10.2f\n", name, f.meanBatch, f.rate(),
                    percentile(f.whole, 0.5).c_str(), percentile(f.whole, 0.99).c_str(),
                    percentile(f.whole, 0.999).c_str(), ms(double(f.whole.max())));
    };
    row("no batching", 0, 1);
    row("0 ms", 0, 8);
    row("5 ms", 5, 8);
    row("10 ms", 10, 8);
}

void prefetchTable(Bench& bench, Engine& engine, bool sizeGiven) {
    const int64_t size = 2 * engine.info().config.topK;
    if (!sizeGiven)
        bench.set(KnobId::ExpertCacheSize, std::min(size, engine.info().config.numExperts));
    std::printf(
        "\nprefetch threads   hit %%   useful   late   wasted   ITL P99 ms   tok/s   "
        "(%lld experts/layer)\n",
        (long long)engine.knobState(KnobId::ExpertCacheSize).effective);
    const int64_t source = engine.knobState(KnobId::PrefetchSource).requested;
    for (int64_t threads = 0; threads <= 4; ++threads) {
        bench.set(KnobId::PrefetchThreads, threads);
        const int64_t effective = engine.knobState(KnobId::PrefetchThreads).effective;
        if (effective != threads) {
            std::printf("%16lld   not here: %s\n", (long long)threads,
                        engine.knobState(KnobId::PrefetchThreads).reason.c_str());
            continue;
        }
        bench.set(KnobId::PrefetchSource, int64_t(PrefetchSource::Off));  // ends a pause
        bench.set(KnobId::PrefetchSource, source);
        const Figures f = bench.alone();
        const StoreStats& e = f.experts;
        std::printf("%16lld %7.1f %8llu %6llu %8llu %12s %7.1f   %s\n", (long long)threads,
                    100 * f.hitRate(), (unsigned long long)e.prefetchUseful,
                    (unsigned long long)e.prefetchLate, (unsigned long long)e.prefetchWasted,
                    percentile(f.itl, 0.99).c_str(), f.rate(),
                    engine.knobState(KnobId::PrefetchSource).reason.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr,
                     "usage: bench_tables MODEL [KNOB=VALUE ...] [tokens=N] [users=N] "
                     "[requests=N]\n");
        return 2;
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // prints each row immediately, also to a file
    EngineOptions options;
    options.model = argv[1];
    const Result<ContainerInfo> info = openContainer(options.model);
    if (!info.ok()) stop(info.status());
    Work work;
    const std::map<std::string, int*> sizes = {
        {"tokens", &work.tokens}, {"users", &work.users}, {"requests", &work.requests}};
    for (int i = 2; i < argc; ++i) {
        const char* equals = std::strchr(argv[i], '=');
        const std::string name(argv[i], equals ? size_t(equals - argv[i]) : std::strlen(argv[i]));
        const std::string value = equals ? equals + 1 : "";
        if (const auto size = sizes.find(name); size != sizes.end()) {
            *size->second = std::max(1, std::atoi(value.c_str()));
            continue;
        }
        const KnobRow* row = findKnob(name);
        if (!row) stop({Code::InvalidArgument, "no knob \"" + name + "\""});
        const Result<int64_t> parsed = parseKnobValue(*row, value, knobLimitsFor(row->id, *info));
        if (!parsed.ok()) stop(parsed.status());
        options.knobs[size_t(row->id)] = *parsed;
    }
    const Result<std::unique_ptr<Engine>> loaded = Engine::load(options, {}, nullptr);
    if (!loaded.ok()) stop(loaded.status());
    Engine& engine = **loaded;
    std::printf("%s, %s, %s; %d tokens a request\n", engine.info().config.name.c_str(),
                std::string(isaName(engine.isa())).c_str(), engine.store().readPath().c_str(),
                work.tokens);
    Bench bench(engine, work);
    cacheTable(bench, engine);
    batchTable(bench, work);
    prefetchTable(bench, engine, options.knobs[size_t(KnobId::ExpertCacheSize)].has_value());
}
