// SPDX-License-Identifier: GPL-3.0-or-later
// Slots are prepared ahead of need, up to the largest size of the cache.
#include <QtTest>
#include <mutex>

#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr int kPatienceMs = 30'000;

// Two nodes. Records where memory was bound.
class TwoPlaces final : public Numa {
public:
    int nodes() const override { return 2; }
    std::string refusal() const override { return {}; }
    Result<bool> place(std::span<std::byte> memory, NumaPlace place) override {
        std::lock_guard lock(m_mutex);
        m_places[memory.data()] = place;
        return true;
    }
    Result<NumaPlace> placeOf(const std::byte* memory) const override {
        std::lock_guard lock(m_mutex);
        const auto it = m_places.find(memory);
        return it == m_places.end() ? NumaPlace{} : it->second;
    }
    std::vector<int> nodesOf(std::span<std::byte* const> pages) const override {
        std::vector<int> nodes;
        for (const std::byte* page : pages) nodes.push_back((*placeOf(page)).node);
        return nodes;
    }

private:
    mutable std::mutex m_mutex;
    std::map<const std::byte*, NumaPlace> m_places;
};

}  // namespace

class TestStoreMemory : public QObject {
    Q_OBJECT

private slots:
    void allSlotsArePreparedAndNoMore() {
        RigOptions options;
        options.cacheSize = 100;  // more experts than the model has
        options.prepareMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsToPrepare, int64_t(0), kPatienceMs);
        StoreStats stats = rig.store->stats();
        QCOMPARE(stats.slotsReady, int64_t(32));
        QCOMPARE(stats.slotsPrepared, uint64_t(32));
        QCOMPARE(stats.slotsUsed, int64_t(0));
        QCOMPARE(stats.slotBytes, 32 * kRecord);
        QCOMPARE(rig.memory->m_populated.load(), int64_t(32));
        // Prepared slots are used first, and the amount of memory does not change.
        for (int64_t layer = 0; layer < 4; ++layer)
            QVERIFY(useLayer(rig, layer, {0, 1, 2, 3, 4, 5, 6, 7}) == 0);
        stats = rig.store->stats();
        QCOMPARE(stats.freshReads, uint64_t(0));
        QCOMPARE(stats.slotsUsed, int64_t(32));
        QCOMPARE(stats.slotsReady, int64_t(0));
        QCOMPARE(stats.slotBytes, 32 * kRecord);
        QCOMPARE(rig.memory->m_populated.load(), int64_t(32));
    }

    void withoutPreparationEveryFirstLoadIsFresh() {
        Rig rig = makeRig({});
        QVERIFY(useLayer(rig, 0, {0, 1, 2, 3, 4, 5, 6, 7}) == 0);
        QCOMPARE(rig.store->stats().freshReads, uint64_t(8));
        QCOMPARE(rig.memory->m_populated.load(), int64_t(0));
    }

    // The slot being prepared does not delay reads, and is part of the size.
    void loadsDoNotWaitForTheThread() {
        RigOptions options;
        options.cacheSize = 2;
        options.prepareMemory = options.holdMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.memory->m_populating.load(), int64_t(1), kPatienceMs);
        for (int64_t layer = 0; layer < 4; ++layer)
            QVERIFY(useLayer(rig, layer, {0, 1, 2, 3}) == 0);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(8));
        QCOMPARE(rig.store->stats().freshReads, uint64_t(8));
        // The slot that was being prepared is no longer needed.
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotBytes, 8 * kRecord, kPatienceMs);
        QCOMPARE(rig.store->stats().slotsReady, int64_t(0));
        rig.memory->m_hold = false;
    }

    void shrinkingGivesPreparedSlotsBackFirst() {
        RigOptions options;
        options.prepareMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsReady, int64_t(32), kPatienceMs);
        QVERIFY(useLayer(rig, 0, {0, 1, 2, 3}) == 0);
        QCOMPARE(rig.store->setCacheSize(2).effective, int64_t(2));
        QCOMPARE(rig.store->stats().slotBytes, 8 * kRecord);
        QCOMPARE(rig.store->stats().slotsReady, int64_t(4));
        QCOMPARE(rig.store->stats().evictions, uint64_t(0));  // no expert in use was evicted
        QCOMPARE(useLayer(rig, 0, {0, 1, 2, 3}), 4);
        rig.store->setCacheSize(5);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotBytes, 20 * kRecord, kPatienceMs);
        QCOMPARE(rig.store->stats().slotsReady, int64_t(16));
        rig.store->setCacheSize(1);
        QCOMPARE(rig.store->stats().slotsReady, int64_t(0));
        QCOMPARE(rig.store->stats().slotBytes, 4 * kRecord);
    }

    void shrinkingCancelsWhatIsBeingPrepared() {
        RigOptions options;
        options.prepareMemory = options.holdMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.memory->m_populating.load(), int64_t(1), kPatienceMs);
        QVERIFY(useLayer(rig, 0, {0, 1, 2, 3}) == 0);
        rig.store->setCacheSize(1);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotBytes, 4 * kRecord, kPatienceMs);
        QCOMPARE(rig.memory->m_populated.load(), int64_t(0));
        rig.memory->m_hold = false;
    }

    void theEndDoesNotWaitForTheThread() {
        RigOptions options;
        options.prepareMemory = options.holdMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.memory->m_populating.load(), int64_t(1), kPatienceMs);
        rig.store.reset();
    }

    void memoryThatRunsOutEndsThePreparation() {
        RigOptions options;
        options.prepareMemory = options.holdMemory = true;
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.memory->m_populating.load(), int64_t(1), kPatienceMs);
        rig.memory->m_slots = 5;  // and the one being prepared
        rig.memory->m_hold = false;
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsReady, int64_t(6), kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsToPrepare, int64_t(0), kPatienceMs);
        for (int round = 0; round < 2; ++round)
            for (int64_t layer = 0; layer < 4; ++layer)
                QVERIFY(useLayer(rig, layer, {0, 1, 2, 3}) >= 0);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(6));
    }

    void preparedSlotsLieWhereNewOnesShould() {
        RigOptions options;
        options.prepareMemory = true;
        TwoPlaces* numa = nullptr;
        options.numa = [&] {
            auto made = std::make_unique<TwoPlaces>();
            numa = made.get();
            return made;
        };
        Rig rig = makeRig(options);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsReady, int64_t(32), kPatienceMs);
        QVERIFY(useLayer(rig, 0, {0, 1}) == 0);
        rig.store->setNuma(NumaMode::Bind, 1);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsReady, int64_t(30), kPatienceMs);
        QTRY_VERIFY_WITH_TIMEOUT(rig.store->state(KnobId::NumaNode).reason.empty(), kPatienceMs);
        for (int64_t layer = 1; layer < 4; ++layer) {
            std::vector<Ticket> tickets;
            const std::vector<uint16_t> experts = {0, 1, 2, 3};
            rig.store->request(layer, experts, tickets);
            for (const Ticket& ticket : tickets) {
                const auto pin = rig.store->wait(ticket);
                QVERIFY(pin.ok());
                QCOMPARE((*numa->placeOf(pin->record())).node, 1);
            }
        }
        QCOMPARE(rig.store->stats().freshReads, uint64_t(0));
        QCOMPARE(rig.store->stats().slotBytes, 32 * kRecord);
    }

    // If touching memory takes longer than a read, the cache grows as memory is prepared. Until
    // then a cold record gives up its slot, so that no token waits for new memory.
    void touchesThatTakeLongerThanReadsAreLeftToTheThread_data() {
        QTest::addColumn<int>("touchMs");
        QTest::addColumn<bool>("touched");
        QTest::newRow("slow touch") << 14 << false;
        QTest::newRow("slow read") << 1 << true;
    }
    void touchesThatTakeLongerThanReadsAreLeftToTheThread() {
        QFETCH(int, touchMs);
        QFETCH(bool, touched);
        RigOptions options;
        options.layers = 2;
        options.topK = 2;
        options.recordBytes = 4 << 20;
        options.linkLimit = 1000;  // 4 ms for each read
        options.ioDepth = 1;
        options.manualClock = options.prepareMemory = options.holdMemory = true;
        options.populateNs = uint64_t(touchMs) * 1'000'000;
        options.cacheSize = 5;  // 10 slots; the experts of two tokens are 8
        Rig rig = makeRig(options);
        const auto use = [&](int64_t layer, uint16_t expert) {
            std::vector<Ticket> tickets;
            rig.store->request(layer, {&expert, 1}, tickets);
            return rig.store->wait(tickets[0]).ok();
        };
        // Two slots are prepared. Reads into these measure the time of a read.
        QTRY_COMPARE_WITH_TIMEOUT(rig.memory->m_populating.load(), int64_t(1), kPatienceMs);
        rig.memory->m_slots = 1;
        rig.memory->m_hold = false;
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsReady, int64_t(2), kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(rig.store->stats().slotsToPrepare, int64_t(0), kPatienceMs);
        QVERIFY(use(1, 0) && use(1, 1));
        rig.memory->m_slots = 100;
        for (uint16_t expert = 0; expert < 6; ++expert) QVERIFY(use(0, expert));
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(8));
        QCOMPARE(rig.store->stats().freshReads, uint64_t(6));
        // Expert 0 of layer 1 has not been used recently.
        for (int i = 0; i < 40; ++i) QVERIFY(use(1, 1));
        // There is memory to prepare again, and the thread prepares it.
        rig.memory->m_hold = true;
        const int64_t begun = rig.memory->m_populating;
        rig.store->setCacheSize(5);
        QTRY_VERIFY_WITH_TIMEOUT(rig.memory->m_populating.load() > begun, kPatienceMs);
        QVERIFY(use(1, 2));
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(touched ? 9 : 8));
        QCOMPARE(rig.store->stats().freshReads, uint64_t(touched ? 7 : 6));
        QCOMPARE(rig.store->stats().evictions, uint64_t(touched ? 0 : 1));
        rig.memory->m_hold = false;
    }
};

QTEST_GUILESS_MAIN(TestStoreMemory)
#include "test_store_memory.moc"
