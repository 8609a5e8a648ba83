// SPDX-License-Identifier: GPL-3.0-or-later
// The arithmetic of pauses: which outcomes pause prefetching, for how long, and when it resumes.
#include <QtTest>

#include "engine/store/prefetch_judge.h"

using namespace colibri;

class TestPrefetchJudge : public QObject {
    Q_OBJECT

    static constexpr auto kSource = PrefetchSource::NextRouter;
    static constexpr uint64_t kMs = 1'000'000;

    // The outcome of one prefetch that took 2 ms; `good`: in time.
    static void outcome(PrefetchJudge& judge, bool good) {
        judge.issued(kSource);
        if (good) {
            judge.useful(kSource, 2 * kMs);
        } else {
            judge.wasted(kSource);
        }
    }
    // Outcomes, `good` of each hundred in time, until prefetching pauses; -1: not within the limit.
    static int untilPause(PrefetchJudge& judge, int good, int limit) {
        for (int i = 1; i <= limit; ++i) {
            outcome(judge, i % 100 < good);
            if (judge.paused()) return i;
        }
        return -1;
    }
    static int untilProbe(PrefetchJudge& judge) {
        int layers = 0;
        for (; judge.paused(); ++layers) judge.layerRequested();
        return layers;
    }

private slots:
    void threeQuartersBadMakeAPause_data() {
        QTest::addColumn<int>("good");
        QTest::addColumn<int>("outcomes");
        QTest::newRow("none good") << 0 << 400;
        QTest::newRow("a quarter good") << 25 << 400;
        QTest::newRow("more than a quarter good") << 26 << -1;
        QTest::newRow("all good") << 100 << -1;
    }
    void threeQuartersBadMakeAPause() {
        QFETCH(int, good);
        QFETCH(int, outcomes);
        PrefetchJudge judge;
        QCOMPARE(untilPause(judge, good, 3000), outcomes);
        QCOMPARE(judge.reason().empty(), outcomes < 0);
    }
    void eachFailedProbeDoublesThePause() {
        PrefetchJudge judge;
        QCOMPARE(untilPause(judge, 0, 1000), 400);
        QCOMPARE(judge.reason(), std::string("backed off: 100 % late or wasted in the last 400"));
        int pause = untilProbe(judge);
        QCOMPARE(pause, 2048);
        QVERIFY(judge.reason().empty());
        for (int probe = 1; probe <= 8; ++probe) {
            QCOMPARE(untilPause(judge, 0, 1000), 100);
            pause = std::min(2 * pause, 64 * 2048);
            QCOMPARE(untilProbe(judge), pause);
        }
        // A useful probe ends the pause.
        QCOMPARE(untilPause(judge, 100, 3000), -1);
        QCOMPARE(untilPause(judge, 0, 1000) > 100, true);
        QCOMPARE(untilProbe(judge), 2048);
    }
    void aLatePrefetchIsBadUnlessHalfOfItWasDone() {
        for (const bool good : {false, true}) {
            PrefetchJudge judge;
            for (int i = 0; i < 400; ++i) {
                judge.issued(kSource);
                judge.late(kSource);
                judge.lateReadEnded(good ? 5 * kMs : 4 * kMs, 10 * kMs);
            }
            QCOMPARE(judge.paused(), !good);
        }
    }
    void delaysOfDemandReadsAreWeighedAgainstWhatWasSaved() {
        for (const uint64_t delayMs : {1, 3}) {
            PrefetchJudge judge;
            judge.demandReadEnded(5 * kMs, judge.diskTime(0), 5 * kMs);  // what one takes alone
            uint64_t now = 10 * kMs;
            for (int i = 0; i < 400; ++i) {
                const uint64_t before = judge.diskTime(now);
                judge.diskReadBegins(now);
                now += 4 * kMs;
                judge.diskReadEnds(now);
                judge.demandReadEnded((5 + delayMs) * kMs, before, now);
                outcome(judge, true);  // saves 2 ms
            }
            QCOMPARE(judge.paused(), delayMs > 2);
            QCOMPARE(QString::fromStdString(judge.reason()),
                     delayMs > 2 ? QString("backed off: delayed other reads by 1,200 ms and saved "
                                           "800 ms in the last 400")
                                 : QString());
        }
    }
    // A prefetch delays a demand read at most for the time in which both used the disk.
    void aDelayIsNoLongerThanTheTimeShared() {
        PrefetchJudge judge;
        judge.demandReadEnded(5 * kMs, judge.diskTime(0), 5 * kMs);
        uint64_t now = 10 * kMs;
        for (int i = 0; i < 400; ++i) {
            const uint64_t before = judge.diskTime(now);
            judge.diskReadBegins(now);
            now += kMs;
            judge.diskReadEnds(now);
            judge.demandReadEnded(500 * kMs, before, now);
            outcome(judge, true);
        }
        QVERIFY2(!judge.paused(), judge.reason().c_str());
    }
    void outcomesOfReadsBegunBeforeAPauseDoNotCount() {
        PrefetchJudge judge;
        QCOMPARE(untilPause(judge, 0, 1000), 400);
        for (int i = 0; i < 1000; ++i) outcome(judge, true);
        QVERIFY(judge.paused());
        QVERIFY(judge.reason().find("100 %") != std::string::npos);
    }
    void newSettingsForgetThePause() {
        PrefetchJudge judge;
        QCOMPARE(untilPause(judge, 0, 1000), 400);
        judge.restart();
        QVERIFY(!judge.paused());
        QVERIFY(judge.reason().empty());
        QCOMPARE(untilPause(judge, 0, 1000), 400);
        QCOMPARE(untilProbe(judge), 2048);
    }
    void everyPrefetchIsCountedOnce() {
        PrefetchJudge judge;
        for (int i = 0; i < 5; ++i) judge.issued(kSource);
        QCOMPARE(judge.open(), int64_t(5));
        judge.useful(kSource, kMs);
        judge.late(kSource);
        judge.wasted(kSource);
        QCOMPARE(judge.open(), int64_t(2));
        const PrefetchCounts& c = judge.counts()[size_t(kSource)];
        QCOMPARE(c.issued, uint64_t(5));
        QCOMPARE(c.useful + c.late + c.wasted, uint64_t(3));
        QCOMPARE(judge.counts()[size_t(PrefetchSource::PreviousToken)].issued, uint64_t(0));
    }
};

QTEST_GUILESS_MAIN(TestPrefetchJudge)
#include "test_prefetch_judge.moc"
