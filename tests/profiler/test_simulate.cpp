// SPDX-License-Identifier: GPL-3.0-or-later
// The cache simulations with traces whose hits are known, or counted by brute force.
#include <QtTest>
#include <map>
#include <random>
#include <set>

#include "profiler/simulate/belady.h"
#include "profiler/simulate/lru_curve.h"
#include "profiler/simulate/policy_replay.h"
#include "profiler/simulate/prefetch_replay.h"
#include "profiler/simulate/simulator.h"

using namespace colibri;

namespace {

using Requests = std::vector<std::vector<uint16_t>>;  // of one layer, or of all in turn

struct Made {
    Made(int64_t layers, int64_t experts, double rate = 1)
        : sample(layers, experts, rate), trace(layers, experts, sample) {}
    KeySample sample;
    RoutingTrace trace;
};

std::unique_ptr<Made> made(int64_t layers, int64_t experts, const Requests& requests,
                           double rate = 1) {
    auto out = std::make_unique<Made>(layers, experts, rate);
    for (size_t i = 0; i < requests.size(); ++i)
        out->trace.addRequest(int64_t(i) % layers, requests[i]);
    return out;
}

// Random requests of 1..most distinct experts, some experts more often than others.
Requests randomRequests(std::mt19937& random, size_t count, int64_t experts, size_t most) {
    Requests out(count);
    for (auto& request : out) {
        const size_t size = 1 + random() % most;
        while (request.size() < size) {
            const auto expert =
                uint16_t(std::min(random() % size_t(experts), random() % size_t(experts)));
            if (std::find(request.begin(), request.end(), expert) == request.end())
                request.push_back(expert);
        }
    }
    return out;
}

// The store's rule with a plain list, coldest first.
uint64_t plainLruMisses(const RoutingTrace& trace, size_t slotCount) {
    std::vector<uint32_t> list;
    uint64_t misses = 0;
    for (size_t r = 0; r < trace.requests(); ++r) {
        const auto keys = trace.request(r);
        for (const uint32_t key : keys)
            misses += std::find(list.begin(), list.end(), key) == list.end();
        for (const uint32_t key : keys) {
            const auto at = std::find(list.begin(), list.end(), key);
            if (at != list.end()) {
                list.erase(at);
            } else if (list.size() == slotCount) {
                list.erase(std::find_if(list.begin(), list.end(), [&](uint32_t other) {
                    return std::find(keys.begin(), keys.end(), other) == keys.end();
                }));
            }
            list.push_back(key);
        }
    }
    return misses;
}

// The fewest misses of any replacement, by trying all of them. For traces of single lookups.
uint64_t fewestMisses(const std::vector<uint32_t>& keys, size_t slotCount) {
    std::map<std::set<uint32_t>, uint64_t> states = {{{}, 0}};
    for (const uint32_t key : keys) {
        std::map<std::set<uint32_t>, uint64_t> next;
        const auto keep = [&](const std::set<uint32_t>& state, uint64_t misses) {
            const auto [it, isNew] = next.emplace(state, misses);
            if (!isNew) it->second = std::min(it->second, misses);
        };
        for (const auto& [state, misses] : states) {
            if (state.contains(key)) {
                keep(state, misses);
                continue;
            }
            std::set<uint32_t> with = state;
            with.insert(key);
            if (with.size() <= slotCount) {
                keep(with, misses + 1);
                continue;
            }
            for (const uint32_t victim : state) {
                std::set<uint32_t> without = with;
                without.erase(victim);
                keep(without, misses + 1);
            }
        }
        states = std::move(next);
    }
    uint64_t best = UINT64_MAX;
    for (const auto& [state, misses] : states) best = std::min(best, misses);
    return best;
}

// Steps of `layers` requests of `topK` experts, chosen with weights 1 / rank ^ 0.8 in each layer.
Requests zipf(int64_t layers, int64_t experts, size_t topK, size_t steps, uint32_t seed) {
    std::vector<double> weights;
    for (int64_t i = 1; i <= experts; ++i) weights.push_back(std::pow(double(i), -0.8));
    std::mt19937 random(seed);
    std::discrete_distribution<size_t> draw(weights.begin(), weights.end());
    const std::vector<uint16_t> none(size_t(experts), 0);
    std::vector<std::vector<uint16_t>> byRank(size_t(layers), none);
    for (auto& names : byRank) {
        for (size_t i = 0; i < names.size(); ++i) names[i] = uint16_t(i);
        std::shuffle(names.begin(), names.end(), random);
    }
    Requests out;
    for (size_t i = 0; i < steps * size_t(layers); ++i) {
        std::vector<uint16_t>& request = out.emplace_back();
        while (request.size() < topK) {
            const uint16_t expert = byRank[i % size_t(layers)][draw(random)];
            if (std::find(request.begin(), request.end(), expert) == request.end())
                request.push_back(expert);
        }
    }
    return out;
}

std::vector<double> lruRates(const RoutingTrace& trace, double* error = nullptr) {
    std::vector<double> rates;
    for (const CurvePoint& point : simulateLru(trace, nullptr, error))
        rates.push_back(point.hitRate);
    return rates;
}

}  // namespace

