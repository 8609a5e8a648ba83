// SPDX-License-Identifier: GPL-3.0-or-later
// Concurrent engine threads, setters and readers of state; mainly for ThreadSanitizer.
#include <QtTest>
#include <atomic>
#include <random>
#include <thread>

#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStoreThreads : public QObject {
    Q_OBJECT

    static constexpr int64_t kLayers = 4, kExperts = 8;

    // Runs an engine thread: layer after layer, with at most `pinsHeld` pins. False: a wrong
    // record, or an error other than a failed read.
    static bool run(ExpertStore& store, int steps, size_t pinsHeld, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<Ticket> tickets;
        for (int step = 0; step < steps; ++step) {
            const int64_t layer = step % kLayers;
            std::set<uint16_t> chosen;
            const size_t count = random() % 16 == 0 ? size_t(kExperts) : 3;
            while (chosen.size() < count) chosen.insert(uint16_t(random() % kExperts));
            store.request(layer, std::vector<uint16_t>(chosen.begin(), chosen.end()), tickets);
            store.hint((layer + 1) % kLayers,
                       std::vector<uint16_t>{uint16_t(random() % 8), uint16_t(random() % 8)});
            std::vector<Pin> pins;
            for (const Ticket& ticket : tickets) {
                if (random() % 32 == 0) {
                    store.drop(ticket);
                    continue;
                }
                auto pin = store.wait(ticket);
                if (!pin.ok() && pin.status().code() != Code::IoError) return false;
                if (!pin.ok()) continue;
                if (!recordIs(pin->record(), layer, ticket.expert)) return false;
                pins.push_back(std::move(*pin));
                if (pins.size() > pinsHeld) pins.erase(pins.begin());
            }
        }
        return true;
    }

private slots:
    void everythingAtOnce() {
        Telemetry telemetry;
        RigOptions options;
        options.cacheSize = 3;
        options.source = PrefetchSource::NextRouter;
        options.prefetchThreads = 2;
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        ExpertStore& store = *rig.store;
        std::atomic<bool> stop{false};
        std::atomic<int> wrong{0}, running{2};
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                if (!run(store, 6000, 2 * i, i)) ++wrong;
                if (--running == 0) stop = true;
            });
        for (uint32_t i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                std::mt19937 random(99 + i);
                while (!stop) {
                    switch (random() % 7) {
                        case 0:
                            store.setCacheSize(1 + random() % kExperts);
                            break;
                        case 1:
                            store.setPolicy(CachePolicyKind(random() % 3));
                            break;
                        case 2:
                            store.setPrefetchThreads(random() % 4);
                            break;
                        case 3:
                            store.setPrefetch(PrefetchSource(random() % 4), random() % 5);
                            break;
                        case 4:
                            store.setLinkLimit(random() % 2 * 2000);
                            break;
                        case 5:
                            store.setIoMode(IoMode(random() % 2));
                            break;
                        case 6:
                            rig.reader->failNext(random() % 32, random() % 3);
                            break;
                    }
                    std::this_thread::sleep_for(std::chrono::microseconds(200));
                }
            });
        threads.emplace_back([&] {
            std::vector<Residency> shown;
            std::vector<Event> events;
            while (!stop) {
                const StoreStats stats = store.stats();
                if (stats.hits > stats.lookups) ++wrong;
                store.residency(shown);
                if (shown.size() != size_t(kLayers * kExperts)) ++wrong;
                if (store.state(KnobId::ExpertCacheSize).effective < 1) ++wrong;
                telemetry.drain(events);
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
        });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), 0);
        store.setLinkLimit(0);
        StoreFactory::settle(store);
        // All pins are released, so the cache shrinks to one expert per layer immediately.
        QCOMPARE(store.setCacheSize(1).effective, int64_t(1));
        QVERIFY(store.stats().slotsUsed <= kLayers);
    }

    // The store is destroyed while prefetches are queued, being read and paced.
    void closesWithReadsUnderWay() {
        for (int round = 0; round < 20; ++round) {
            RigOptions options;
            options.source = PrefetchSource::NextRouter;
            options.prefetchThreads = 2;
            options.depth = 4;
            options.linkLimit = 1;  // 8 ms for each record
            Rig rig = makeRig(options);
            for (int64_t layer = 0; layer < 4; ++layer)
                rig.store->hint(layer, std::vector<uint16_t>{1, 2, 3});
            std::vector<Ticket> tickets;
            rig.store->request(0, std::vector<uint16_t>{4, 5, 6, 7}, tickets);
            for (const Ticket& ticket : tickets) rig.store->drop(ticket);
            if (round % 2 == 0) rig.reader->waitStarted(1);
            rig.store.reset();
        }
    }
};

QTEST_GUILESS_MAIN(TestStoreThreads)
#include "test_store_threads.moc"
