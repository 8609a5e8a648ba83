// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <random>

#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStorePrefetch : public QObject {
    Q_OBJECT

    static RigOptions nextRouter(int64_t cacheSize = 8) {
        RigOptions options;
        options.cacheSize = cacheSize;
        options.source = PrefetchSource::NextRouter;
        options.prefetchThreads = 1;
        return options;
    }
    using Experts = std::vector<uint16_t>;

private slots:
    void hintedExpertIsAHit() {
        Rig rig = makeRig(nextRouter());
        QCOMPARE(useLayer(rig, 0, {0}), 0);
        rig.store->hint(1, Experts{3, 4});
        StoreFactory::settle(*rig.store);
        std::vector<Ticket> tickets;
        rig.store->request(1, Experts{3, 5}, tickets);
        QVERIFY(tickets[0].hit && tickets[0].byPrefetch);
        QVERIFY(!tickets[1].hit && !tickets[1].byPrefetch);
        for (const Ticket& ticket : tickets) QVERIFY(rig.store->wait(ticket).ok());
        rig.store->request(1, Experts{3}, tickets);
        QVERIFY(tickets[0].hit && !tickets[0].byPrefetch);  // already used since the prefetch
        QVERIFY(rig.store->wait(tickets[0]).ok());
        const StoreStats stats = rig.store->stats();
        QCOMPARE(stats.prefetchIssued, uint64_t(2));
        QCOMPARE(stats.prefetchUseful, uint64_t(1));
        QCOMPARE(stats.prefetchReads, uint64_t(2));
        QCOMPARE(stats.demandReads, uint64_t(2));
    }

    void demandJoinsAReadUnderWay() {
        Telemetry telemetry;
        RigOptions options = nextRouter();
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        rig.reader->hold();
        rig.store->hint(0, Experts{3});
        rig.reader->waitStarted(1);
        std::vector<Ticket> tickets;
        rig.store->request(0, Experts{3}, tickets);
        QVERIFY(!tickets[0].hit);
        rig.reader->letGo();
        auto pin = rig.store->wait(tickets[0]);
        QVERIFY(pin.ok() && recordIs(pin->record(), 0, 3));
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.reader->started().size(), size_t(1));
        const StoreStats stats = rig.store->stats();
        QCOMPARE(stats.prefetchLate, uint64_t(1));
        QCOMPARE(stats.hits, uint64_t(0));
        std::vector<Event> events;
        telemetry.drain(events);
        std::erase_if(events, [](const Event& e) { return e.type != EventType::ExpertRead; });
        QCOMPARE(events.size(), size_t(1));
        QVERIFY(events[0].expertRead.reason == ReadReason::Prefetch);
        QVERIFY(events[0].expertRead.needNs > 0);
    }

    // One I/O thread, three demand reads: the prefetch is read after the last of them.
    void demandGoesFirst() {
        RigOptions options = nextRouter();
        options.ioDepth = 1;
        Rig rig = makeRig(options);
        rig.reader->hold();
        std::vector<Ticket> tickets;
        rig.store->request(0, Experts{0, 1, 2}, tickets);
        rig.reader->waitStarted(1);
        rig.store->hint(1, Experts{5});
        rig.reader->let(0);
        rig.reader->waitStarted(2);
        rig.reader->let(1);
        rig.reader->waitStarted(3);
        rig.reader->letGo();
        StoreFactory::settle(*rig.store);
        QVERIFY(rig.reader->started() == (std::vector<int64_t>{0, 1, 2, 8 + 5}));
        for (const Ticket& ticket : tickets) QVERIFY(rig.store->wait(ticket).ok());
    }

    // A limited link that carries a prefetch is not idle, so the next prefetch waits.
    void prefetchUsesOnlyAnIdleLink() {
        RigOptions options = nextRouter();
        options.prefetchThreads = 3;
        options.manualClock = true;
        options.linkLimit = 8;
        Rig rig = makeRig(options);
        rig.clock->freeze();
        rig.store->hint(0, Experts{1, 2, 3});
        for (size_t i = 1; i <= 3; ++i) {
            rig.reader->waitStarted(i);
            QTest::qSleep(5);  // time for another thread to start one, which it must not
            QCOMPARE(rig.reader->started().size(), i);
            rig.clock->advance(uint64_t(kRecord) * 1000 / 8);
        }
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchReads, uint64_t(3));
    }

    // A demand read overtakes a prefetch on the link, and waits only for its own bytes.
    void demandOvertakesOnTheLink() {
        RigOptions options = nextRouter();
        options.manualClock = true;
        options.linkLimit = 8;
        Rig rig = makeRig(options);
        rig.clock->freeze();
        rig.store->hint(1, Experts{1});
        rig.store->setPrefetch(PrefetchSource::NextRouter, 2);
        rig.reader->waitStarted(1);
        std::vector<Ticket> tickets;
        rig.store->request(0, Experts{0}, tickets);
        rig.reader->waitStarted(2);
        rig.clock->advance(uint64_t(kRecord) * 1000 / 8);  // enough for one of the two
        QVERIFY(rig.store->wait(tickets[0]).ok());
        QCOMPARE(rig.store->stats().prefetchReads, uint64_t(0));
        rig.clock->advance(uint64_t(kRecord) * 1000 / 8);
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchReads, uint64_t(1));
    }

    void passedLayersAreCancelled() {
        Rig rig = makeRig(nextRouter());
        rig.reader->hold();
        rig.store->setPrefetch(PrefetchSource::NextRouter, 4);
        rig.store->hint(1, Experts{1, 2});
        rig.store->hint(2, Experts{4});
        rig.reader->waitStarted(1);
        std::vector<Ticket> tickets;
        rig.store->request(2, Experts{7}, tickets);  // layers 1 and 2 have passed
        rig.reader->letGo();
        QVERIFY(rig.store->wait(tickets[0]).ok());
        StoreFactory::settle(*rig.store);
        QVERIFY(rig.reader->started() == (std::vector<int64_t>{8 + 1, 16 + 7}));
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(1));
    }

    // An unused prefetch is evicted first.
    void unusedPrefetchIsEvictedFirst() {
        Rig rig = makeRig(nextRouter(2));
        for (int64_t layer = 0; layer < 4; ++layer) QCOMPARE(useLayer(rig, layer, {0}), 0);
        QCOMPARE(useLayer(rig, 0, {0}), 1);
        rig.store->hint(1, Experts{6});
        StoreFactory::settle(*rig.store);
        QCOMPARE(useLayer(rig, 1, {0, 1, 2, 3}), 1);  // not 6; all eight slots are in use
        QCOMPARE(StoreFactory::order(*rig.store).front(), uint32_t(8 + 6));
        QCOMPARE(useLayer(rig, 2, {5}), 0);
        QCOMPARE(rig.store->stats().prefetchWasted, uint64_t(1));
        QCOMPARE(rig.store->stats().evictions, uint64_t(1));
        QCOMPARE(useLayer(rig, 3, {0}), 1);
    }

    // Random use with pins. Checks every eviction that a hint causes.
    void neverDisplacesHotter() {
        for (int kind = 0; kind < 3; ++kind) {
            RigOptions options = nextRouter(4);
            options.experts = 12;
            options.policy = CachePolicyKind(kind);
            options.prefetchThreads = 2;
            Rig rig = makeRig(options);
            const int64_t slotCount = 16;
            std::mt19937 random(21);
            uint64_t displaced = 0;
            std::set<uint32_t> unused;  // prefetched, not requested since
            std::vector<Residency> was, is;
            const auto pick = [&] {
                std::set<uint16_t> chosen;
                while (chosen.size() < 3)
                    chosen.insert(uint16_t(std::min(random() % 12, random() % 12)));
                return Experts(chosen.begin(), chosen.end());
            };
            for (int step = 0; step < 800; ++step) {
                const int64_t layer = step % 4, target = (layer + 1) % 4;
                std::vector<Ticket> tickets;
                rig.store->request(layer, pick(), tickets);
                std::vector<Pin> pins;
                std::set<uint32_t> pinned;
                for (const Ticket& ticket : tickets) {
                    pins.push_back(std::move(*rig.store->wait(ticket)));
                    pinned.insert(uint32_t(layer * 12 + ticket.expert));
                    unused.erase(uint32_t(layer * 12 + ticket.expert));
                }
                StoreFactory::settle(*rig.store);
                const auto before = StoreFactory::order(*rig.store);
                rig.store->residency(was);
                rig.store->hint(target, pick());
                StoreFactory::settle(*rig.store);
                rig.store->residency(is);
                const auto after = StoreFactory::order(*rig.store);
                QVERIFY(int64_t(before.size() - after.size()) <= slotCount / 4);
                size_t kept = 0;
                for (size_t i = 0; i < before.size(); ++i) {
                    if (kept < after.size() && after[kept] == before[i]) {
                        ++kept;
                        continue;
                    }
                    ++displaced;
                    QVERIFY(int64_t(before.size() - i) > slotCount / 2);
                    QVERIFY(pinned.count(before[i]) == 0);
                    // Of any layer: its layer has passed.
                    if (unused.erase(before[i]) > 0) continue;
                    QVERIFY(before[i] / 12 != uint32_t(layer));
                    QVERIFY(before[i] / 12 != uint32_t(target));
                }
                for (uint32_t key = 0; key < is.size(); ++key)
                    if (was[key] != is[key] && is[key] == Residency::Resident) unused.insert(key);
                QCOMPARE(kept, after.size());  // nothing else was evicted
                for (size_t i = 0; i < pins.size(); ++i)
                    QVERIFY(recordIs(pins[i].record(), layer, tickets[i].expert));
            }
            QVERIFY(displaced > 100);
        }
    }

    void atMostAQuarterOfTheSlots() {
        Rig rig = makeRig(nextRouter(3));
        rig.store->hint(0, Experts{0, 1, 2, 3, 4, 5, 6, 7});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(3));  // of 12
        RigOptions tiny = nextRouter(3);
        tiny.layers = 1;
        rig = makeRig(tiny);
        rig.store->hint(0, Experts{0, 1});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(0));  // all three slots are needed
    }

    void depthIsHowFarAhead() {
        Rig rig = makeRig(nextRouter());
        QCOMPARE(useLayer(rig, 0, {0}), 0);
        rig.store->hint(2, Experts{5});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(0));
        QCOMPARE(useLayer(rig, 1, {0}), 0);
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(1));
        rig.store->hint(0, Experts{5});  // two layers ahead, past the last layer
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(1));
        rig.store->setPrefetch(PrefetchSource::NextRouter, 3);
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(2));
        rig.store->setPrefetch(PrefetchSource::NextRouter, 0);
        rig.store->hint(2, Experts{7});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(2));
    }

    void nearestLayerAndLikeliestFirst() {
        RigOptions options = nextRouter();
        options.prefetchThreads = 0;
        options.depth = 3;
        Rig rig = makeRig(options);
        rig.store->setPrefetchThreads(1);
        rig.reader->hold();
        rig.store->hint(2, Experts{7, 1});
        rig.reader->waitStarted(1);
        rig.store->hint(1, Experts{6, 3});
        rig.store->hint(0, Experts{2});
        rig.store->hint(1, Experts{4, 5});  // replaces 6 and 3
        rig.reader->letGo();
        StoreFactory::settle(*rig.store);
        QVERIFY(rig.reader->started() == (std::vector<int64_t>{16 + 7, 2, 8 + 4, 8 + 5, 16 + 1}));
    }

    void threadsAndSourceAreLive() {
        Rig rig = makeRig(nextRouter());
        rig.store->setPrefetchThreads(0);
        rig.store->hint(0, Experts{1});
        rig.store->setPrefetchThreads(3);
        StoreFactory::settle(*rig.store);
        // There were no threads at the time of the hint.
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(0));
        rig.store->hint(0, Experts{1});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(1));
        rig.store->setPrefetch(PrefetchSource::Off, 1);
        rig.store->hint(0, Experts{2});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().prefetchIssued, uint64_t(1));
        for (int round = 0; round < 20; ++round)
            QCOMPARE(rig.store->setPrefetchThreads(round % 5).effective, int64_t(round % 5));
    }

    void failedPrefetchCostsNobody() {
        Rig rig = makeRig(nextRouter());
        rig.reader->failNext(3, 1);
        rig.store->hint(0, Experts{3});
        StoreFactory::settle(*rig.store);
        StoreStats stats = rig.store->stats();
        QCOMPARE(stats.failedReads, uint64_t(1));
        QCOMPARE(stats.prefetchWasted, uint64_t(1));
        QCOMPARE(stats.slotsUsed, int64_t(0));
        QCOMPARE(useLayer(rig, 0, {3}), 0);
        // Requested while the prefetch fails: a demand read repeats it.
        rig.reader->failNext(8 + 4, 1);
        rig.reader->hold();
        rig.store->hint(1, Experts{4});
        rig.reader->waitStarted(3);
        std::vector<Ticket> tickets;
        rig.store->request(1, Experts{4}, tickets);
        rig.reader->letGo();
        QVERIFY(rig.store->wait(tickets[0]).ok());
        stats = rig.store->stats();
        QCOMPARE(stats.prefetchLate, uint64_t(1));
        QCOMPARE(stats.prefetchWasted, uint64_t(1));
        QCOMPARE(stats.demandReads, uint64_t(2));
    }

    // A demand read takes the slot of a prefetched record if all other slots are pinned.
    void demandTakesAPrefetchedSlot() {
        RigOptions options = nextRouter(1);
        Rig rig = makeRig(options);
        std::vector<Ticket> tickets;
        rig.store->request(0, Experts{0, 1, 2}, tickets);
        std::vector<Pin> pins;
        for (const Ticket& ticket : tickets) pins.push_back(std::move(*rig.store->wait(ticket)));
        rig.store->hint(1, Experts{7});
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(4));
        QCOMPARE(useLayer(rig, 0, {5}), 0);
        QCOMPARE(rig.store->stats().prefetchWasted, uint64_t(1));
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(4));
    }
};

QTEST_GUILESS_MAIN(TestStorePrefetch)
#include "test_store_prefetch.moc"
