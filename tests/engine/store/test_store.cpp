// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <numeric>

#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStore : public QObject {
    Q_OBJECT

    static std::vector<uint16_t> all(int64_t experts) {
        std::vector<uint16_t> list(static_cast<size_t>(experts));
        std::iota(list.begin(), list.end(), uint16_t(0));
        return list;
    }

private slots:
    void secondUseIsAHit() {
        Rig rig = makeRig({});
        QCOMPARE(useLayer(rig, 1, {3, 4}), 0);
        QCOMPARE(useLayer(rig, 1, {4, 5, 3}), 2);
        QCOMPARE(useLayer(rig, 2, {3}), 0);  // another layer's expert 3
        QCOMPARE(rig.store->stats().hits, uint64_t(2));
        QCOMPARE(rig.store->stats().lookups, uint64_t(6));
    }

    // Every cache size of at least one slot serves requests for all experts at once.
    void anySizeServesAnyRequest() {
        for (int64_t layers : {1, 2})
            for (int64_t size = 1; size <= 8; ++size) {
                RigOptions options;
                options.layers = layers;
                options.cacheSize = size;
                Rig rig = makeRig(options);
                for (int round = 0; round < 3; ++round)
                    for (int64_t layer = 0; layer < layers; ++layer)
                        QVERIFY(useLayer(rig, layer, all(8)) >= 0);
                const StoreStats stats = rig.store->stats();
                QVERIFY(stats.slotsUsed <= size * layers);
                QCOMPARE(stats.lookups, uint64_t(3 * 8 * layers));
                if (size == 8) QCOMPARE(stats.demandReads, uint64_t(8 * layers));
            }
    }

    // The second of two tickets holds the only slot. The first takes it, and the second is read
    // again.
    void aTicketThatCannotWaitTakesALaterOnesSlot() {
        RigOptions options;
        options.layers = 1;
        options.cacheSize = 1;
        Rig rig = makeRig(options);
        QCOMPARE(useLayer(rig, 0, {5}), 0);
        QCOMPARE(useLayer(rig, 0, {2, 5}), 1);
        QCOMPARE(rig.store->stats().demandReads, uint64_t(3));
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(1));
    }

    void moreWaitingPinsThanSlotsGrowRatherThanHang() {
        RigOptions options;
        options.layers = 1;
        options.cacheSize = 2;
        Rig rig = makeRig(options);
        std::vector<Ticket> tickets;
        rig.store->request(0, all(5), tickets);
        std::vector<Pin> pins;
        for (const Ticket& ticket : tickets) {
            auto pin = rig.store->wait(ticket);
            QVERIFY(pin.ok());
            pins.push_back(std::move(*pin));
        }
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(5));
        QCOMPARE(rig.store->state(KnobId::ExpertCacheSize).effective, int64_t(5));
        QCOMPARE(QString::fromStdString(rig.store->state(KnobId::ExpertCacheSize).reason),
                 "5 slots are in use by the current token");
        for (size_t i = 0; i < pins.size(); ++i) QVERIFY(recordIs(pins[i].record(), 0, int64_t(i)));
        pins.clear();
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(2));
        QCOMPARE(rig.store->state(KnobId::ExpertCacheSize).effective, int64_t(2));
    }

    void missesOfALayerGoOutTogether() {
        Rig rig = makeRig({});
        rig.reader->hold();
        std::vector<Ticket> tickets;
        rig.store->request(0, all(4), tickets);
        rig.reader->waitStarted(4);  // four I/O threads; no read has ended
        for (const Ticket& ticket : tickets) QVERIFY(!rig.store->ready(ticket));
        std::vector<Residency> shown;
        rig.store->residency(shown);
        QVERIFY(shown[2] == Residency::Reading);
        QVERIFY(shown[6] == Residency::OnDisk);
        rig.reader->letGo();
        for (const Ticket& ticket : tickets) QVERIFY(rig.store->wait(ticket).ok());
    }

    void oneReadForAllWhoWait() {
        Rig rig = makeRig({});
        rig.reader->hold();
        std::vector<Ticket> first, second;
        rig.store->request(0, std::vector<uint16_t>{6}, first);
        rig.reader->waitStarted(1);
        rig.store->request(0, std::vector<uint16_t>{6}, second);
        QVERIFY(!second[0].hit);
        rig.reader->letGo();
        auto a = rig.store->wait(first[0]);
        auto b = rig.store->wait(second[0]);
        QVERIFY(a.ok() && b.ok());
        QCOMPARE(a->record(), b->record());
        QCOMPARE(rig.store->stats().demandReads, uint64_t(1));
    }

    void lookUpsOfOneRequestDoNotEvictEachOther() {
        RigOptions options;
        options.layers = 1;
        options.cacheSize = 3;
        Rig rig = makeRig(options);
        QCOMPARE(useLayer(rig, 0, {0, 1, 2}), 0);
        QCOMPARE(useLayer(rig, 0, {7, 0}), 1);  // evicts 1, not 0
        QCOMPARE(useLayer(rig, 0, {0, 2, 7}), 3);
    }

    void shrinkUnderPinsConverges() {
        RigOptions options;
        options.cacheSize = 8;
        Rig rig = makeRig(options);
        std::vector<Ticket> tickets;
        for (int64_t layer = 0; layer < 4; ++layer) QCOMPARE(useLayer(rig, layer, all(8)), 0);
        rig.store->request(0, all(8), tickets);
        std::vector<Pin> pins;
        for (const Ticket& ticket : tickets) pins.push_back(std::move(*rig.store->wait(ticket)));
        KnobState state = rig.store->setCacheSize(1);
        QCOMPARE(state.requested, int64_t(1));
        QCOMPARE(state.effective, int64_t(2));
        QCOMPARE(QString::fromStdString(state.reason), "8 slots are in use by the current token");
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(8));
        pins.resize(5);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(5));
        for (size_t i = 0; i < pins.size(); ++i) QVERIFY(recordIs(pins[i].record(), 0, int64_t(i)));
        pins.clear();
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(4));
        state = rig.store->state(KnobId::ExpertCacheSize);
        QCOMPARE(state.effective, int64_t(1));
        QVERIFY(state.reason.empty());
        state = rig.store->setCacheSize(8);
        QCOMPARE(state.effective, int64_t(8));
        QCOMPARE(useLayer(rig, 3, all(8)), 0);
    }

    // Reads in flight keep their slots when the cache shrinks, until the experts were used.
    void shrinkDuringReads() {
        Rig rig = makeRig({});
        rig.reader->hold();
        std::vector<Ticket> tickets;
        rig.store->request(2, all(8), tickets);
        rig.reader->waitStarted(4);
        QCOMPARE(rig.store->setCacheSize(1).effective, int64_t(2));
        rig.reader->letGo();
        for (const Ticket& ticket : tickets) {
            auto pin = rig.store->wait(ticket);
            QVERIFY(pin.ok() && recordIs(pin->record(), 2, ticket.expert));
        }
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(4));
    }

    void memoryThatIsNotThereIsNotPromised() {
        RigOptions options;
        options.cacheSize = 2;
        Rig rig = makeRig(options);
        rig.memory->m_freeBytes = 13 * kRecord;  // 13 slots, 3 per layer
        const KnobState state = rig.store->setCacheSize(6);
        QCOMPARE(state.effective, int64_t(3));
        QCOMPARE(QString::fromStdString(state.reason), "memory for 6 could not be allocated");
        QCOMPARE(rig.store->stats().slotCount, int64_t(12));
    }

    void allocationThatFailsLaterShrinksTheCache() {
        RigOptions options;
        options.cacheSize = 2;
        Rig rig = makeRig(options);
        rig.memory->m_slots = 5;
        for (int round = 0; round < 2; ++round)
            for (int64_t layer = 0; layer < 4; ++layer) QVERIFY(useLayer(rig, layer, all(8)) >= 0);
        QCOMPARE(rig.store->stats().slotCount, int64_t(5));
        QCOMPARE(rig.store->state(KnobId::ExpertCacheSize).effective, int64_t(1));
        QCOMPARE(QString::fromStdString(rig.store->state(KnobId::ExpertCacheSize).reason),
                 "memory for 2 could not be allocated");
        rig.memory->m_slots = 1000;
        QCOMPARE(rig.store->setCacheSize(2).effective, int64_t(2));
        for (int64_t layer = 0; layer < 4; ++layer) QVERIFY(useLayer(rig, layer, all(8)) >= 0);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(8));
    }

    void noMemoryAtAllIsAnError() {
        Rig rig = makeRig({});
        rig.memory->m_slots = 0;
        std::vector<Ticket> tickets;
        rig.store->request(0, std::vector<uint16_t>{1, 2}, tickets);
        for (const Ticket& ticket : tickets) {
            const auto pin = rig.store->wait(ticket);
            QVERIFY(!pin.ok());
            QVERIFY(pin.status().code() == Code::OutOfMemory);
        }
        rig.memory->m_slots = 100;
        rig.store->setCacheSize(2);
        QCOMPARE(useLayer(rig, 0, {1, 2}), 0);
    }

    void failedReadIsRetriedOnce() {
        Telemetry telemetry;
        RigOptions options;
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        rig.reader->failNext(1 * 8 + 3, 1);
        QCOMPARE(useLayer(rig, 1, {3}), 0);
        QCOMPARE(rig.store->stats().failedReads, uint64_t(1));
        QCOMPARE(rig.store->stats().demandReads, uint64_t(1));
        std::vector<Event> events;
        telemetry.drain(events);
        QCOMPARE(events.size(), size_t(2));
        QCOMPARE(events[0].expertRead.failed, uint8_t(1));
        QCOMPARE(events[1].expertRead.failed, uint8_t(0));
        QCOMPARE(events[1].expertRead.layer, uint16_t(2));  // the model's layer
        QCOMPARE(events[1].expertRead.expert, uint16_t(3));
        QVERIFY(events[1].expertRead.needNs >= events[1].expertRead.readNs);
    }

    void readThatFailsTwiceIsAnErrorAndTheStoreLivesOn() {
        Rig rig = makeRig({});
        rig.reader->failNext(1 * 8 + 3, 2);
        std::vector<Ticket> tickets;
        rig.store->request(1, std::vector<uint16_t>{3, 4}, tickets);
        const auto pin = rig.store->wait(tickets[0]);
        QVERIFY(!pin.ok());
        QVERIFY(pin.status().code() == Code::IoError);
        QCOMPARE(QString::fromStdString(pin.status().message()),
                 "experts/layer_2.bin: expert 3 of layer 2 could not be read at byte 24,576: "
                 "Input/output error");
        QVERIFY(rig.store->wait(tickets[1]).ok());
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(1));
        QCOMPARE(useLayer(rig, 1, {3, 4}), 1);
    }

    void failureReachesEveryTicket() {
        Rig rig = makeRig({});
        rig.reader->failNext(3, 2);
        rig.reader->hold();
        std::vector<Ticket> first, second;
        rig.store->request(0, std::vector<uint16_t>{3}, first);
        rig.store->request(0, std::vector<uint16_t>{3}, second);
        rig.reader->letGo();
        QVERIFY(!rig.store->wait(first[0]).ok());
        QVERIFY(!rig.store->wait(second[0]).ok());
        QCOMPARE(useLayer(rig, 0, {3}), 0);
    }

    void shortReadsAreContinued() {
        Rig rig = makeRig({});
        // Ends within a block; the read continues at the start of the block.
        rig.reader->shortReads(5000);
        QCOMPARE(useLayer(rig, 0, {1, 2}), 0);
        rig.store->setIoMode(IoMode::Buffered);
        rig.reader->shortReads(1000);
        QCOMPARE(useLayer(rig, 1, {1, 2}), 0);
        QCOMPARE(rig.store->stats().failedReads, uint64_t(0));
    }

    void fileCutShortNamesTheByte() {
        Rig rig = makeRig({});
        rig.reader->endAt(2 * kRecord + 4200);
        QCOMPARE(useLayer(rig, 0, {0, 1}), 0);
        std::vector<Ticket> tickets;
        rig.store->request(0, std::vector<uint16_t>{2}, tickets);
        const auto pin = rig.store->wait(tickets[0]);
        QVERIFY(!pin.ok());
        QCOMPARE(QString::fromStdString(pin.status().message()),
                 "experts/layer_1.bin: expert 2 of layer 1 could not be read at byte 20,584: "
                 "the file ends there");
    }

    void ticketsThatMakeNoSenseAreErrors() {
        Rig rig = makeRig({});
        std::vector<Ticket> tickets;
        rig.store->request(1, std::vector<uint16_t>{3, 900}, tickets);
        QCOMPARE(tickets.size(), size_t(2));
        QVERIFY(rig.store->wait(tickets[0]).ok());
        QVERIFY(rig.store->wait(tickets[0]).status().code() == Code::Internal);
        QVERIFY(rig.store->wait(tickets[1]).status().code() == Code::InvalidArgument);
        rig.store->request(77, std::vector<uint16_t>{3}, tickets);
        QVERIFY(rig.store->wait(tickets[0]).status().code() == Code::InvalidArgument);
        QCOMPARE(rig.store->stats().lookups, uint64_t(1));
    }

    void droppedTicketsHoldNothing() {
        RigOptions options;
        options.layers = 1;
        options.cacheSize = 2;
        Rig rig = makeRig(options);
        rig.reader->hold();
        std::vector<Ticket> tickets;
        rig.store->request(0, all(6), tickets);
        rig.reader->waitStarted(2);
        for (const Ticket& ticket : tickets) rig.store->drop(ticket);
        rig.reader->letGo();
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.reader->started().size(), size_t(2));  // the others were never started
        QCOMPARE(useLayer(rig, 0, {4, 5}), 0);
    }

    void pinsMove() {
        Rig rig = makeRig({});
        std::vector<Ticket> tickets;
        rig.store->request(0, std::vector<uint16_t>{1, 2}, tickets);
        Pin a = std::move(*rig.store->wait(tickets[0]));
        Pin b = std::move(*rig.store->wait(tickets[1]));
        const std::byte* record = a.record();
        b = std::move(a);
        QVERIFY(!a && b);
        QCOMPARE(b.record(), record);
        b.release();
        QVERIFY(!b && b.record() == nullptr);
        rig.store->setCacheSize(1);
        QCOMPARE(rig.store->stats().slotsUsed, int64_t(2));  // capacity 4, both evictable
    }

    // Reads take as long as the link needs, to the nanosecond, on a clock that only reads advance.
    void linkLimitPacesReads() {
        RigOptions options;
        options.manualClock = true;
        options.linkLimit = 25;
        Rig rig = makeRig(options);
        const uint64_t from = rig.clock->now();
        for (int64_t layer = 0; layer < 4; ++layer) QCOMPARE(useLayer(rig, layer, all(8)), 0);
        const uint64_t bytes = 4 * 8 * kRecord;
        QCOMPARE(rig.clock->now() - from, bytes * 1000 / 25);
        QCOMPARE(rig.store->stats().stallNs <= bytes * 1000 / 25, true);

        rig.store->setCacheSize(1);
        rig.store->setLinkLimit(100);
        const uint64_t then = rig.clock->now();
        QVERIFY(useLayer(rig, 0, all(4)) >= 0);
        const uint64_t loaded = rig.store->stats().bytesRead - bytes;
        QCOMPARE(rig.clock->now() - then, loaded * 1000 / 100);
    }

    void loadTimesAddUp() {
        Telemetry telemetry;
        RigOptions options;
        options.manualClock = true;
        options.linkLimit = 8;
        options.ioDepth = 1;
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        QCOMPARE(useLayer(rig, 0, {0, 1, 2}), 0);
        std::vector<Event> events;
        telemetry.drain(events);
        QCOMPARE(events.size(), size_t(3));
        constexpr uint64_t kReadNs = uint64_t(kRecord) * 1000 / 8;
        for (uint64_t i = 0; i < 3; ++i) {
            QCOMPARE(events[i].expertRead.readNs, kReadNs);
            QCOMPARE(events[i].expertRead.queueNs, i * kReadNs);
            QCOMPARE(events[i].expertRead.needNs, (i + 1) * kReadNs);
        }
    }

    void evictionsTellUseAndAge() {
        Telemetry telemetry;
        RigOptions options;
        options.layers = 1;
        options.cacheSize = 1;
        options.manualClock = true;
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        QCOMPARE(useLayer(rig, 0, {4}), 0);
        QCOMPARE(useLayer(rig, 0, {4}), 1);
        rig.clock->advance(1234);
        QCOMPARE(useLayer(rig, 0, {5}), 0);
        std::vector<Event> events;
        telemetry.drain(events);
        const auto eviction = std::find_if(events.begin(), events.end(), [](const Event& e) {
            return e.type == EventType::Eviction;
        });
        QVERIFY(eviction != events.end());
        QCOMPARE(eviction->eviction.layer, uint16_t(1));
        QCOMPARE(eviction->eviction.expert, uint16_t(4));
        QCOMPARE(eviction->eviction.uses, uint32_t(2));
        QCOMPARE(eviction->eviction.residentNs, uint64_t(1234));
    }
};

QTEST_GUILESS_MAIN(TestStore)
#include "test_store.moc"
