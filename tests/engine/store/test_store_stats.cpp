// SPDX-License-Identifier: GPL-3.0-or-later
// Differences of the store's counters over a request. Fails if a new counter is missing.
#include <QtTest>
#include <array>
#include <bit>

#include "engine/store/expert_store.h"

using namespace colibri;

class TestStoreStats : public QObject {
    Q_OBJECT

private slots:
    void differenceForgetsNoCounter() {
        using Words = std::array<uint64_t, sizeof(StoreStats) / sizeof(uint64_t)>;
        static_assert(sizeof(Words) == sizeof(StoreStats));
        Words before, after;
        for (size_t i = 0; i < before.size(); ++i) {
            before[i] = 10 + i;
            after[i] = 1000 * (i + 1) + before[i];
        }
        const auto result =
            difference(std::bit_cast<StoreStats>(after), std::bit_cast<StoreStats>(before));
        const Words got = std::bit_cast<Words>(result);
        const auto now = std::bit_cast<StoreStats>(after);
        size_t counters = 0;
        for (size_t i = 0; i < got.size(); ++i) counters += got[i] == 1000 * (i + 1);
        // All except values that describe the current state.
        QCOMPARE(counters, got.size() - 5);
        QCOMPARE(result.slotCount, now.slotCount);
        QCOMPARE(result.slotsUsed, now.slotsUsed);
        QCOMPARE(result.slotsReady, now.slotsReady);
        QCOMPARE(result.slotsToPrepare, now.slotsToPrepare);
        QCOMPARE(result.slotBytes, now.slotBytes);
    }

    void sumForgetsNoCounter() {
        using Words = std::array<uint64_t, sizeof(StoreCounters) / sizeof(uint64_t)>;
        Words a, b;
        for (size_t i = 0; i < a.size(); ++i) {
            a[i] = 10 + i;
            b[i] = 1000 * (i + 1);
        }
        auto total = std::bit_cast<StoreCounters>(a);
        total += std::bit_cast<StoreCounters>(b);
        const Words sum = std::bit_cast<Words>(total);
        for (size_t i = 0; i < a.size(); ++i) QCOMPARE(sum[i], a[i] + b[i]);
    }

    void warmLoadsAndSourcesAreOfTheRequest() {
        StoreStats before, after;
        before.warmReads = 5;
        after.warmReads = 7;
        before.bySource[1] = {10, 9, 8, 7};
        after.bySource[1] = {11, 11, 11, 11};
        const StoreStats d = difference(after, before);
        QCOMPARE(d.warmReads, uint64_t(2));
        QCOMPARE(d.bySource[1].issued, uint64_t(1));
        QCOMPARE(d.bySource[1].useful, uint64_t(2));
        QCOMPARE(d.bySource[1].late, uint64_t(3));
        QCOMPARE(d.bySource[1].wasted, uint64_t(4));
    }
};

QTEST_APPLESS_MAIN(TestStoreStats)
#include "test_store_stats.moc"
