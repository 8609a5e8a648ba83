// SPDX-License-Identifier: GPL-3.0-or-later
// Knobs of a running engine: every live knob takes effect, ranges are those of the knob table, and
// events report effective values.
#include <QtTest>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestEngineKnobs : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;

    static std::vector<Event> knobEvents(Engine& engine, KnobId id) {
        std::vector<Event> events, out;
        engine.telemetry().drain(events);
        for (const Event& event : events)
            if (event.type == EventType::KnobChanged && event.knob.knob == uint8_t(id))
                out.push_back(event);
        return out;
    }

private slots:
    void initTestCase() { m_model = randomModel(); }

    // A live knob without a row that applies it would keep its old value without a reason.
    void everyLiveKnobTakesEffect() {
        const auto engine = load(m_model);
        for (const KnobRow& row : knobTable()) {
            const KnobLimits limits = engine->knobLimits(row.id);
            const int64_t now = engine->knobState(row.id).effective;
            const int64_t other = now == limits.max ? limits.min : limits.max;
            const KnobState state = engine->applyKnob(row.id, other);
            QCOMPARE(state.requested, other);
            const bool isEffective = state.effective == other;
            QVERIFY2(isEffective || !state.reason.empty(), row.name);
            if (!row.live && other != now) QVERIFY2(!isEffective, row.name);
        }
    }
    void valuesOutOfRangeSayTheRange() {
        const auto engine = load(m_model);
        for (const KnobRow& row : knobTable()) {
            if (!row.live || !row.choices.empty()) continue;
            const KnobLimits limits = engine->knobLimits(row.id);
            if (row.id == KnobId::NumaNode && limits.max == 0)
                continue;  // with one node it has a reason
            for (const int64_t value : {limits.min - 1, limits.max + 1}) {
                const KnobState state = engine->applyKnob(row.id, value);
                QCOMPARE(state.requested, value);
                QCOMPARE(state.effective, value < limits.min ? limits.min : limits.max);
                QVERIFY2(state.reason.find("allowed range is ") == 0, state.reason.c_str());
            }
        }
    }
    void eachChangeIsOneEvent() {
        const auto engine = load(m_model);
        (void)knobEvents(*engine, KnobId::IoDepth);
        engine->applyKnob(KnobId::IoDepth, 3);
        engine->applyKnob(KnobId::IoDepth, 5);
        const std::vector<Event> events = knobEvents(*engine, KnobId::IoDepth);
        QCOMPARE(events.size(), size_t(2));
        QCOMPARE(events[1].knob.requested, int64_t(5));
        QCOMPARE(events[1].knob.effective, int64_t(5));
    }
    // Prefetching pauses itself, which changes the effective value without a request. This model is
    // so small that most prefetches are late.
    void aPauseOfPrefetchingIsAnEventOfTheKnob() {
        RandomShape shape;
        shape.experts = 32;
        const auto engine = load(randomModel(shape), {{KnobId::ExpertCacheSize, 8},
                                                      {KnobId::PrefetchSource, 3},
                                                      {KnobId::PrefetchDepth, 4},
                                                      {KnobId::PrefetchThreads, 1}});
        (void)knobEvents(*engine, KnobId::PrefetchSource);
        std::vector<Event> events;
        for (int round = 0; round < 60 && events.empty(); ++round) {
            Request request = greedyRequest(somePrompt(8, 300), 64);
            request.ignoreEos = true;
            request.sampling.temperature = 1.5f;
            request.sampling.seed = uint64_t(round);
            Pending(*engine, std::move(request)).wait();
            events = knobEvents(*engine, KnobId::PrefetchSource);
        }
        QVERIFY2(!events.empty(), "prefetching never paused");
        QCOMPARE(events[0].knob.requested, int64_t(PrefetchSource::NextRouter));
        QCOMPARE(events[0].knob.effective, int64_t(PrefetchSource::Off));
        QVERIFY2(QByteArray(events[0].knob.reason).startsWith("backed off: "),
                 events[0].knob.reason);
    }
};

QTEST_GUILESS_MAIN(TestEngineKnobs)
#include "test_engine_knobs.moc"
