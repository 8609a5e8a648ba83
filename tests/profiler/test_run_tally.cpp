// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>

#include "profiler/metrics/run_tally.h"

using namespace colibri;

namespace {

RequestResult reply(int gaps, double gapMs) {
    RequestResult result;
    result.gapsMs.assign(size_t(gaps), gapMs);
    result.queueMs = 50;
    result.ttftMs = 150;
    result.experts.lookups = 100;
    result.experts.hits = 75;
    result.experts.bytesRead = 1000;
    result.experts.stallNs = 100'000'000;
    return result;
}

bool near(double value, double expected) {
    return std::abs(value - expected) < 0.02 * expected;  // buckets of the histogram
}

}  // namespace

class TestRunTally : public QObject {
    Q_OBJECT

private slots:
    void aFewGapsAreNoMeasurement() {
        RunTally tally;
        tally.add(reply(15, 10));
        QVERIFY(!tally.result());
        tally.add(reply(1, 10));
        QVERIFY(tally.result());
    }

    // The percentile of all gaps, not a mean of the replies' percentiles.
    void repliesArePooled() {
        RunTally tally;
        tally.add(reply(98, 10));
        tally.add(reply(2, 100));
        const auto run = tally.result();
        QVERIFY(run);
        QCOMPARE(run->gaps, uint64_t(100));
        QVERIFY(near(run->itlP99Ms, 100));
        QVERIFY(near(run->decodeTokS, 100 / 1.18));
        QVERIFY(near(run->bytesPerToken, 2000.0 / 102));
        QVERIFY(near(run->missShare, 0.25));
        // Of prompts and gaps, without the time in the queue.
        QVERIFY(near(run->stallShare, 0.2 / 1.38));
    }

    void aChangeOfKnobsBeginsAnew() {
        RunTally tally;
        tally.add(reply(100, 10));
        tally.restart();
        QVERIFY(!tally.result());
        tally.add(reply(20, 20));
        QVERIFY(near(tally.result()->decodeTokS, 50));
        QCOMPARE(tally.result()->gaps, uint64_t(20));
    }
};

QTEST_GUILESS_MAIN(TestRunTally)
#include "test_run_tally.moc"