class TestSimulate : public QObject {
    Q_OBJECT
private slots:
    // LRU never hits in a scan that is longer than the cache; the optimum keeps slots - 1 of the n
    // keys, and hits slots - 1 of n - 1 lookups.
    void cyclicScan() {
        const int64_t experts = 10;
        Requests requests;
        for (int round = 0; round < 1000; ++round)
            for (uint16_t e = 0; e < experts; ++e) requests.push_back({e});
        const auto scan = made(1, experts, requests);
        const std::vector<double> lru = lruRates(scan->trace);
        for (int64_t size = 1; size < experts; ++size) {
            QCOMPARE(lru[size_t(size) - 1], 0.0);
            const double best = simulateBelady(scan->trace, {size}, nullptr)[0].hitRate;
            QVERIFY(std::abs(best - double(size - 1) / double(experts - 1)) < 0.002);
        }
        QCOMPARE(lru.back(), 1 - 10.0 / 10000);
    }
    void distancesAgreeWithAPlainList() {
        std::mt19937 random(1);
        for (int round = 0; round < 50; ++round) {
            const auto layers = int64_t(1 + random() % 3), experts = int64_t(4 + random() % 12);
            const size_t most = 1 + random() % 4;
            const auto m = made(layers, experts, randomRequests(random, 300, experts, most));
            const std::vector<double> rates = lruRates(m->trace);
            for (int64_t size = 1; size <= experts; ++size) {
                if (size * layers < int64_t(m->trace.largestRequest())) continue;
                const auto misses = double(plainLruMisses(m->trace, size_t(size * layers)));
                QCOMPARE(rates[size_t(size) - 1], 1 - misses / double(m->trace.lookups()));
                QCOMPARE(simulatePolicy(m->trace, CachePolicyKind::Lru, size, nullptr).hitRate,
                         rates[size_t(size) - 1]);
            }
        }
    }
    void optimumAgreesWithTryingEverything() {
        std::mt19937 random(2);
        for (int round = 0; round < 60; ++round) {
            const int64_t experts = 6;
            const auto m = made(1, experts, randomRequests(random, 40, experts, 1));
            const Belady belady(m->trace);
            for (int64_t slotCount = 1; slotCount <= experts; ++slotCount)
                QCOMPARE(belady.replay(slotCount),
                         fewestMisses(m->trace.keys(), size_t(slotCount)));
        }
    }
    void noPolicyBeatsTheOptimum() {
        std::mt19937 random(3);
        for (int round = 0; round < 20; ++round) {
            const auto m = made(2, 16, randomRequests(random, 600, 16, 6));
            for (int64_t size = 1; size <= 16; ++size) {
                const double best = simulateBelady(m->trace, {size}, nullptr)[0].hitRate;
                for (const auto policy :
                     {CachePolicyKind::Lru, CachePolicyKind::Slru, CachePolicyKind::Lfru})
                    QVERIFY(simulatePolicy(m->trace, policy, size, nullptr).hitRate <=
                            best + 1e-12);
            }
        }
    }
    // Two hot experts, and a scan between their uses that flushes an lru cache. lfru counts uses.
    void policiesDiffer() {
        Requests requests;
        for (int round = 0; round < 2000; ++round) {
            requests.push_back({0, 1});
            for (int i = 0; i < 2; ++i) {
                const auto scanned = uint16_t(2 + (2 * (2 * round + i)) % 14);
                requests.push_back({scanned, uint16_t(scanned + 1)});
            }
        }
        const auto m = made(1, 16, requests);
        const double lru = simulatePolicy(m->trace, CachePolicyKind::Lru, 4, nullptr).hitRate;
        const double lfru = simulatePolicy(m->trace, CachePolicyKind::Lfru, 4, nullptr).hitRate;
        QVERIFY2(lru < 0.01, qPrintable(QString::number(lru)));
        QVERIFY2(lfru > 0.1, qPrintable(QString::number(lfru)));
    }
    // The curve can be read after each request.
    void curveGrowsWithTheRequests() {
        const KeySample all(1, 4, 1);
        LruCurve curve(1, 4, all);
        QVERIFY(std::isnan(curve.hitRates()[0]));
        const std::vector<uint32_t> a = {0, 1}, b = {1, 2};
        (void)curve.add(a);
        QCOMPARE(curve.hitRates()[3], 0.0);
        (void)curve.add(b);
        QCOMPARE(curve.hitRates()[0], 0.25);  // 1 was the last one used
        (void)curve.add(a);
        QCOMPARE(curve.lookups(), uint64_t(6));
        for (size_t i = 0; i < 4; ++i)
            QCOMPARE(curve.hitRates()[i], double(std::min<size_t>(i + 1, 3)) / 6);
        QCOMPARE(curve.samplingError(), 0.0);
    }
    void preloadedExpertsHit() {
        Made m(1, 8);
        for (const int64_t expert : {5, 6, 7}) m.trace.addPreload(0, expert);  // 5 is the hottest
        for (const uint16_t expert : {5, 6, 7, 5}) m.trace.addRequest(0, std::vector{expert});
        const std::vector<double> lru = lruRates(m.trace);
        QCOMPARE(lru[0], 0.25);  // one slot has 5
        QCOMPARE(lru[2], 1.0);
        for (int64_t size = 1; size <= 8; ++size) {
            QCOMPARE(simulatePolicy(m.trace, CachePolicyKind::Lru, size, nullptr).hitRate,
                     lru[size_t(size) - 1]);
            QVERIFY(simulateBelady(m.trace, {size}, nullptr)[0].hitRate >= lru[size_t(size) - 1]);
        }
    }
    // The error of a sample is within its estimate.
    void sampledCurveIsWithinItsError() {
        constexpr int64_t kLayers = 24, kExperts = 64;
        int runs = 0, within = 0;
        double worst = 0;
        for (uint32_t seed = 1; seed <= 4; ++seed) {
            const Requests requests = zipf(kLayers, kExperts, 4, 300, seed);
            const std::vector<double> exact = lruRates(made(kLayers, kExperts, requests)->trace);
            for (const double rate : {0.1, 0.25, 0.5}) {
                double stated = 0, off = 0;
                const auto m = made(kLayers, kExperts, requests, rate);
                QCOMPARE(m->trace.lookups(), uint64_t(kLayers * 4 * 300));
                const std::vector<double> sampled = lruRates(m->trace, &stated);
                for (size_t i = 0; i < exact.size(); ++i)
                    off = std::max(off, std::abs(exact[i] - sampled[i]));
                ++runs;
                within += off <= stated;
                worst = std::max(worst, off);
                qInfo("seed %u, rate %.2f: off by %.4f, stated %.4f", seed, rate, off, stated);
                QVERIFY(stated > 0 && stated < 0.3);
            }
        }
        QCOMPARE(within, runs);
        QVERIFY2(worst < 0.12, qPrintable(QString::number(worst)));
    }
    void sampledPoliciesAreClose() {
        const Requests requests = zipf(24, 64, 4, 300, 7);
        const auto whole = made(24, 64, requests), some = made(24, 64, requests, 0.5);
        for (const int64_t size : {8, 16, 32}) {
            for (const auto policy : {CachePolicyKind::Slru, CachePolicyKind::Lfru}) {
                const double off = simulatePolicy(some->trace, policy, size, nullptr).hitRate -
                                   simulatePolicy(whole->trace, policy, size, nullptr).hitRate;
                QVERIFY2(std::abs(off) < 0.08, qPrintable(QString::number(off)));
            }
        }
    }
    // 100 tokens, 10 ms each without waits; a miss costs 2 ms, two cost 3 ms.
    void ratesFollowFromMisses() {
        MissCost cost;
        for (int i = 0; i < 20; ++i) {
            cost.add(1, 2'000'000, 100);
            cost.add(2, 3'000'000, 100);
        }
        cost.finish(0);
        QCOMPARE(cost.costNs(0), 0.0);
        QCOMPARE(cost.costNs(1), 2e6);
        QCOMPARE(cost.costNs(2), 3e6);
        QCOMPARE(cost.costNs(4), 5e6);  // each further miss costs 1 ms
        const DecodeModel model(std::vector<StepTimes>(100, {1, 10e6, 0, 0}), cost);
        QVERIFY(model.unknownReason().empty());
        std::vector<double> none(model.blocks(), 0.0), some(model.blocks(), 0.0);
        QCOMPARE(model.rate(none).value, 100.0);
        for (uint32_t step = 0; step < 100; ++step) some[model.blockOf(step)] += 10e6;
        QCOMPARE(model.rate(some).value, 50.0);
        QVERIFY(std::abs(model.rate(some).low - 50) < 1e-9);  // all tokens are alike
        some[0] += 1e9;
        const DecodeRate uneven = model.rate(some);
        QVERIFY(uneven.low < uneven.value && uneven.value < uneven.high);
    }
    void ratesAreUnknownWithoutMisses() {
        MissCost none;
        none.finish(0);
        const DecodeModel model({{1, 1e6, 0, 0}}, none);
        QVERIFY(!model.unknownReason().empty());
        QVERIFY(std::isnan(model.rate(std::vector<double>(model.blocks())).value));
    }
    // Layers with misses compute longer: 0.2 ms, and 0.1 ms for each.
    void missesCostMoreThanTheirWait() {
        MissCost cost;
        for (int i = 0; i < 60; ++i) {
            const auto misses = uint64_t(i % 4);
            cost.add(int64_t(misses), misses * 1'000'000,
                     5'000'000 + (misses ? 200'000 + misses * 100'000 : 0));
        }
        cost.finish(0);
        QVERIFY(std::abs(cost.costNs(1) - 1.3e6) < 1);
        QVERIFY(std::abs(cost.costNs(3) - 3.5e6) < 1);
        QVERIFY(std::abs(cost.costNs(5) - 5.7e6) < 1);
        // A step of 10 ms with 3 misses in one layer takes 9.5 ms without them and their wait.
        const DecodeModel model(std::vector<StepTimes>(64, {1, 10e6, 1, 3}), cost);
        const std::vector<double> none(model.blocks(), 0.0);
        QVERIFY(std::abs(model.rate(none).value - 1e9 / 9.5e6) < 1e-6);
    }
    // The rest of a step is slower by 0.1 ms for each layer with misses.
    void waitsSlowTheRestDown() {
        MissCost cost;
        cost.add(1, 1'000'000, 0);
        cost.finish(0);
        std::vector<StepTimes> steps;
        for (int i = 0; i < 64; ++i) steps.push_back({1, 10e6 + 0.1e6 * (i % 4), i % 4, i % 4});
        const DecodeModel model(steps, cost);
        QVERIFY(std::abs(model.cost().costNs(1) - 1.1e6) < 1);
        const std::vector<double> none(model.blocks(), 0.0);
        QVERIFY(std::abs(model.rate(none).value - 100) < 1e-6);
    }
    void prefetchedExpertsHitOnce() {
        PrefetchReplay replay(CachePolicyKind::Lru, PrefetchSource::PreviousToken, 2, 8, 8);
        const std::vector<uint32_t> first = {0, 1}, hints = {10, 11, 12}, second = {10, 9};
        QCOMPARE(replay.request(0, first), 2);
        QCOMPARE(replay.prefetch(hints, 5, 1000), 2);  // at most a quarter of 8 slots
        QVERIFY(replay.contains(10) && replay.contains(11) && !replay.contains(12));
        QCOMPARE(replay.request(1, second), 1);
        QCOMPARE(replay.prefetched(), uint64_t(1));
        QCOMPARE(replay.request(1, second), 0);
        QCOMPARE(replay.prefetched(), uint64_t(1));
        QCOMPARE(replay.reads(), uint64_t(2));
    }
    // An unused prefetch becomes the coldest expert when its layer has passed.
    void unusedPrefetchesAreEvictedFirst() {
        PrefetchReplay replay(CachePolicyKind::Lru, PrefetchSource::PreviousToken, 2, 8, 4);
        const std::vector<uint32_t> a = {0, 1, 2}, hint = {8}, b = {9}, c = {3};
        (void)replay.request(0, a);
        QCOMPARE(replay.prefetch(hint, 1, 1000), 1);
        QCOMPARE(replay.request(1, b), 1);
        QVERIFY(!replay.contains(8));
        QVERIFY(replay.contains(0) && replay.contains(1) && replay.contains(2));
        (void)replay.request(0, c);
        QVERIFY(!replay.contains(0));
    }
    void everySizeOfASmallModelIsSimulated() {
        QCOMPARE(sizesToSimulate(32, {}).size(), size_t(32));
        const std::vector<int64_t> sizes = sizesToSimulate(256, {8, 100, 300});
        QCOMPARE(sizes.front(), 1);
        QCOMPARE(sizes.back(), 256);
        QVERIFY(sizes.size() < 40);
        QVERIFY(std::count(sizes.begin(), sizes.end(), 100) == 1);
    }
};

QTEST_GUILESS_MAIN(TestSimulate)
#include "test_simulate.moc"
