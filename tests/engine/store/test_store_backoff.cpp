// SPDX-License-Identifier: GPL-3.0-or-later
// Prefetching that costs more than it saves pauses itself, reports this, and resumes; and other
// warnings of the store.
#include <QtTest>
#include <thread>

#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStoreBackoff : public QObject {
    Q_OBJECT

    static RigOptions prefetching() {
        RigOptions options;
        options.layers = 4;
        options.experts = 32;
        options.cacheSize = 5;
        options.source = PrefetchSource::NextRouter;
        options.prefetchThreads = 1;
        return options;
    }
    // Processes a layer with two hints, right or wrong, after waiting for the prefetches.
    static bool layer(Rig& rig, int64_t step, bool right) {
        const int64_t layer = step % rig.layers;
        const auto base = uint16_t(step % 8 * 4);
        const std::vector<uint16_t> used{base, uint16_t(base + 1)};
        const std::vector<uint16_t> other{uint16_t(base + 2), uint16_t(base + 3)};
        rig.store->hint(layer, right ? used : other);
        StoreFactory::settle(*rig.store);
        return useLayer(rig, layer, used) >= 0;
    }
    // The number of steps until prefetching is suspended, or is no longer; -1: not within the
    // limit.
    static int64_t stepsUntil(Rig& rig, int64_t& step, bool suspended, bool right, int64_t limit) {
        for (int64_t i = 0; i < limit; ++i) {
            if ((rig.store->state(KnobId::PrefetchSource).effective == 0) == suspended) return i;
            if (!layer(rig, step++, right)) return -1;
        }
        return -1;
    }

    // Processes a layer with one right and one wrong prediction. The right one is prefetched in
    // `savedNs`. The wrong one is read for `delayNs` after the layer begins, so the layer's other
    // expert waits for it and then takes 1 ms. Returns early when prefetching is suspended.
    static bool halfRightLayer(Rig& rig, int64_t step, uint64_t savedNs, uint64_t delayNs) {
        const int64_t layer = step % rig.layers;
        const auto base = uint16_t(step % 8 * 4);
        const int64_t firstKey = layer * rig.experts + base;
        size_t reads = rig.reader->started().size();
        rig.reader->hold();
        const auto readAhead = [&](uint16_t expert) {
            if (rig.store->state(KnobId::PrefetchSource).effective == 0) return false;
            const std::vector<uint16_t> hints{expert};
            rig.store->hint(layer, hints);
            rig.reader->waitStarted(++reads);
            return true;
        };
        if (!readAhead(base)) return true;
        rig.clock->advance(savedNs);
        rig.reader->letGo();
        StoreFactory::settle(*rig.store);
        rig.reader->hold();
        if (delayNs > 0 && !readAhead(uint16_t(base + 2))) return true;
        const std::vector<uint16_t> used{base, uint16_t(base + 1)};
        std::vector<Ticket> tickets;
        rig.store->request(layer, used, tickets);
        rig.reader->waitStarted(++reads);
        rig.clock->advance(delayNs);
        const uint64_t completed = rig.store->stats().prefetchReads;
        rig.reader->let(firstKey + 2);
        while (delayNs > 0 && rig.store->stats().prefetchReads == completed) {
            std::this_thread::yield();
        }
        rig.clock->advance(1'000'000);
        rig.reader->letGo();
        bool good = tickets[0].hit && !tickets[1].hit;
        for (const Ticket& ticket : tickets) good = rig.store->wait(ticket).ok() && good;
        StoreFactory::settle(*rig.store);
        return good;
    }

