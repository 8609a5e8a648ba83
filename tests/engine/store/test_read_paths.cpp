// SPDX-License-Identifier: GPL-3.0-or-later
// Both ways of reading, io_uring and pread on threads, on real files with injected faults.
#include <QtTest>

#include "faulty_reads.h"
#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestReadPaths : public QObject {
    Q_OBJECT

    static constexpr int64_t kBytes = 12288;

    static void paths() {
        QTest::addColumn<bool>("uring");
        QTest::newRow("threads") << false;
        QTest::newRow("io_uring") << true;
    }
    struct Opened {
        std::unique_ptr<ExpertStore> store;
        std::shared_ptr<Faults> faults = std::make_shared<Faults>();
    };
    // Empty if the machine has no io_uring.
    static Opened open(const ExpertFolder& folder, StoreOptions options, Telemetry* t = nullptr) {
        QFETCH(bool, uring);
        Opened opened;
        StoreParts parts;
        parts.queue = faultyQueue(folder, uring, opened.faults);
        if (parts.queue == nullptr) return opened;
        auto store =
            StoreFactory::open(StoreFactory::shapeOf(folder.info), options, t, std::move(parts));
        if (store) opened.store = std::move(*store);
        return opened;
    }
    static StoreOptions sized(int64_t cacheSize) {
        StoreOptions options;
        options.cacheSize = cacheSize;
        options.prefetchThreads = 0;
        return options;
    }
    static bool right(Result<Pin> pin, int64_t layer, int64_t expert) {
        if (!pin.ok()) qWarning("%s", pin.status().text().c_str());
        return pin.ok() && recordIs(pin->record(), layer, expert, kBytes);
    }
    static bool all(ExpertStore& store, const ExpertFolder& folder) {
        std::vector<Ticket> tickets;
        bool good = true;
        for (int64_t layer = 0; layer < int64_t(folder.info.expertLayers.size()); ++layer) {
            std::vector<uint16_t> experts;
            for (int64_t e = 0; e < folder.info.config.numExperts; ++e)
                experts.push_back(uint16_t(e));
            store.request(layer, experts, tickets);
            for (const Ticket& t : tickets) good = right(store.wait(t), layer, t.expert) && good;
        }
        return good;
    }

