// SPDX-License-Identifier: GPL-3.0-or-later
// Data that the engine keeps between runs, and the placement of its threads and memory.
#include <QtTest>

#include "engine/base/file.h"
#include "engine/store/hot_list.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStartWork : public QObject {
    Q_OBJECT

    QTemporaryDir m_cache;

    static std::unique_ptr<Engine> open(bool warmStart, bool calibrate = false) {
        EngineOptions options{randomModel(), knobValues({{KnobId::ExpertCacheSize, 8}}), {}};
        options.warmStart = warmStart;
        options.calibrate = calibrate;
        auto engine = Engine::load(options, {}, nullptr);
        return engine.ok() ? std::move(*engine) : nullptr;
    }
    static std::vector<Event> notes(Engine& engine) {
        std::vector<Event> events;
        engine.telemetry().drain(events);
        // The phase in which slots are prepared ends at an arbitrary time.
        std::erase_if(events, [](const Event& e) {
            return e.type != EventType::Note ||
                   std::string_view(e.note.text).starts_with("memory for ");
        });
        return events;
    }

private slots:
    void initTestCase() {
        QVERIFY(m_cache.isValid());
        qputenv("XDG_CACHE_HOME", m_cache.path().toUtf8());
    }

    void secondStartIsWarmAndSaysTheSame() {
        const std::vector<int32_t> prompt = somePrompt(20, 300);
        auto engine = open(true);
        QVERIFY(engine != nullptr);
        const std::vector<int32_t> cold = test::generate(*engine, prompt, 12);
        QCOMPARE(engine->store().stats().warmReads, uint64_t(0));
        const auto path = hotListPath(engine->info());
        engine.reset();
        QVERIFY(std::filesystem::exists(path));

        engine = open(true);
        QTRY_COMPARE(engine->store().stats().slotsUsed, int64_t(32));  // filled without a request
        QCOMPARE(engine->store().stats().warmReads, uint64_t(32));
        QVERIFY(test::generate(*engine, prompt, 12) == cold);
        QVERIFY(engine->store().stats().hits > 0);
        engine = open(false);
        QVERIFY(test::generate(*engine, prompt, 12) == cold);
        QCOMPARE(engine->store().stats().warmReads, uint64_t(0));

        // A damaged list is reported and not used. At its end the engine writes a valid one.
        QVERIFY(writeFileAtomically(path, "nonsense").ok());
        engine = open(true);
        QVERIFY(engine != nullptr);
        QCOMPARE(notes(*engine).size(), size_t(1));
        QVERIFY(test::generate(*engine, prompt, 12) == cold);
        const ContainerInfo info = engine->info();
        engine.reset();
        QVERIFY(!readHotList(path, info)->empty());
    }

    void calibrationIsMeasuredOnce() {
        auto engine = open(false, true);
        QVERIFY(engine != nullptr);
        QVERIFY(engine->calibration().diskBytesPerSecond > 0);
        const double rate = engine->calibration().diskBytesPerSecond;
        engine = open(false, true);
        QCOMPARE(engine->calibration().diskBytesPerSecond, rate);  // read from the cache folder
        engine = open(false);
        QCOMPARE(engine->calibration().diskBytesPerSecond, 0.0);
        QVERIFY(!engine->calibration().reason.empty());
    }

    void numaAndCoresAnswer() {
        auto engine = open(false);
        engine->setKnob(KnobId::NumaMode, int64_t(NumaMode::Bind));
        engine->setKnob(KnobId::NumaNode, 999);
        const std::vector<int32_t> tokens = test::generate(*engine, somePrompt(20, 300), 8);
        const KnobState node = engine->knobState(KnobId::NumaNode);
        QCOMPARE(node.requested, int64_t(999));
        QVERIFY(node.effective <= engine->knobLimits(KnobId::NumaNode).max);
        QVERIFY(!node.reason.empty());
        const KnobState mode = engine->knobState(KnobId::NumaMode);
        QVERIFY(mode.effective == mode.requested || !mode.reason.empty());
        engine->setKnob(KnobId::NumaMode, int64_t(NumaMode::Off));
        QCOMPARE(engine->setPrefetchThreadCore(0, 0).requested, int64_t(0));
        QVERIFY(test::generate(*engine, somePrompt(20, 300), 8) == tokens);
        const KnobState core = engine->store().prefetchThreadCore(0);
        QVERIFY(core.effective == 0 || !core.reason.empty());
        QCOMPARE(engine->setPrefetchThreadCore(0, -1).effective, int64_t(-1));
    }

    void cacheBelowOneTokenIsNoted() {
        EngineOptions options{randomModel(), knobValues({{KnobId::ExpertCacheSize, 2}}), {}};
        auto engine = Engine::load(options, {}, nullptr);
        QVERIFY(engine.ok());
        QVERIFY(!(*engine)->store().warning().empty());
        QCOMPARE(notes(**engine).size(), size_t(1));
    }
};

QTEST_GUILESS_MAIN(TestStartWork)
#include "test_start_work.moc"
