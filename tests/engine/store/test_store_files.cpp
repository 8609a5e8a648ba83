// SPDX-License-Identifier: GPL-3.0-or-later
// The store on real files and real memory.
#include <QtTest>

#include "engine/base/machine.h"
#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestStoreFiles : public QObject {
    Q_OBJECT

    static std::unique_ptr<ExpertStore> open(const ExpertFolder& folder, int64_t cacheSize) {
        StoreOptions options;
        options.cacheSize = cacheSize;
        options.prefetchThreads = 0;
        auto store = ExpertStore::open(folder.info, options, nullptr);
        return store ? std::move(*store) : nullptr;
    }
    static bool reads(ExpertStore& store, const ExpertFolder& folder) {
        std::vector<Ticket> tickets;
        for (int64_t layer = 0; layer < int64_t(folder.info.expertLayers.size()); ++layer) {
            std::vector<uint16_t> all;
            for (int64_t e = 0; e < folder.info.config.numExperts; ++e) all.push_back(uint16_t(e));
            store.request(layer, all, tickets);
            const int64_t bytes = folder.info.expertLayers[size_t(layer)].recordBytes;
            for (const Ticket& ticket : tickets) {
                auto pin = store.wait(ticket);
                if (!pin.ok()) {
                    qWarning("%s", pin.status().text().c_str());
                    return false;
                }
                if (!recordIs(pin->record(), layer, ticket.expert, bytes)) return false;
            }
        }
        return true;
    }

private slots:
    void directAndBuffered() {
        const ExpertFolder folder(3, 6, 12288);
        auto store = open(folder, 2);
        QVERIFY(store != nullptr);
        QVERIFY(reads(*store, folder));
        const KnobState state = store->setIoMode(IoMode::Buffered);
        QCOMPARE(state.effective, int64_t(IoMode::Buffered));
        QVERIFY(reads(*store, folder));
        const KnobState back = store->setIoMode(IoMode::Direct);
        QCOMPARE(back.reason.empty(), back.effective == int64_t(IoMode::Direct));
        QVERIFY(reads(*store, folder));
    }

    void deletedFolderIsStillRead() {
        const ExpertFolder folder(2, 6, 12288);
        auto store = open(folder, 1);
        QVERIFY(store != nullptr);
        std::filesystem::remove_all(folder.info.dir);
        QVERIFY(reads(*store, folder));
    }

    void fileCutShortWhileOpen() {
        const ExpertFolder folder(1, 4, 12288);
        auto store = open(folder, 1);
        QVERIFY(store != nullptr);
        std::filesystem::resize_file(folder.info.dir / folder.info.expertLayers[0].file, 30000);
        std::vector<Ticket> tickets;
        store->request(0, std::vector<uint16_t>{0, 2}, tickets);
        QVERIFY(store->wait(tickets[0]).ok());
        const auto pin = store->wait(tickets[1]);
        QVERIFY(!pin.ok());
        const std::string text = pin.status().text();
        QVERIFY2(text.find("experts/layer_0.bin: expert 2 of layer 0") != std::string::npos,
                 text.c_str());
        QVERIFY2(text.find("at byte 30,000: the file ends there") != std::string::npos,
                 text.c_str());
        QVERIFY(
            store->wait((store->request(0, std::vector<uint16_t>{1}, tickets), tickets[0])).ok());
    }

    void brokenFoldersDoNotOpen() {
        StoreOptions options;
        options.cacheSize = 1;
        ExpertFolder folder(2, 4, 12288);
        const auto file = folder.info.dir / folder.info.expertLayers[1].file;
        std::filesystem::resize_file(file, 4 * 12288 - 1);
        auto store = ExpertStore::open(folder.info, options, nullptr);
        QVERIFY(!store && store.status().code() == Code::BadInput);
        QVERIFY(store.status().text().find(file.string()) != std::string::npos);
        std::filesystem::remove(file);
        store = ExpertStore::open(folder.info, options, nullptr);
        QVERIFY(!store && store.status().code() == Code::BadInput);
        QVERIFY(store.status().text().find(file.string()) != std::string::npos);
        folder.info.expertLayers[1] = folder.info.expertLayers[0];
        folder.info.expertLayers[1].recordBytes = 5000;
        store = ExpertStore::open(folder.info, options, nullptr);
        QVERIFY(!store && store.status().code() == Code::BadInput);
    }

    void denseModelHasAnEmptyStore() {
        const ExpertFolder folder(0, 0, 4096);
        auto store = open(folder, 4);
        QVERIFY(store != nullptr);
        QCOMPARE(store->setCacheSize(3).effective, int64_t(3));
        store->hint(0, std::vector<uint16_t>{1});
        std::vector<Ticket> tickets;
        store->request(0, std::vector<uint16_t>{1}, tickets);
        QVERIFY(!store->wait(tickets[0]).ok());
        QCOMPARE(store->stats().slotCount, int64_t(0));
    }

    void layersOfDifferentRecordSize() {
        ExpertFolder folder(2, 4, 12288);
        const ExpertFolder other(1, 4, 20480);
        folder.info.expertLayers[0] = other.info.expertLayers[0];
        folder.info.expertLayers[0].file =
            (other.info.dir / other.info.expertLayers[0].file).string();
        auto store = open(folder, 2);
        QVERIFY(store != nullptr);
        QVERIFY(reads(*store, folder));
        QCOMPARE(store->stats().slotBytes, 4 * int64_t(20480));
    }

    void slotsAreAlignedForDirectReadsAndHugePages() {
        SlotMemory memory;
        for (const int64_t bytes : {4096, 2 << 20, (2 << 20) + 4096, 5 << 20}) {
            std::byte* const slot = memory.allocate(bytes);
            QVERIFY(slot != nullptr);
            const uintptr_t align = bytes >= (2 << 20) ? 2 << 20 : 4096;
            QCOMPARE(reinterpret_cast<uintptr_t>(slot) % align, uintptr_t(0));
            std::memset(slot, 1, size_t(bytes));
            memory.free(slot, bytes);
        }
        QVERIFY(memory.allocate(int64_t(1) << 60) == nullptr);
    }

    void shrinkingReturnsMemory() {
#ifdef __SANITIZE_THREAD__
        QSKIP("ThreadSanitizer's own memory hides it");
#endif
        constexpr int64_t kBytes = (3 << 20) + 4096;
        const ExpertFolder folder(2, 8, kBytes);
        auto store = open(folder, 8);
        QVERIFY(store != nullptr);
        const int64_t before = processRss();
        QVERIFY(reads(*store, folder));
        const int64_t full = processRss();
        QVERIFY(full - before >= 15 * kBytes);
        QCOMPARE(store->stats().slotBytes, 16 * kBytes);
        QCOMPARE(store->setCacheSize(1).effective, int64_t(1));
        QCOMPARE(store->stats().slotBytes, 2 * kBytes);
        QVERIFY(full - processRss() >= 13 * kBytes);
        QCOMPARE(store->setCacheSize(8).effective, int64_t(8));
        QVERIFY(reads(*store, folder));
        QVERIFY(processRss() - before >= 15 * kBytes);
    }
};

QTEST_GUILESS_MAIN(TestStoreFiles)
#include "test_store_files.moc"