private slots:
    void sameBytesAtEveryDepthAndMode_data() { paths(); }
    void sameBytesAtEveryDepthAndMode() {
        const ExpertFolder folder(3, 16, kBytes);
        auto [store, faults] = open(folder, sized(4));
        if (store == nullptr) QSKIP("no io_uring here");
        for (const IoMode mode : {IoMode::Direct, IoMode::Buffered}) {
            store->setIoMode(mode);
            for (const int64_t depth : {1, 3, 64, 8}) {
                QCOMPARE(store->setIoDepth(depth).effective, depth);
                QVERIFY(all(*store, folder));
            }
        }
        QFETCH(bool, uring);
        const std::string path = store->readPath();
        QVERIFY2(path.find(uring ? "io_uring, " : "pread on threads") == 0, path.c_str());
        QVERIFY2(path.find("buffered") != std::string::npos, path.c_str());
    }

    void depthBoundsTheReadsInFlight_data() { paths(); }
    void depthBoundsTheReadsInFlight() {
        const ExpertFolder folder(1, 16, kBytes);
        StoreOptions options = sized(16);
        options.ioDepth = 3;
        auto [store, faults] = open(folder, options);
        if (store == nullptr) QSKIP("no io_uring here");
        faults->hold();
        std::vector<Ticket> tickets;
        store->request(0, std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6, 7}, tickets);
        faults->waitHeld(3);
        QCOMPARE(faults->held(), 3);
        store->setIoDepth(5);
        faults->waitHeld(5);
        QCOMPARE(faults->held(), 5);
        faults->letGo();
        for (const Ticket& t : tickets) QVERIFY(right(store->wait(t), 0, t.expert));
    }

    void shortReadsGoOn_data() { paths(); }
    void shortReadsGoOn() {
        const ExpertFolder folder(2, 6, kBytes);
        auto [store, faults] = open(folder, sized(2));
        if (store == nullptr) QSKIP("no io_uring here");
        for (const int64_t most : {4096, 5000, 8192}) {
            faults->shortReads(most);
            QVERIFY(all(*store, folder));
        }
        QCOMPARE(store->stats().failedReads, uint64_t(0));
    }

    void interruptedReadsAreReadAgain_data() { paths(); }
    void interruptedReadsAreReadAgain() {
        QFETCH(bool, uring);
        if (!uring) QSKIP("pread is repeated by the reader itself");
        const ExpertFolder folder(1, 4, kBytes);
        auto [store, faults] = open(folder, sized(2));
        if (store == nullptr) QSKIP("no io_uring here");
        faults->failNext(EAGAIN, 3);
        QVERIFY(all(*store, folder));
        QCOMPARE(store->stats().failedReads, uint64_t(0));
    }

    void oneErrorIsRetriedTwoAreTold_data() { paths(); }
    void oneErrorIsRetriedTwoAreTold() {
        const ExpertFolder folder(1, 4, kBytes);
        auto [store, faults] = open(folder, sized(2));
        if (store == nullptr) QSKIP("no io_uring here");
        std::vector<Ticket> tickets;
        faults->failNext(EIO, 1);
        store->request(0, std::vector<uint16_t>{1}, tickets);
        QVERIFY(right(store->wait(tickets[0]), 0, 1));
        QCOMPARE(store->stats().failedReads, uint64_t(1));
        faults->failNext(EIO, 2);
        store->request(0, std::vector<uint16_t>{3}, tickets);
        const auto pin = store->wait(tickets[0]);
        QVERIFY(!pin.ok());
        const std::string text = pin.status().text();
        QVERIFY2(text.find("experts/layer_0.bin: expert 3 of layer 0 could not be read at byte "
                           "36,864: Input/output error") != std::string::npos,
                 text.c_str());
        QVERIFY(all(*store, folder));
    }

    void fileCutShortWhileOpen_data() { paths(); }
    void fileCutShortWhileOpen() {
        const ExpertFolder folder(1, 4, kBytes);
        auto [store, faults] = open(folder, sized(1));
        if (store == nullptr) QSKIP("no io_uring here");
        std::filesystem::resize_file(folder.info.dir / folder.info.expertLayers[0].file, 30000);
        std::vector<Ticket> tickets;
        store->request(0, std::vector<uint16_t>{2}, tickets);
        const auto pin = store->wait(tickets[0]);
        QVERIFY(!pin.ok());
        const std::string text = pin.status().text();
        QVERIFY2(text.find("at byte 30,000: the file ends there") != std::string::npos,
                 text.c_str());
        store->request(0, std::vector<uint16_t>{1}, tickets);
        QVERIFY(right(store->wait(tickets[0]), 0, 1));
    }

    // Without memory for more slots the store keeps its size, reports this, and continues to read.
    void noMemoryToGrow_data() { paths(); }
    void noMemoryToGrow() {
        QFETCH(bool, uring);
        const ExpertFolder folder(2, 8, kBytes);
        auto limited = std::make_unique<LimitedMemory>();
        LimitedMemory* const memory = limited.get();
        StoreParts parts;
        parts.queue = faultyQueue(folder, uring, std::make_shared<Faults>());
        if (parts.queue == nullptr) QSKIP("no io_uring here");
        parts.memory = std::move(limited);
        auto store = StoreFactory::open(StoreFactory::shapeOf(folder.info), sized(2), nullptr,
                                        std::move(parts));
        QVERIFY(store.ok() && all(**store, folder));
        memory->m_slots = 3;
        (*store)->setCacheSize(8);
        QVERIFY(all(**store, folder));
        const KnobState state = (*store)->state(KnobId::ExpertCacheSize);
        QCOMPARE(state.requested, int64_t(8));
        QCOMPARE(state.effective, int64_t(3));
        QVERIFY(state.reason.find("could not be allocated") != std::string::npos);
        memory->m_slots = 100;
        QCOMPARE((*store)->setCacheSize(8).effective, int64_t(8));
        QVERIFY(all(**store, folder));
    }

    // A prefetch that hangs in the system blocks neither demand reads nor the end of the store.
    void blockedPrefetchHoldsNobodyUp_data() { paths(); }
    void blockedPrefetchHoldsNobodyUp() {
        const ExpertFolder folder(2, 8, kBytes);
        StoreOptions options = sized(8);
        options.prefetchThreads = 1;
        auto [store, faults] = open(folder, options);
        if (store == nullptr) QSKIP("no io_uring here");
        std::vector<Ticket> tickets;
        store->request(0, std::vector<uint16_t>{0}, tickets);
        QVERIFY(right(store->wait(tickets[0]), 0, 0));
        faults->hold();
        store->hint(1, std::vector<uint16_t>{5});
        faults->waitHeld(1);
        faults->holdOnlyThese();
        store->request(1, std::vector<uint16_t>{5, 1, 2}, tickets);
        QVERIFY(right(store->wait(tickets[1]), 1, 1));
        QVERIFY(right(store->wait(tickets[2]), 1, 2));
        QVERIFY(!store->ready(tickets[0]));
        faults->letGo();
        QVERIFY(right(store->wait(tickets[0]), 1, 5));
        QCOMPARE(store->stats().prefetchLate, uint64_t(1));
    }

    void readEventsCarryQueueReadAndNeed_data() { paths(); }
    void readEventsCarryQueueReadAndNeed() {
        const ExpertFolder folder(1, 4, kBytes);
        Telemetry telemetry;
        StoreOptions options = sized(4);
        options.ioDepth = 1;
        auto [store, faults] = open(folder, options, &telemetry);
        if (store == nullptr) QSKIP("no io_uring here");
        QVERIFY(all(*store, folder));
        StoreFactory::settle(*store);
        std::vector<Event> events;
        telemetry.drain(events);
        int reads = 0;
        for (const Event& e : events) {
            if (e.type != EventType::ExpertRead) continue;
            ++reads;
            QVERIFY(e.expertRead.readNs > 0);
            QCOMPARE(e.expertRead.needNs, e.expertRead.queueNs + e.expertRead.readNs);
            QVERIFY(reads == 1 || e.expertRead.queueNs > 0);  // the second read waits for the first
        }
        QCOMPARE(reads, 4);
    }

    // Memory that may be moved is never registered with io_uring.
    void movableMemoryIsNotRegistered() {
        const ExpertFolder folder(1, 4, kBytes);
        const auto faults = std::make_shared<Faults>();
        const auto queue = faultyQueue(folder, true, faults);
        if (queue == nullptr) QSKIP("no io_uring here");
        const StoreShape shape = StoreFactory::shapeOf(folder.info);
        ManualClock clock;
        QVERIFY(queue->start(shape, clock, 4, [](uint32_t, const ReadOutcome&) {}).ok());
        SlotMemory memory;
        std::byte* const slot = memory.allocate(kBytes);
        const auto read = [&](int64_t expert) {
            const ReadOutcome outcome = queue->read({0, 0, expert, {slot, kBytes}});
            return outcome.status.ok() && recordIs(slot, 0, expert, kBytes);
        };
        QVERIFY(read(0));
        if (faults->m_registered == 0) QSKIP("the kernel registers no memory here");
        QCOMPARE(faults->m_registered.load(), 1);
        queue->keepMovable(slot, true);
        QCOMPARE(faults->m_registered.load(), 0);
        QVERIFY(read(1));
        QCOMPARE(faults->m_registered.load(), 0);
        queue->keepMovable(slot, false);
        QVERIFY(read(2));
        QCOMPARE(faults->m_registered.load(), 1);
        queue->keepMovable(slot, true);
        queue->forget(slot);
        QVERIFY(read(3));
        QCOMPARE(faults->m_registered.load(), 1);
        queue->forget(slot);
        queue->stop();
        memory.free(slot, kBytes);
    }
};

QTEST_GUILESS_MAIN(TestReadPaths)
#include "test_read_paths.moc"
