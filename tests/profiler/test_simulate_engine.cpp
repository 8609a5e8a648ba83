// SPDX-License-Identifier: GPL-3.0-or-later
// The simulation of a recorded session against the hit rates that the engine then measures.
#include <QTemporaryDir>
#include <QtTest>

#include "profiler/record/recorder.h"
#include "profiler/session/sqlite.h"
#include "profiler/simulate/simulator.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

const fs::path kDemo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
constexpr int kTokens = 60;
constexpr CachePolicyKind kPolicies[] = {CachePolicyKind::Lru, CachePolicyKind::Slru,
                                         CachePolicyKind::Lfru};
constexpr const char* kNames[] = {"lru", "slru", "lfru"};

std::vector<std::vector<int32_t>> prompts(const Engine& engine) {
    std::vector<std::vector<int32_t>> out;
    for (const char* text : {"What is an expert cache?", "Tell me a story about a small bird.",
                             "Hello", "Why is the disk slow?", "Write a list of five colours."}) {
        nlohmann::ordered_json messages = nlohmann::ordered_json::array();
        messages.push_back({{"role", "user"}, {"content", text}});
        out.push_back(*engine.encodeChat(messages));
    }
    return out;
}

struct Measured {
    double hitRate = 0;
    uint64_t lookups = 0;
    double decodeTokS = 0;
};

// A new engine answers the prompts, one after the other or all at once. Records if `session` is
// not empty.
Measured measure(const fs::path& session, CachePolicyKind policy, int64_t cacheSize,
                 PrefetchSource prefetch = PrefetchSource::Off, bool atOnce = false,
                 int64_t linkLimit = 0) {
    const auto engine = load(kDemo, {{KnobId::ExpertCacheSize, cacheSize},
                                     {KnobId::CachePolicy, int64_t(policy)},
                                     {KnobId::PrefetchSource, int64_t(prefetch)},
                                     {KnobId::LinkLimit, linkLimit},
                                     {KnobId::MaxBatch, atOnce ? 4 : 1},
                                     {KnobId::ComputeThreads, 1}});
    std::unique_ptr<Recorder> recorder;
    if (!session.empty()) recorder = std::move(*Recorder::start(*engine, {.sessionFile = session}));
    std::vector<std::unique_ptr<Pending>> pending;
    double gaps = 0, ms = 0;
    const auto end = [&] {
        for (auto& request : pending)
            for (const double gap : request->wait().gapsMs) {
                ++gaps;
                ms += gap;
            }
        pending.clear();
    };
    for (const std::vector<int32_t>& prompt : prompts(*engine)) {
        pending.push_back(std::make_unique<Pending>(*engine, greedyRequest(prompt, kTokens)));
        if (!atOnce) end();
    }
    end();
    if (recorder && !recorder->finish().ok()) return {};
    const StoreStats stats = engine->store().stats();
    return {double(stats.hits) / double(stats.lookups), stats.lookups, 1000 * gaps / ms};
}

const std::vector<CurvePoint>& curveOf(const Simulation& s, CachePolicyKind policy) {
    return policy == CachePolicyKind::Slru   ? s.slru
           : policy == CachePolicyKind::Lfru ? s.lfru
                                             : s.lru;
}

}  // namespace

class TestSimulateEngine : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const QString& name) {
        return fs::path(m_dir.path().toStdString()) / (name + ".colibri-session").toStdString();
    }

