// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <deque>
#include <random>

#include "engine/store/link.h"

using namespace colibri;

class TestLink : public QObject {
    Q_OBJECT

    static constexpr uint64_t kMs = 1'000'000;

private slots:
    void withoutLimitAllIsOverAtOnce() {
        LinkLimiter link;
        const auto t = link.begin(1 << 20, true, 5);
        QVERIFY(link.finishAt(t, 5) <= 5);
        QVERIFY(link.idle(5));
    }

    void oneAfterAnother() {
        LinkLimiter link;
        link.setRate(25'000'000, 0);  // 25 bytes per microsecond
        const auto a = link.begin(100'000, true, 0);
        const auto b = link.begin(50'000, true, 0);
        QCOMPARE(link.finishAt(a, 0), 4 * kMs);
        QCOMPARE(link.finishAt(b, 0), 6 * kMs);
        QVERIFY(link.finishAt(a, 4 * kMs - 1) > 4 * kMs - 1);
        QVERIFY(link.finishAt(a, 4 * kMs) <= 4 * kMs);
        QVERIFY(!link.idle(5 * kMs));
        QVERIFY(link.finishAt(b, 6 * kMs) <= 6 * kMs);
        QVERIFY(link.idle(6 * kMs));
    }

    void idleTimeIsNotSavedUp() {
        LinkLimiter link;
        link.setRate(1'000'000, 0);
        const auto a = link.begin(1000, true, 0);
        link.end(a, 500 * kMs);
        const auto b = link.begin(1000, true, 1000 * kMs);
        QCOMPARE(link.finishAt(b, 1000 * kMs), 1001 * kMs);
    }

    void rateChangesUnderWay() {
        LinkLimiter link;
        link.setRate(1'000'000, 0);
        const auto a = link.begin(10'000, true, 0);  // 10 ms
        link.setRate(4'000'000, 2 * kMs);            // 8,000 bytes left: 2 ms
        QCOMPARE(link.finishAt(a, 2 * kMs), 4 * kMs);
        link.setRate(500'000, 3 * kMs);  // 4,000 left: 8 ms
        QCOMPARE(link.finishAt(a, 3 * kMs), 11 * kMs);
        link.setRate(0, 5 * kMs);
        QVERIFY(link.finishAt(a, 5 * kMs) <= 5 * kMs);
    }

    void demandOvertakesPrefetch() {
        LinkLimiter link;
        link.setRate(1'000'000, 0);
        const auto prefetch = link.begin(4000, false, 0);
        const auto demand = link.begin(1000, true, 1 * kMs);  // 3,000 of the prefetch left
        QCOMPARE(link.finishAt(demand, 1 * kMs), 2 * kMs);
        QCOMPARE(link.finishAt(prefetch, 1 * kMs), 5 * kMs);
        const auto second = link.begin(1000, false, 1 * kMs);
        QCOMPARE(link.finishAt(second, 1 * kMs), 6 * kMs);
        link.promote(second, 1 * kMs);
        QCOMPARE(link.finishAt(second, 1 * kMs), 3 * kMs);
        QCOMPARE(link.finishAt(prefetch, 1 * kMs), 6 * kMs);
    }

    void abandonedBytesAreNotCarried() {
        LinkLimiter link;
        link.setRate(1'000'000, 0);
        const auto a = link.begin(9000, true, 0);
        const auto b = link.begin(1000, true, 0);
        link.end(a, 1 * kMs);
        QCOMPARE(link.finishAt(b, 1 * kMs), 2 * kMs);
    }

    // In any sequence, the link is never faster than its rate and loses nothing to rounding.
    void exactOverManySteps() {
        std::mt19937 random(3);
        LinkLimiter link;
        constexpr int64_t kRate = 7'777'777;
        link.setRate(kRate, 0);
        uint64_t now = 0;
        int64_t bytes = 0;
        LinkLimiter::Transfer last = 0;
        std::deque<LinkLimiter::Transfer> open;
        for (int i = 0; i < 20'000; ++i) {
            const int64_t size = 1 + random() % 9000;
            last = link.begin(size, true, now);
            bytes += size;
            // At irregular times, always while the link is busy.
            const uint64_t end = link.finishAt(last, now);
            now += random() % (end - now);
            QVERIFY(!link.idle(now));
            open.push_back(last);
            while (link.finishAt(open.front(), now) <= now) {
                link.end(open.front(), now);
                open.pop_front();
            }
        }
        const uint64_t expected =
            uint64_t((static_cast<__int128>(bytes) * 1'000'000'000 + kRate - 1) / kRate);
        QCOMPARE(link.finishAt(last, now), expected);
    }
};

QTEST_GUILESS_MAIN(TestLink)
#include "test_link.moc"
