// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <thread>

#include "engine/telemetry/telemetry.h"

using namespace colibri;

class TestTelemetry : public QObject {
    Q_OBJECT
private slots:
    void aFullRingDropsTheNewAndCounts() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine", 4);
        Event event{};
        event.type = EventType::Note;
        for (int i = 0; i < 6; ++i) QCOMPARE(ring->write(event), i < 4);
        QCOMPARE(telemetry.dropped(), 2);
        std::vector<Event> events;
        telemetry.drain(events);
        QCOMPARE(events.size(), 4);
        QVERIFY(ring->write(event));
        telemetry.drain(events);
        QCOMPARE(events.size(), 1);
        QCOMPARE(events[0].sequence, 4);  // dropped events have no number
    }
    void drainSortsByTimeOverRings() {
        Telemetry telemetry;
        EventRing* a = telemetry.addRing("a");
        EventRing* b = telemetry.addRing("b");
        Event event{};
        for (uint64_t t : {30, 10}) {
            event.timeNs = t;
            a->write(event);
            event.timeNs = t + 1;
            b->write(event);
        }
        std::vector<Event> events;
        telemetry.drain(events);
        QCOMPARE(events.size(), 4);
        for (size_t i = 1; i < events.size(); ++i) {
            QVERIFY(events[i - 1].timeNs <= events[i].timeNs);
        }
        QCOMPARE(events[0].thread, 0);
        QCOMPARE(events[1].thread, 1);
    }
    void offMeansNothingIsKeptOrCounted() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine", 2);
        telemetry.setEnabled(false);
        for (int i = 0; i < 10; ++i) QVERIFY(!ring->write(Event{}));
        QCOMPARE(telemetry.dropped(), 0);
        std::vector<Event> events;
        telemetry.drain(events);
        QVERIFY(events.empty());
    }
    void producerAndReaderTogetherLoseNothingUncounted() {
        Telemetry telemetry;
        constexpr uint64_t kCount = 200000;
        std::vector<std::thread> producers;
        for (int p = 0; p < 2; ++p) {
            EventRing* ring = telemetry.addRing("producer", 1024);
            producers.emplace_back([ring] {
                Event event{};
                event.type = EventType::Token;
                for (uint64_t i = 0; i < kCount; ++i) {
                    event.token.request = i;
                    ring->write(event);
                }
            });
        }
        uint64_t received = 0;
        uint64_t last[2] = {0, 0};
        std::vector<Event> events;
        const auto take = [&] {
            telemetry.drain(events);
            for (const Event& event : events) {
                QVERIFY(event.token.request + 1 > last[event.thread]);
                last[event.thread] = event.token.request + 1;
                ++received;
            }
        };
        while (received + telemetry.dropped() < 2 * kCount) take();
        for (auto& producer : producers) producer.join();
        take();
        QCOMPARE(received + telemetry.dropped(), 2 * kCount);
    }
};

QTEST_GUILESS_MAIN(TestTelemetry)
#include "test_telemetry.moc"