private slots:
    // One session, recorded with a prefetching lru cache, predicts every other setting.
    void hitRatesAreThoseOfTheEngine() {
        const Measured recorded =
            measure(file("one"), CachePolicyKind::Lru, 8, PrefetchSource::NextRouter);
        const Result<Simulation> s = simulateSession(file("one"), {});
        QVERIFY2(s.ok(), s.status().text().c_str());
        QCOMPARE(s->lookups, recorded.lookups);
        QCOMPARE(s->recorded.cacheSize, 8);
        QCOMPARE(s->recorded.policy, std::string("lru"));
        QCOMPARE(s->recorded.prefetchSource, std::string("next_router"));
        QCOMPARE(s->recorded.hitRate, recorded.hitRate);
        QCOMPARE(s->lru.size(), size_t(32));
        QCOMPARE(s->samplingError, 0.0);
        double worst = 0;
        for (const CachePolicyKind policy : kPolicies) {
            for (const int64_t size : {1, 2, 4, 6, 8, 12, 16, 24, 32}) {
                const Measured real = measure({}, policy, size);
                QCOMPARE(real.lookups, s->lookups);
                const CurvePoint& point = curveOf(*s, policy)[size_t(size) - 1];
                QCOMPARE(point.cacheSize, size);
                const double off = point.hitRate - real.hitRate;
                qInfo("%s, size %2lld: simulated %.3f %%, measured %.3f %%", kNames[size_t(policy)],
                      (long long)size, 100 * point.hitRate, 100 * real.hitRate);
                QVERIFY2(std::abs(off) <= 0.01, qPrintable(QString::number(off)));
                worst = std::max(worst, std::abs(off));
                const CurvePoint& best = s->belady[size_t(size) - 1];
                QVERIFY(best.hitRate >= point.hitRate);
            }
        }
        qInfo("largest difference: %.4f percentage points", 100 * worst);
    }
    // Batches of several requests: a session predicts its own hits exactly.
    void batchesAreReplayedExactly() {
        for (const CachePolicyKind policy : kPolicies) {
            const QString name = QString("batch-%1").arg(int(policy));
            const Measured real = measure(file(name), policy, 10, PrefetchSource::Off, true);
            const Result<Simulation> s = simulateSession(file(name), {});
            QVERIFY2(s.ok(), s.status().text().c_str());
            QCOMPARE(s->lookups, real.lookups);
            const double simulated = curveOf(*s, policy)[9].hitRate;
            QVERIFY2(std::abs(simulated - real.hitRate) < 1e-12,
                     qPrintable(QString("%1 %2").arg(simulated).arg(real.hitRate)));
        }
    }
    void sampleOfTheSameSession() {
        SimulateOptions options;
        const Result<Simulation> exact = simulateSession(file("one"), options);
        QVERIFY(exact.ok());
        options.mostLookups = int64_t(exact->lookups / 2);
        const Result<Simulation> sampled = simulateSession(file("one"), options);
        QVERIFY(sampled.ok());
        QCOMPARE(sampled->lookups, exact->lookups);
        QVERIFY(sampled->samplingRate >= 0.5 && sampled->samplingRate < 0.6);
        QVERIFY(sampled->samplingError > 0);
        double off = 0;
        for (size_t i = 0; i < exact->lru.size(); ++i) {
            QCOMPARE(sampled->lru[i].hitRate, exact->lru[i].hitRate);  // still from all lookups
            for (const auto curve : {&Simulation::slru, &Simulation::lfru, &Simulation::belady})
                off = std::max(
                    off, std::abs(((*exact).*curve)[i].hitRate - ((*sampled).*curve)[i].hitRate));
        }
        qInfo("off by %.4f, stated %.4f", off, sampled->samplingError);
        QVERIFY(off <= sampled->samplingError);
    }
    // On a slow link the reads dominate, so rates differ much between sizes. Prints the figures;
    // the machine's load decides how close they are.
    void ratesAreNearThoseOfTheEngine() {
        const fs::path session = file("slow");
        (void)measure(session, CachePolicyKind::Lru, 8, PrefetchSource::Off, false, 200);
        const Result<Simulation> s = simulateSession(session, {});
        QVERIFY(s.ok());
        QVERIFY2(s->noDecodeRate.empty(), s->noDecodeRate.c_str());
        for (const int64_t size : {4, 8, 16, 24}) {
            const Measured real =
                measure({}, CachePolicyKind::Lru, size, PrefetchSource::Off, false, 200);
            const DecodeRate& rate = s->lru[size_t(size) - 1].decode;
            qInfo("size %2lld: predicted %.1f (%.1f..%.1f) tok/s, measured %.1f", (long long)size,
                  rate.value, rate.low, rate.high, real.decodeTokS);
            QVERIFY(rate.low < rate.value && rate.value < rate.high);
        }
        QVERIFY(s->lru[23].decode.value > s->lru[3].decode.value);
    }
    void prefetchingIsSimulatedForTheRecordedPolicy() {
        const Result<Simulation> s = simulateSession(file("one"), {});
        QVERIFY(s.ok());
        QCOMPARE(s->prefetch.policy, std::string("lru"));
        QCOMPARE(s->prefetch.previousToken.size(), size_t(32));
        QCOMPARE(s->prefetch.recordedSource.size(), size_t(32));
        for (size_t i = 0; i < 32; ++i) {
            const PrefetchPoint& p = s->prefetch.previousToken[i];
            QCOMPARE(p.point.cacheSize, int64_t(i) + 1);
            QVERIFY(p.point.hitRate >= s->lru[i].hitRate - 0.05 && p.point.hitRate <= 1);
            QVERIFY(p.prefetchedShare <= p.point.hitRate + 1e-12);
            QVERIFY(s->prefetch.recordedSource[i].hitRate >= s->lru[i].hitRate);
        }
    }
    void denseModelsAreRefused() {
        const auto engine = load(goldenModel("llama"), {});
        auto recorder = std::move(*Recorder::start(*engine, {.sessionFile = file("dense")}));
        (void)generate(*engine, {1, 2, 3}, 4);
        QVERIFY(recorder->finish().ok());
        const Status status = simulateSession(file("dense"), {}).status();
        QCOMPARE(status.code(), Code::Unsupported);
        QVERIFY2(status.text().find("dense") != std::string::npos, status.text().c_str());
    }
    void damagedOrEmptySessionsAreRefused() {
        Status status = simulateSession(file("missing"), {}).status();
        QCOMPARE(status.code(), Code::BadInput);
        const auto engine = load(kDemo, {});
        QVERIFY((*Recorder::start(*engine, {.sessionFile = file("empty")}))->finish().ok());
        status = simulateSession(file("empty"), {}).status();
        QCOMPARE(status.code(), Code::BadInput);
        QVERIFY2(status.text().find("no routing") != std::string::npos, status.text().c_str());
        QFile text(QString::fromStdString(file("text").string()));
        QVERIFY(text.open(QIODevice::WriteOnly) && text.write(QByteArray(5000, 'x')) == 5000);
        text.close();
        QCOMPARE(simulateSession(file("text"), {}).status().code(), Code::BadInput);
        // An expert that the model does not have, and an entry that is cut off.
        for (const char* routing : {"zeroblob(12) || x'01' || x'ffff01'", "zeroblob(14)",
                                    "substr(routing, 1, length(routing) - 1)"}) {
            const fs::path damaged = file("damaged");
            fs::copy_file(file("one"), damaged, fs::copy_options::overwrite_existing);
            sqlite3* handle = nullptr;
            QCOMPARE(sqlite3_open(damaged.c_str(), &handle), SQLITE_OK);
            const SqliteDb db(handle);
            const std::string sql = "UPDATE layer_steps SET routing = CAST(" +
                                    std::string(routing) + " AS BLOB) WHERE rowid = 7";
            QCOMPARE(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
            status = simulateSession(damaged, {}).status();
            QCOMPARE(status.code(), Code::BadInput);
            QVERIFY2(status.text().find("row 7") != std::string::npos, status.text().c_str());
        }
    }
    void aCancelledSimulationEnds() {
        const CancelFlag cancel{true};
        QCOMPARE(simulateSession(file("one"), {}, {}, &cancel).status().code(), Code::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestSimulateEngine)
#include "test_simulate_engine.moc"
