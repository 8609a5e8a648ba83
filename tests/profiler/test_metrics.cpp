// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <array>
#include <cmath>

#include "profiler/metrics/metrics.h"
#include "tests/profiler/event_maker.h"

using namespace colibri;

namespace {

double last(const Snapshot& snapshot, SeriesId id) {
    const auto& y = snapshot.series[size_t(id)].y;
    return y.empty() ? std::nan("") : y.back();
}

}  // namespace

class TestMetrics : public QObject {
    Q_OBJECT
private slots:
    // Each counter of the GPU has its own source, so one may be missing.
    void gpuCountersAreSeries() {
        Metrics metrics(1, 8, {0});
        metrics.tick(0.1, 0, {.sm = 42, .dram = 17, .busy = 100});
        metrics.tick(0.2, 0, {.busy = 50, .noCounters = "older than Hopper"});
        Snapshot snapshot;
        metrics.fill(snapshot);
        const auto series = [&](SeriesId id) { return snapshot.series[size_t(id)]; };
        QCOMPARE(series(SeriesId::SmUtilisation).y, std::vector<double>{42});
        QCOMPARE(series(SeriesId::GpuDram).y, std::vector<double>{17});
        QCOMPARE(series(SeriesId::GpuBusy).y, (std::vector<double>{100, 50}));
        QCOMPARE(series(SeriesId::SmUtilisation).unavailable, "older than Hopper");
        QCOMPARE(series(SeriesId::GpuBusy).unavailable, "");
    }