private slots:
    void wrongGuessesSuspendAndProbe() {
        Rig rig = makeRig(prefetching());
        int64_t step = 0;
        QVERIFY(stepsUntil(rig, step, true, false, 2000) > 0);
        const KnobState state = rig.store->state(KnobId::PrefetchSource);
        QCOMPARE(state.requested, int64_t(PrefetchSource::NextRouter));
        QCOMPARE(state.effective, int64_t(PrefetchSource::Off));
        QCOMPARE(state.reason, std::string("backed off: 100 % late or wasted in the last 400"));
        const uint64_t issued = rig.store->stats().prefetchIssued;
        for (int i = 0; i < 100; ++i) QVERIFY(layer(rig, step++, false));
        QCOMPARE(rig.store->stats().prefetchIssued, issued);

        // It resumes by itself, is wrong again, and pauses for a longer time.
        const int64_t pause = stepsUntil(rig, step, false, false, 10'000);
        QVERIFY(pause > 0);
        QVERIFY(stepsUntil(rig, step, true, false, 2000) > 0);
        QVERIFY(rig.store->state(KnobId::PrefetchSource).reason.find("in the last 100") !=
                std::string::npos);
        const int64_t longer = stepsUntil(rig, step, false, false, 20'000);
        QVERIFY2(longer > pause + pause / 2, std::to_string(longer).c_str());
    }

    void rightGuessesGoOn() {
        RigOptions options = prefetching();
        options.cacheSize = 3;  // experts are evicted before they are used again
        Rig rig = makeRig(options);
        for (int64_t step = 0; step < 1500; ++step) QVERIFY(layer(rig, step, true));
        QVERIFY(rig.store->stats().prefetchUseful > 800);
        QCOMPARE(rig.store->state(KnobId::PrefetchSource).effective,
                 int64_t(PrefetchSource::NextRouter));
        QVERIFY(rig.store->state(KnobId::PrefetchSource).reason.empty());
    }

    // Half of the predictions are right, so the result depends on what they save and what the
    // others cost.
    void delaysOfOtherReadsCount_data() {
        QTest::addColumn<int>("savedMs");
        QTest::addColumn<QString>("reason");
        QTest::newRow("cost more") << 2
                                   << "backed off: delayed other reads by 582 ms and saved 388 ms "
                                      "in the last 400";
        QTest::newRow("save more") << 4 << "";
    }
    void delaysOfOtherReadsCount() {
        QFETCH(int, savedMs);
        QFETCH(QString, reason);
        RigOptions options = prefetching();
        options.cacheSize = 3;
        options.manualClock = true;
        Rig rig = makeRig(options);
        int64_t step = 0;
        // Measures the time of a read without prefetches, after every slot has been used.
        for (; step < 12; ++step) QVERIFY(halfRightLayer(rig, step, 0, 0));
        const uint64_t saved = uint64_t(savedMs) * 1'000'000;
        for (; step < 300 && rig.store->state(KnobId::PrefetchSource).effective != 0; ++step) {
            QVERIFY(halfRightLayer(rig, step, saved, 3'000'000));
        }
        QCOMPARE(QString::fromStdString(rig.store->state(KnobId::PrefetchSource).reason), reason);
        QCOMPARE(step == 300, reason.isEmpty());
    }

    void aChangeOfTheSettingEndsThePause() {
        Rig rig = makeRig(prefetching());
        int64_t step = 0;
        QVERIFY(stepsUntil(rig, step, true, false, 2000) > 0);
        rig.store->setPrefetch(PrefetchSource::NextRouter, 1);  // no change: the pause continues
        QCOMPARE(rig.store->state(KnobId::PrefetchSource).effective, int64_t(PrefetchSource::Off));
        rig.store->setPrefetch(PrefetchSource::PreviousToken, 1);
        QCOMPARE(rig.store->state(KnobId::PrefetchSource).effective,
                 int64_t(PrefetchSource::PreviousToken));
        QVERIFY(rig.store->state(KnobId::PrefetchSource).reason.empty());
    }

    void countedBySource() {
        Rig rig = makeRig(prefetching());
        for (int64_t step = 0; step < 8; ++step) QVERIFY(layer(rig, step, true));
        rig.store->setPrefetch(PrefetchSource::PreviousToken, 1);
        for (int64_t step = 8; step < 20; ++step) QVERIFY(layer(rig, step, step % 2 == 0));
        const StoreStats stats = rig.store->stats();
        const PrefetchCounts& router = stats.bySource[size_t(PrefetchSource::NextRouter)];
        const PrefetchCounts& token = stats.bySource[size_t(PrefetchSource::PreviousToken)];
        QVERIFY(router.issued > 0 && token.issued > 0);
        QCOMPARE(router.useful, router.issued);
        QVERIFY(token.useful < token.issued);
        QCOMPARE(router.issued + token.issued, stats.prefetchIssued);
        QCOMPARE(router.useful + token.useful, stats.prefetchUseful);
    }

    void cacheBelowOneTokenIsWarnedOf() {
        RigOptions options;
        options.layers = 4;
        options.experts = 16;
        options.cacheSize = 2;
        options.topK = 4;
        Rig rig = makeRig(options);
        const std::string warning = rig.store->warning();
        QVERIFY2(
            warning.find("8 expert slots hold fewer than the 16 experts that one token uses") == 0,
            warning.c_str());
        rig.store->setCacheSize(4);
        QCOMPARE(rig.store->warning(), std::string());
    }
};

QTEST_GUILESS_MAIN(TestStoreBackoff)
#include "test_store_backoff.moc"
