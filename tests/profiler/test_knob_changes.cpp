// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cmath>
#include <cstring>
#include <random>

#include "profiler/metrics/effect.h"
#include "profiler/metrics/metrics.h"
#include "tests/profiler/event_maker.h"

using namespace colibri;

class TestKnobChanges : public QObject {
    Q_OBJECT
private slots:
    void aKnobChangeGetsAMarkerAndItsMeasuredEffect() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers.empty());  // the value at load is not a change
        for (int i = 0; i < 100; ++i)
            metrics.add(tokenEvent(20'000'000 + i % 5 * 100'000), t += 0.02);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 12), t);
        for (int i = 0; i < 20; ++i)
            metrics.add(tokenEvent(10'000'000 + i % 5 * 100'000), t += 0.01);
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), 1);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Measuring);
        QCOMPARE(snapshot.markers[0].from, 8);
        QCOMPARE(snapshot.markers[0].to, 12);
        for (int i = 0; i < 80; ++i)
            metrics.add(tokenEvent(10'000'000 + i % 5 * 100'000), t += 0.01);
        metrics.fill(snapshot);
        const Marker& marker = snapshot.markers[0];
        QVERIFY(marker.effect == Marker::Effect::Known);
        QVERIFY(std::abs(marker.change - 0.98) < 0.03);
        QVERIFY(marker.low <= marker.change && marker.change <= marker.high);
        QVERIFY(marker.low > 0.9);
    }
    // One change from 8 to 16, regardless of the slider's steps and of events in between.
    void aDragIsOneChangeMeasuredFromItsEnd() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        for (int i = 0; i < 100; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.hold(KnobId::ExpertCacheSize);
        for (int value = 9; value <= 15; ++value) {
            metrics.add(knobEvent(KnobId::ExpertCacheSize, value), t += 2);  // a slow drag
            metrics.add(tokenEvent(15'000'000), t);
        }
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers.empty());  // set at release
        metrics.release(KnobId::ExpertCacheSize, 16);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 16), t += 3);  // applied later
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
        // Although its interval is narrow: more text may show what 64 tokens do not.
        QVERIFY(snapshot.markers[0].refining);
        QCOMPARE(metrics.takeDecided().size(), 0);
        for (int i = 0; i < 130; ++i) metrics.add(tokenEvent(10'000'000), t += 0.01);
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), 1);
        QCOMPARE(QString::fromStdString(effectText(decided[0])),
                 QString("2.00 × tok/s (95 %: 1.98..2.02), from 92 tokens before, 192 after, at "
                         "1 request at a time"));
        QCOMPARE(metrics.takeDecided().size(), 0);
        // The same for the next drag and for changes after it.
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
    void quickStepsAreOneChangeAndPuttingBackIsNone() {
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
        metrics.tick(20, 0, {});
        QCOMPARE(metrics.takeDecided().size(), 0);
    }
    void aChangeThatCannotBeMeasuredSaysWhy() {
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
        metrics.add(knobEvent(KnobId::CachePolicy, 1), t += 2);  // ends the measurement early
        for (int i = 0; i < 40; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.add(knobEvent(KnobId::LinkLimit, 60), t += 2);
        for (int i = 0; i < 18; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.finish();
        auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), 4);
        QCOMPARE(QString::fromStdString(decided[2].reason),
                 QString("only 20 settled tokens before it, 24 are needed"));
        decided.erase(decided.begin() + 2);
        QCOMPARE(QString::fromStdString(effectText(decided[1])),
                 QString("not measured: another knob was changed after 20 of 64 tokens"));
        QCOMPARE(QString::fromStdString(decided[2].reason),
                 QString("the session ended after 10 of 64 tokens"));
    }
    // Four other users make each token of the chat slower, which is not an effect of a knob.
    void onlyTokensAtTheSameLoadAreCompared() {
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
        QCOMPARE(QString::fromStdString(effectText(run(1, 4, 0)[0])),
                 QString("not measured: number of requests changed (1 before, 4 after)"));
        QCOMPARE(QString::fromStdString(effectText(run(4, 1, 0)[0])),
                 QString("not measured: number of requests changed (4 before, 1 after)"));
        QCOMPARE(QString::fromStdString(effectText(run(2, 2, 0)[0])),
                 QString("0.0 % tok/s (95 %: −0.8..+0.8), from 72 tokens before, 128 after, at "
                         "2 requests at a time"));
    }
    void aLoadThatComesAndGoesIsLeftOut() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        const auto tokens = [&](int count, int requests, uint64_t gapNs) {
            for (int i = 0; i < count; ++i) {
                metrics.add(stepEvent(requests), t += 0.02);
                metrics.add(tokenEvent(gapNs), t);
            }
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
        // Never 24 tokens at one number of requests, so there is nothing to compare with.
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 10), t += 2);
        for (int requests = 1; requests <= 4; ++requests) tokens(10, requests, 10'000'000);
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 12), t += 2);
        metrics.fill(snapshot);
        QCOMPARE(QString::fromStdString(snapshot.markers.back().reason).left(26),
                 QString("number of requests changed"));
    }
    void whatTheEngineDoesByItselfIsNoChangeOfTheUser() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        const auto source = [](PrefetchSource requested, PrefetchSource effective,
                               const char* why) {
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
        metrics.add(source(next, next, ""), t);  // resumes, and backs off again
        metrics.add(source(next, off, "backed off"), t);
        tokens(180, 10'000'000);
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
        // Undoing the user's change during back-off restores the previously requested value.
        metrics.add(source(PrefetchSource::PreviousToken, PrefetchSource::PreviousToken, ""),
                    t += 2);
        metrics.fill(snapshot);
        QVERIFY(!snapshot.markers.back().automatic);
        QCOMPARE(snapshot.markers.back().undoTo, int64_t(next));
        QCOMPARE(snapshot.markers.back().label,
                 "Prefetch source next_router \u2192 previous_token");
    }
    // After it has grown, the cache fills for 40 tokens, which count neither as before nor as
    // after.
    void tokensWhileTheCacheSettlesAreLeftOut() {
        Metrics metrics(2, 64, {0, 1});
        double t = 0;
        int next = 0;
        // One token uses an expert of each layer, cycling through 100. A miss makes it slow.
        const auto token = [&](int count, bool hit) {
            for (int i = 0; i < count; ++i, next = (next + 1) % 50) {
                metrics.add(stepEvent(1), t += 0.02);
                for (const uint16_t layer : {0, 1}) {
                    Event step{};
                    step.type = EventType::LayerStep;
                    step.layerStep.layer = layer;
                    step.layerStep.count = step.layerStep.firstBits = 1;
                    step.layerStep.hitBits = hit;
                    step.layerStep.experts[0] = uint16_t(next);
                    metrics.add(step, t);
                }
                metrics.add(tokenEvent(hit ? 10'000'000 : 30'000'000), t);
            }
        };
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 8), t);
        token(150, false);  // an LRU cache of 16 never holds the next of 100
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 64), t);
        Snapshot snapshot;
        token(40, false);  // it can hold all, but must read each once
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Measuring);
        QVERIFY(snapshot.markers[0].settling);
        QCOMPARE(snapshot.markers[0].measured, 0);
        token(10, false);
        token(100, true);
        metrics.fill(snapshot);
        QVERIFY(!snapshot.markers[0].settling);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Known);
        QVERIFY2(std::abs(snapshot.markers[0].change - 2.0) < 1e-9,
                 effectText(snapshot.markers[0]).c_str());
    }
    // After a session starts, experts are read for the first time for a long while. A small cache
    // is full, and settled, long before every expert has been used.
    void firstUsesDoNotKeepAFullCacheFromSettling() {
        Metrics metrics(1, 256, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 4), t);
        for (int i = 0; i < 60; ++i) {
            metrics.add(stepEvent(1), t += 0.02);
            Event step{};
            step.type = EventType::LayerStep;
            step.layerStep.count = step.layerStep.firstBits = 1;
            step.layerStep.experts[0] = uint16_t(i);
            metrics.add(step, t);
            metrics.add(tokenEvent(30'000'000), t);
        }
        metrics.add(knobEvent(KnobId::IoDepth, 8), t);
        metrics.add(knobEvent(KnobId::IoDepth, 16), t);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QCOMPARE(snapshot.markers.size(), size_t(1));
        QVERIFY2(snapshot.markers[0].effect == Marker::Effect::Measuring,
                 snapshot.markers[0].reason.c_str());
    }
    // A reply that needs more experts is slower, without any knob change.
    void textThatAsksForMoreExpertsIsNoEffect() {
        Metrics metrics(1, 64, {0});
        double t = 0;
        int next = 0;
        // Cycles through `experts` experts. A cache of 16 holds none of them if there are more than
        // 16.
        const auto token = [&](int count, int experts) {
            for (int i = 0; i < count; ++i) {
                metrics.add(stepEvent(1), t += 0.02);
                const bool miss = i % 10 < experts;
                Event step{};
                step.type = EventType::LayerStep;
                step.layerStep.count = step.layerStep.firstBits = 1;
                step.layerStep.hitBits = !miss;
                step.layerStep.experts[0] = uint16_t(miss ? 2 + next++ % 60 : 0);
                metrics.add(step, t);
                metrics.add(tokenEvent((miss ? 30 : 10) * 1'000'000ull), t);
            }
        };
        metrics.add(knobEvent(KnobId::ExpertCacheSize, 16), t);
        metrics.add(knobEvent(KnobId::IoDepth, 8), t);
        token(300, 3);  // 16 ms for each token
        metrics.add(knobEvent(KnobId::IoDepth, 16), t += 2);
        token(300, 7);  // 24 ms for each token
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), size_t(1));
        QVERIFY2(decided[0].low < 0 && decided[0].high > 0, effectText(decided[0]).c_str());
    }
    // A pause in which other requests used the KV cache is not an effect of a knob.
    void gapsOfPreemptedRequestsAreLeftOut() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        metrics.add(knobEvent(KnobId::IoDepth, 8), t);
        for (int i = 0; i < 100; ++i) metrics.add(tokenEvent(20'000'000), t += 0.02);
        metrics.add(knobEvent(KnobId::IoDepth, 16), t += 2);
        for (int i = 0; i < 250; ++i) {
            Event event = tokenEvent(i % 10 ? 20'000'000 : 900'000'000);
            event.token.preemptedNs = i % 10 ? 0 : 880'000'000;
            metrics.add(event, t += 0.02);
        }
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), size_t(1));
        QVERIFY2(std::abs(decided[0].change) < 1e-9, effectText(decided[0]).c_str());
    }
    // The first estimate is shown and becomes narrower with more tokens; the file gets the last
    // one.
    void anEstimateIsRefinedUntilMoreTokensWouldNotHelp() {
        Metrics metrics(1, 4, {0});
        double t = 0;
        std::mt19937 random(5);
        const auto tokens = [&](int count, double ms) {
            std::normal_distribution<double> noise(ms, ms / 2);
            for (int i = 0; i < count; ++i)
                metrics.add(tokenEvent(uint64_t(1e6 * std::max(1.0, noise(random)))), t += 0.02);
        };
        metrics.add(knobEvent(KnobId::IoDepth, 8), t);
        tokens(300, 20);
        metrics.add(knobEvent(KnobId::IoDepth, 16), t);
        tokens(80, 18);
        Snapshot snapshot;
        metrics.fill(snapshot);
        QVERIFY(snapshot.markers[0].effect == Marker::Effect::Known);
        QVERIFY(snapshot.markers[0].refining);
        QVERIFY(metrics.takeDecided().empty());
        const double width = snapshot.markers[0].high - snapshot.markers[0].low;
        QVERIFY(
            snapshot.markers[0].validity.starts_with("292 tokens before, 64 after, at 1 request"));
        tokens(200, 18);
        metrics.add(knobEvent(KnobId::IoDepth, 4), t += 2);  // the tokens so far are kept
        const auto decided = metrics.takeDecided();
        QCOMPARE(decided.size(), size_t(1));
        QVERIFY(decided[0].effect == Marker::Effect::Known);
        QVERIFY(!decided[0].refining);
        QVERIFY(decided[0].high - decided[0].low < width);
        QVERIFY(decided[0].measured > 200);
    }
};

QTEST_GUILESS_MAIN(TestKnobChanges)
#include "test_knob_changes.moc"