    void hitRateCountsFirstTouchesOnly() {
        Metrics metrics(2, 8, {0, 2});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        Event step{};
        step.type = EventType::LayerStep;
        step.layerStep.layer = 2;
        step.layerStep.count = 4;
        step.layerStep.firstBits = 0b0111;  // an earlier row has used the fourth
        step.layerStep.hitBits = 0b1101;
        step.layerStep.prefetchBits = 0b0100;
        for (int i = 0; i < 4; ++i) step.layerStep.experts[i] = uint16_t(i);
        metrics.add(step, 1);
        metrics.tick(1.1, 1 << 30, GpuPoint::none("no NVIDIA driver"));
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::HitRate), 100.0 * 2 / 3);
        QCOMPARE(last(snapshot, SeriesId::PrefetchHitRate), 100.0 / 3);
        QCOMPARE(snapshot.figures.hitRate, 200.0 / 3);
        QCOMPARE(snapshot.heat.size(), 16);
        QVERIFY(snapshot.heat[8] > 0.8 && snapshot.heat[0] == 0);
        QCOMPARE(snapshot.series[size_t(SeriesId::SmUtilisation)].unavailable, "no NVIDIA driver");
        QVERIFY(snapshot.series[size_t(SeriesId::SmUtilisation)].y.empty());
        // Old values leave the window while the request runs.
        metrics.tick(12, 1 << 30, GpuPoint::none("no NVIDIA driver"));
        metrics.fill(snapshot);
        QVERIFY(std::isnan(snapshot.figures.hitRate));
    }
    void idleIsAGapNotAStaleValue() {
        Metrics metrics(1, 4, {0});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        metrics.add(tokenEvent(20'000'000), 0.5);
        metrics.tick(0.6, 0, GpuPoint::none("none"));
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(std::round(last(snapshot, SeriesId::TokensPerSecond)), 50.0);
        QCOMPARE(snapshot.figures.stallShare, 25.0);
        metrics.add(requestEvent(EventType::RequestDone, 1), 0.7);
        metrics.tick(0.8, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QVERIFY(std::isnan(last(snapshot, SeriesId::TokensPerSecond)));
        QCOMPARE(snapshot.markers.size(), 2);
        QVERIFY(snapshot.markers[1].kind == Marker::Kind::TurnEnd);
        QCOMPARE(snapshot.markers[1].label, "turn 1");
    }
    // The card above a plot and the last value in its legend are equal.
    void theFiguresAreThoseOfTheLastPoint() {
        Metrics metrics(1, 4, {0});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        for (int i = 0; i < 30; ++i) metrics.add(tokenEvent(20'000'000), 0.02 * i);
        metrics.tick(0.7, 0, GpuPoint::none("none"));
        metrics.add(tokenEvent(90'000'000), 0.72);
        metrics.add(requestEvent(EventType::RequestDone, 1), 0.72);
        Snapshot snapshot;
        for (const double t : {0.75, 5.0, 10.5}) {  // some gaps have left the window
            metrics.tick(t, 0, GpuPoint::none("none"));
            metrics.fill(snapshot);
            QCOMPARE(snapshot.figures.itlCount, uint64_t(30));
            QCOMPARE(double(snapshot.figures.itlCount), snapshot.itlCount.y[0]);
            QCOMPARE(snapshot.figures.itlP99Ms, snapshot.series[size_t(SeriesId::ItlP99)].y[0]);
        }
    }
    // Results are read after the reply has ended, so they stay until the next one.
    void theFiguresOfTheLastReplyAreNotForgotten() {
        Metrics metrics(1, 4, {0});
        Snapshot snapshot;
        metrics.tick(0.1, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(snapshot.turns, 0);
        QVERIFY(std::isnan(snapshot.figures.decodeTokS));
        metrics.add(requestEvent(EventType::RequestArrived, 1), 1);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 1);
        Event read{};
        read.type = EventType::ExpertRead;
        read.expertRead.bytes = 5'000'000;
        read.expertRead.needNs = 4'000'000;
        metrics.add(read, 1.4);
        for (int i = 0; i < 30; ++i) metrics.add(tokenEvent(20'000'000), 1 + 0.02 * i);
        metrics.tick(1.6, 0, GpuPoint::none("none"));
        metrics.add(requestEvent(EventType::RequestDone, 1), 1.62);
        for (const double t : {1.65, 12.0, 3600.0}) {
            metrics.tick(t, 0, GpuPoint::none("none"));
            metrics.fill(snapshot);
            QCOMPARE(snapshot.running, 0);
            QCOMPARE(snapshot.turns, 1);
            QCOMPARE(snapshot.figuresAt, 1.6);
            QCOMPARE(std::round(snapshot.figures.decodeTokS), 50.0);
            QCOMPARE(snapshot.figures.allTokS, 15.0);  // 30 tokens in a window of 2 s
            QCOMPARE(snapshot.figures.itlCount, uint64_t(30));
            QCOMPARE(snapshot.figures.readBytesPerS, 5e6);
            QCOMPARE(snapshot.lastActivity, 1.62);
        }
        QCOMPARE(snapshot.readNowBytesPerS, 0.0);
        // A request that starts and ends between two ticks counts as well.
        metrics.add(requestEvent(EventType::RequestArrived, 2), 3601);
        metrics.add(requestEvent(EventType::RequestAdmitted, 2), 3601);
        for (int i = 0; i < 3; ++i) metrics.add(tokenEvent(1'000'000), 3601.001 + 0.001 * i);
        metrics.add(requestEvent(EventType::RequestDone, 2), 3601.005);
        metrics.tick(3601.02, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(snapshot.figures.itlCount, uint64_t(3));
    }
    // Hours after the last token no expert is hot, not even the hottest one.
    void expertsCoolDownWhenNobodyUsesThem() {
        Metrics metrics(1, 8, {0});
        Event step{};
        step.type = EventType::LayerStep;
        step.layerStep.count = 2;
        for (int i = 0; i < 2; ++i) step.layerStep.experts[i] = uint16_t(i);
        for (int i = 0; i < 100; ++i) metrics.add(step, 0.1);
        step.layerStep.count = 1;
        for (int i = 0; i < 100; ++i) metrics.add(step, 0.1);
        metrics.tick(0.2, 0, GpuPoint::none("none"));
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.heat[0], 1.0f);
        QVERIFY(std::abs(snapshot.heat[1] - 0.5f) < 0.01f);
        for (double t = 0.3; t < 90; t += 0.1) metrics.tick(t, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QVERIFY2(snapshot.heat[0] < 0.01f, qPrintable(QString::number(snapshot.heat[0])));
        for (double t = 90; t < 900; t += 0.5) metrics.tick(t, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        for (const float heat : snapshot.heat) QCOMPARE(heat, 0.0f);
    }
    // The process was stopped, or the machine was suspended.
    void aHoleInTheTicksIsAGap() {
        Metrics metrics(1, 4, {0});
        for (const double t : {0.5, 0.6, 9.0, 9.1})
            metrics.tick(t, 1 << 30, GpuPoint::none("none"));
        Snapshot snapshot;
        metrics.fill(snapshot);
        const SeriesData& memory = snapshot.series[size_t(SeriesId::MemoryGiB)];
        QCOMPARE(memory.y.size(), size_t(5));
        QVERIFY(std::isnan(memory.y[2]) && memory.t[2] < 9);
        QCOMPARE(memory.y[3], 1.0);
    }
    void batchesAndQueue() {
        Metrics metrics(1, 4, {0});
        const auto step = [&](double t, int requests) {
            Event event{};
            event.type = EventType::BatchFormed;
            event.batch.requests = uint16_t(requests);
            event.batch.rows = uint16_t(requests * 3);
            metrics.add(event, t);
        };
        Snapshot snapshot;
        for (uint64_t id = 1; id <= 3; ++id)
            metrics.add(requestEvent(EventType::RequestArrived, id), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        step(0.1, 1);
        step(0.2, 1);
        metrics.tick(0.3, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 2.0);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 1.0);
        step(0.4, 4);
        metrics.tick(0.5, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 2.0);  // from three steps
        step(2.3, 3);  // the two steps with one request have left the window
        metrics.tick(2.35, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 3.5);
        metrics.add(requestEvent(EventType::RequestDone, 1), 2.4);
        metrics.tick(2.5, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QVERIFY(std::isnan(last(snapshot, SeriesId::MeanBatch)));
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 2.0);
    }
    // Time lost to a preemption is not a wait for experts, and a preempted request counts as
    // waiting.
    void preemptionsAndReuseAreTold() {
        Metrics metrics(1, 8, {0});
        Snapshot snapshot;
        Event request = requestEvent(EventType::RequestArrived, 1);
        metrics.add(request, 0);
        request.type = EventType::RequestAdmitted;
        metrics.add(request, 0.1);
        request.type = EventType::RequestFirstToken;
        request.request.promptTokens = 200;
        request.request.cachedTokens = 150;
        metrics.add(request, 0.2);
        Event step = stepEvent(1);
        step.batch.kvHeld = 3;
        step.batch.kvKept = 5;
        step.batch.kvBlocks = 16;
        metrics.add(step, 0.3);
        request.type = EventType::RequestPreempted;
        metrics.add(request, 0.4);
        metrics.tick(0.5, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 1.0);
        QCOMPARE(last(snapshot, SeriesId::PromptReuse), 75.0);
        request.type = EventType::RequestResumed;
        metrics.add(request, 0.6);
        Event token = tokenEvent(400'000'000);
        token.token.preemptedNs = 300'000'000;
        token.token.memoryStallNs = token.token.stepNs / 10;
        metrics.add(token, 0.7);
        metrics.tick(0.8, 0, GpuPoint::none("none"));
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 0.0);
        QCOMPARE(last(snapshot, SeriesId::KvHeld), 18.75);
        QCOMPARE(last(snapshot, SeriesId::KvKept), 31.25);
        QCOMPARE(last(snapshot, SeriesId::PreemptedShare), 75.0);
        QCOMPARE(last(snapshot, SeriesId::StallShare), 25.0);
        QCOMPARE(last(snapshot, SeriesId::MemoryStallShare), 10.0);
    }
    void prefetchRatesAreThoseOfTheSourceInForce() {
        Metrics metrics(1, 4, {0});
        const auto outcome = [&](double t, PrefetchSource source, uint32_t issued, uint32_t useful,
                                 uint32_t late, uint32_t wasted) {
            Event event{};
            event.type = EventType::PrefetchOutcome;
            event.prefetch = {issued, useful, late, wasted, 0, uint8_t(source)};
            metrics.add(event, t);
        };
        const auto source = [](PrefetchSource requested, PrefetchSource effective) {
            Event event = knobEvent(KnobId::PrefetchSource, int64_t(requested));
            event.knob.effective = int64_t(effective);
            return event;
        };
        const auto rates = [&](double now) {
            Snapshot snapshot;
            metrics.tick(now, 0, GpuPoint::none("none"));
            metrics.fill(snapshot);
            return std::array{
                last(snapshot, SeriesId::PrefetchIssued), last(snapshot, SeriesId::PrefetchUseful),
                last(snapshot, SeriesId::PrefetchLate), last(snapshot, SeriesId::PrefetchWasted)};
        };
        const auto next = PrefetchSource::NextRouter, before = PrefetchSource::PreviousToken;
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        QVERIFY(std::isnan(rates(0.01)[0]));  // the source is unknown
        metrics.add(source(next, next), 0.02);
        outcome(0.1, next, 20, 12, 4, 2);
        outcome(0.2, before, 100, 0, 0, 100);  // issued by another source
        QCOMPARE(rates(0.3), (std::array{10.0, 6.0, 2.0, 1.0}));
        metrics.add(source(next, PrefetchSource::Off), 0.4);  // backs off: no reads
        QCOMPARE(rates(0.5), (std::array{10.0, 6.0, 2.0, 1.0}));
        QCOMPARE(rates(2.5), (std::array{0.0, 0.0, 0.0, 0.0}));
        metrics.add(source(before, before), 2.6);
        outcome(2.7, before, 8, 6, 0, 0);
        QCOMPARE(rates(2.8), (std::array{4.0, 3.0, 0.0, 0.0}));
        metrics.add(source(PrefetchSource::Off, PrefetchSource::Off), 2.9);
        QVERIFY(std::isnan(rates(3.0)[0]));
    }
    void percentilesPoolRawGaps() {
        Metrics metrics(1, 4, {0});
        for (int i = 0; i < 200; ++i)
            metrics.add(tokenEvent(i == 7 ? 90'000'000 : 10'000'000), i * 0.01);
        metrics.add(tokenEvent(0), 2.5);  // the first token has no gap
        metrics.tick(2.6, 0, GpuPoint::none("none"));
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.figures.itlCount, 200);
        QVERIFY(std::abs(snapshot.figures.itlP50Ms - 10) < 0.02);
        QVERIFY(std::abs(metrics.itlBetween(0, 3).quantile(1.0) / 1e6 - 90) < 0.2);
        QCOMPARE(metrics.itlBetween(0.5, 0.996).count(), 50);
    }
};

QTEST_GUILESS_MAIN(TestMetrics)
#include "test_metrics.moc"
