// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <array>
#include <cmath>
#include <cstring>

#include "profiler/record/effect.h"
#include "profiler/record/metrics.h"

using namespace colibri;

namespace {

Event requestEvent(EventType type, uint64_t id)
{
    Event event{};
    event.type = type;
    event.request.request = id;
    event.request.stop = StopReason::Eos;
    return event;
}

Event tokenEvent(uint64_t gapNs)
{
    Event event{};
    event.type = EventType::Token;
    event.token.request = 1;
    event.token.gapNs = gapNs;
    event.token.stepNs = gapNs;
    event.token.stallNs = gapNs / 4;
    return event;
}

Event knobEvent(KnobId id, int64_t value)
{
    Event event{};
    event.type = EventType::KnobChanged;
    event.knob.knob = uint8_t(id);
    event.knob.requested = event.knob.effective = value;
    return event;
}

Event stepEvent(int requests)
{
    Event event{};
    event.type = EventType::BatchFormed;
    event.batch.requests = event.batch.rows = uint16_t(requests);
    return event;
}

double last(const Snapshot& snapshot, SeriesId id)
{
    const auto& y = snapshot.series[size_t(id)].y;
    return y.empty() ? std::nan("") : y.back();
}

}  // namespace

class TestMetrics : public QObject {
    Q_OBJECT
private slots:
    void hitRateCountsFirstTouchesOnly()
    {
        Metrics metrics(2, 8, {0, 2});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        Event step{};
        step.type = EventType::LayerStep;
        step.layerStep.layer = 2;
        step.layerStep.count = 4;
        step.layerStep.firstBits = 0b0111;   // the fourth was touched by an earlier row
        step.layerStep.hitBits = 0b1101;
        step.layerStep.prefetchBits = 0b0100;
        for (int i = 0; i < 4; ++i) step.layerStep.experts[i] = uint16_t(i);
        metrics.add(step, 1);
        metrics.tick(1.1, 1 << 30, NAN, "no NVIDIA driver");
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::HitRate), 100.0 * 2 / 3);
        QCOMPARE(last(snapshot, SeriesId::PrefetchHitRate), 100.0 / 3);
        QCOMPARE(snapshot.figures.hitRate, 200.0 / 3);
        QCOMPARE(snapshot.heat.size(), 16);
        QVERIFY(snapshot.heat[8] > 0.9 && snapshot.heat[0] == 0);
        QCOMPARE(snapshot.series[size_t(SeriesId::SmUtilisation)].unavailable, "no NVIDIA driver");
        QVERIFY(snapshot.series[size_t(SeriesId::SmUtilisation)].y.empty());
        // The window forgets.
        metrics.tick(12, 1 << 30, NAN, "no NVIDIA driver");
        metrics.fill(snapshot);
        QVERIFY(std::isnan(snapshot.figures.hitRate));
    }
    void idleIsAGapNotAStaleValue()
    {
        Metrics metrics(1, 4, {0});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        metrics.add(tokenEvent(20'000'000), 0.5);
        metrics.tick(0.6, 0, NAN, "none");
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(std::round(last(snapshot, SeriesId::TokensPerSecond)), 50.0);
        QCOMPARE(snapshot.figures.stallShare, 25.0);
        metrics.add(requestEvent(EventType::RequestDone, 1), 0.7);
        metrics.tick(0.8, 0, NAN, "none");
        metrics.fill(snapshot);
        QVERIFY(std::isnan(last(snapshot, SeriesId::TokensPerSecond)));
        QCOMPARE(snapshot.markers.size(), 2);
        QVERIFY(snapshot.markers[1].kind == Marker::Kind::TurnEnd);
        QCOMPARE(snapshot.markers[1].label, "turn 1");
    }
    // A card over a plot and the last figure in its legend are one figure.
    void theFiguresAreThoseOfTheLastPoint()
    {
        Metrics metrics(1, 4, {0});
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        for (int i = 0; i < 30; ++i) metrics.add(tokenEvent(20'000'000), 0.02 * i);
        metrics.tick(0.7, 0, NAN, "none");
        metrics.add(tokenEvent(90'000'000), 0.72);
        metrics.add(requestEvent(EventType::RequestDone, 1), 0.72);
        Snapshot snapshot;
        for (const double t : {0.75, 5.0, 10.5}) {     // some of the gaps have left the window
            metrics.tick(t, 0, NAN, "none");
            metrics.fill(snapshot);
            QCOMPARE(snapshot.figures.itlCount, uint64_t(30));
            QCOMPARE(double(snapshot.figures.itlCount), snapshot.itlCount.y[0]);
            QCOMPARE(snapshot.figures.itlP99Ms, snapshot.series[size_t(SeriesId::ItlP99)].y[0]);
        }
        metrics.tick(12, 0, NAN, "none");
        metrics.fill(snapshot);
        QCOMPARE(snapshot.figures.itlCount, uint64_t(0));
    }
    // The process was stopped, or the machine slept.
    void aHoleInTheTicksIsAGap()
    {
        Metrics metrics(1, 4, {0});
        for (const double t : {0.5, 0.6, 9.0, 9.1}) metrics.tick(t, 1 << 30, NAN, "none");
        Snapshot snapshot;
        metrics.fill(snapshot);
        const SeriesData& memory = snapshot.series[size_t(SeriesId::MemoryGiB)];
        QCOMPARE(memory.y.size(), size_t(5));
        QVERIFY(std::isnan(memory.y[2]) && memory.t[2] < 9);
        QCOMPARE(memory.y[3], 1.0);
    }
    void batchesAndQueue()
    {
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
        metrics.tick(0.3, 0, NAN, "none");
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 2.0);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 1.0);
        step(0.4, 4);
        metrics.tick(0.5, 0, NAN, "none");
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 2.0);     // of three steps
        step(2.3, 3);                                           // the two of one have left
        metrics.tick(2.35, 0, NAN, "none");
        metrics.fill(snapshot);
        QCOMPARE(last(snapshot, SeriesId::MeanBatch), 3.5);
        metrics.add(requestEvent(EventType::RequestDone, 1), 2.4);
        metrics.tick(2.5, 0, NAN, "none");
        metrics.fill(snapshot);
        QVERIFY(std::isnan(last(snapshot, SeriesId::MeanBatch)));
        QCOMPARE(last(snapshot, SeriesId::QueueDepth), 2.0);
    }
    void prefetchRatesAreThoseOfTheSourceInForce()
    {
        Metrics metrics(1, 4, {0});
        const auto outcome = [&](double t, PrefetchSource source, uint32_t issued, uint32_t useful,
                                 uint32_t late, uint32_t wasted) {
            Event event{};
            event.type = EventType::PrefetchOutcome;
            event.prefetch = {issued, useful, late, wasted, uint8_t(source)};
            metrics.add(event, t);
        };
        const auto source = [](PrefetchSource requested, PrefetchSource effective) {
            Event event = knobEvent(KnobId::PrefetchSource, int64_t(requested));
            event.knob.effective = int64_t(effective);
            return event;
        };
        const auto rates = [&](double now) {
            Snapshot snapshot;
            metrics.tick(now, 0, NAN, "none");
            metrics.fill(snapshot);
            return std::array{last(snapshot, SeriesId::PrefetchIssued), last(snapshot, SeriesId::PrefetchUseful),
                              last(snapshot, SeriesId::PrefetchLate), last(snapshot, SeriesId::PrefetchWasted)};
        };
        const auto next = PrefetchSource::NextRouter, before = PrefetchSource::PreviousToken;
        metrics.add(requestEvent(EventType::RequestArrived, 1), 0);
        metrics.add(requestEvent(EventType::RequestAdmitted, 1), 0);
        QVERIFY(std::isnan(rates(0.01)[0]));                    // no source known
        metrics.add(source(next, next), 0.02);
        outcome(0.1, next, 20, 12, 4, 2);
        outcome(0.2, before, 100, 0, 0, 100);                   // begun by another source
        QCOMPARE(rates(0.3), (std::array{10.0, 6.0, 2.0, 1.0}));
        metrics.add(source(next, PrefetchSource::Off), 0.4);    // backs off: nothing is read
        QCOMPARE(rates(0.5), (std::array{10.0, 6.0, 2.0, 1.0}));
        QCOMPARE(rates(2.5), (std::array{0.0, 0.0, 0.0, 0.0}));
        metrics.add(source(before, before), 2.6);
        outcome(2.7, before, 8, 6, 0, 0);
        QCOMPARE(rates(2.8), (std::array{4.0, 3.0, 0.0, 0.0}));
        metrics.add(source(PrefetchSource::Off, PrefetchSource::Off), 2.9);
        QVERIFY(std::isnan(rates(3.0)[0]));
    }
    void percentilesPoolRawGaps()
    {
        Metrics metrics(1, 4, {0});
        for (int i = 0; i < 200; ++i) metrics.add(tokenEvent(i == 7 ? 90'000'000 : 10'000'000), i * 0.01);
        metrics.add(tokenEvent(0), 2.5);   // a first token has no gap
        metrics.tick(2.6, 0, NAN, "none");
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.figures.itlCount, 200);
        QVERIFY(std::abs(snapshot.figures.itlP50Ms - 10) < 0.02);
        QVERIFY(std::abs(metrics.itlBetween(0, 3).quantile(1.0) / 1e6 - 90) < 0.2);
        QCOMPARE(metrics.itlBetween(0.5, 0.996).count(), 50);
    }
    void aKnobChangeGetsAMarkerAndItsMeasuredEffect()
    {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers.empty());  // the value at load is not a change
        for (int i = 0; i < 100; ++i) metrics.add(tokenEvent(20'000'000 + i % 5 * 100'000), t += 0.02);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 12), t);
        for (int i = 0; i < 20; ++i) metrics.add(tokenEvent(10'000'000 + i % 5 * 100'000), t += 0.01);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 1);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Measuring);
        QCOMPARE(snapshot.markers[0].from, 8);
        QCOMPARE(snapshot.markers[0].to, 12);
        for (int i = 0; i < 80; ++i) metrics.add(tokenEvent(10'000'000 + i % 5 * 100'000), t += 0.01);
        metrics.fill(snapshot);
        const Marker& marker = snapshot.markers[0];
        QVERIFY(marker.effect == Marker::Effect::Known);
        QVERIFY(std::abs(marker.change - 0.98) < 0.03);
        QVERIFY(marker.low <= marker.change && marker.change <= marker.high);
        QVERIFY(marker.low > 0.9);
    }
    // One change from 8 to 16, however many steps the slider made of it and whatever came between.
    void aDragIsOneChangeMeasuredFromItsEnd()
    {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        for (int i = 0; i < 100; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.hold(KnobId::ExpertCacheSize);
        for (int value = 9; value <= 15; ++value) {
            metrics.add(knobEvent(KnobId::ExpertCacheSize, value), t += 2);   // a slow hand
            metrics.add(tokenEvent(15'000'000), t);
        }
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers.empty());   // set on release
        metrics.release(KnobId::ExpertCacheSize, 16);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 16), t += 3);          // applied later
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 1);
        QCOMPARE(snapshot.markers[0].from, 8);
        QCOMPARE(snapshot.markers[0].to, 16);
        QCOMPARE(snapshot.markers[0].measured, 0);
        QCOMPARE(metrics.takeDecided().size(), 0);
        for (int i = 0; i < 80; ++i) metrics.add(tokenEvent(10'000'000), t += 0.01);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 1);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Known);
        QCOMPARE(snapshot.markers[0].change, 1.0);
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), 1);
        QCOMPARE(effectText(decided[0]), "2.00 × tok/s (95 %: 2.00..2.00)");
        QCOMPARE(metrics.takeDecided().size(), 0);
        // So is the next drag, and what comes after it.
        metrics.hold(KnobId::ExpertCacheSize);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 17), t += 5);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 18), t += 5);
        metrics.release(KnobId::ExpertCacheSize, 18);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 2);
        QCOMPARE(snapshot.markers[1].from, 16);
        QCOMPARE(snapshot.markers[1].to, 18);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 20), t += 5);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 3);
    }
    void quickStepsAreOneChangeAndPuttingBackIsNone()
    {
        Metrics metrics(1, 4, {0});
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), 0);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 9), 10);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 10), 10.5);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 1);
        QCOMPARE(snapshot.markers[0].to, 10);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), 11);
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers.empty());
        metrics.tick(20, 0, NAN, "none");
        QCOMPARE(metrics.takeDecided().size(), 0);
    }
    void aChangeThatCannotBeMeasuredSaysWhy()
    {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::LinkLimit, 25), t);
        metrics.add(knobEvent(KnobId::CachePolicy, 0), t);
        for (int i = 0; i < 10; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.add(knobEvent(KnobId::LinkLimit, 0), t += 1);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::NotMeasured);
        QCOMPARE(snapshot.markers[0].reason, "10 tokens before it, 24 are needed");
        QCOMPARE(snapshot.markers[0].label, "Link limit 25 \u2192 none");
        for (int i = 0; i < 40; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.add(knobEvent(KnobId::LinkLimit, 50), t += 2);
        for (int i = 0; i < 28; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.add(knobEvent(KnobId::CachePolicy, 1), t += 2);   // cuts the measurement short
        for (int i = 0; i < 18; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.finish();
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), 3);
        QCOMPARE(effectText(decided[1]), "not measured: a further change came after 20 of 64 tokens");
        QCOMPARE(decided[2].reason, "the session ended after 10 of 64 tokens");
    }
    // Four users beside the chat make each of its tokens slower: that is no effect of a knob.
    void onlyTokensAtTheSameLoadAreCompared()
    {
        const auto run = [](int before, int after, int back) {
            Metrics metrics(1, 4, {0});
            double t = 0;
            const auto tokens = [&](int count, int requests, uint64_t gapNs) {
                for (int i = 0; i < count; ++i) {
                    metrics.add(stepEvent(requests), t += 0.02);
                    metrics.add(tokenEvent(gapNs), t);
                }
            };
            metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
            tokens(80, before, 10'000'000 * uint64_t(before));
            metrics.add(knobEvent(KnobId::ExpertCacheSize, 9), t);
            tokens(140, after, 10'000'000 * uint64_t(after));
            tokens(back, before, 5'000'000 * uint64_t(before));
            metrics.finish();
            return metrics.takeDecided();
        };
        QCOMPARE(effectText(run(1, 4, 0)[0]), "not measured: load changed (1 request before, 4 after)");
        QCOMPARE(effectText(run(4, 1, 0)[0]), "not measured: load changed (4 requests before, 1 after)");
        QCOMPARE(effectText(run(2, 2, 0)[0]), "0.0 % tok/s (95 %: 0.0..0.0)");
    }
    void aLoadThatComesAndGoesIsLeftOut()
    {
        Metrics metrics(1, 4, {0});
        double t = 0;
        const auto tokens = [&](int count, int requests, uint64_t gapNs) {
            metrics.add(stepEvent(requests), t += 0.02);
            for (int i = 0; i < count; ++i) metrics.add(tokenEvent(gapNs), t);
        };
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        tokens(40, 1, 20'000'000);
        tokens(100, 3, 90'000'000);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 9), t);
        tokens(48, 1, 10'000'000);
        tokens(90, 2, 50'000'000);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers[0].measured, 40);
        tokens(24, 1, 10'000'000);
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Known);
        QCOMPARE(snapshot.markers[0].change, 1.0);
        // Never 24 at one number of requests: there is nothing to compare with.
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 10), t += 2);
        for (int requests = 1; requests <= 4; ++requests) tokens(10, requests, 10'000'000);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 12), t += 2);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.back().reason.substr(0, 12), "load changed");
    }
    void whatTheEngineDoesByItselfIsNoChangeOfTheUser()
    {
        Metrics metrics(1, 4, {0});
        double t = 0;
        const auto source = [](PrefetchSource requested, PrefetchSource effective, const char* why) {
            Event event = knobEvent(KnobId::PrefetchSource, int64_t(requested));
            event.knob.effective = int64_t(effective);
            std::strcpy(event.knob.reason, why);
            return event;
        };
        const auto tokens = [&](int count, uint64_t gapNs) {
            for (int i = 0; i < count; ++i) metrics.add(tokenEvent(gapNs), t += 0.02);
        };
        const auto off = PrefetchSource::Off, next = PrefetchSource::NextRouter;
        metrics.add(source(next, next, ""), t);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        tokens(20, 20'000'000);
        metrics.add(source(next, off, "backed off: 80 % late or wasted in the last 256"), t);
        tokens(20, 20'000'000);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 12), t);
        tokens(30, 10'000'000);
        metrics.add(source(next, next, ""), t);          // tries again, and backs off once more
        metrics.add(source(next, off, "backed off"), t);
        tokens(50, 10'000'000);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), size_t(4));
        QVERIFY(snapshot.markers[0].automatic);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::None);
        QCOMPARE(snapshot.markers[0].reason, "backed off: 80 % late or wasted in the last 256");
        QVERIFY(!snapshot.markers[1].automatic);
        QVERIFY(snapshot.markers[1].effect == Marker::Effect::Known);
        QCOMPARE(snapshot.markers[1].change, 1.0);
        QCOMPARE(metrics.takeDecided().size(), size_t(1));
        // The user's own change while it backs off is undone to what had been asked for.
        metrics.add(source(PrefetchSource::PreviousToken, PrefetchSource::PreviousToken, ""), t += 2);
        metrics.fill(snapshot);
        QVERIFY(!snapshot.markers.back().automatic);
        QCOMPARE(snapshot.markers.back().undoTo, int64_t(next));
        QCOMPARE(snapshot.markers.back().label, "Prefetch source next_router \u2192 previous_token");
    }
    void noiseIsNoEffect()
    {
        std::vector<double> before, after;
        for (int i = 0; i < 64; ++i) {
            before.push_back(20e6 + (i * 37 % 11) * 1e6);
            after.push_back(20e6 + (i * 53 % 11) * 1e6);
        }
        const EffectEstimate estimate = estimateEffect(before, after);
        QVERIFY(estimate.low < 0 && estimate.high > 0);
    }
};

QTEST_GUILESS_MAIN(TestMetrics)
#include "test_metrics.moc"
