// SPDX-License-Identifier: GPL-3.0-or-later
// Slots and prefetch threads on a machine with at least two NUMA nodes: the kernel reports what was
// requested and what the store reports. tests/numa-vm runs this on an emulated machine.
#include <sys/mman.h>

#include <QtTest>

#include "engine/base/machine.h"
#include "tests/engine/store/store_fixture.h"
#include "tests/engine/store/two_nodes.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr int kPatienceMs = 60'000;  // an emulated machine is slow

// Several of the smaller records share a huge page; each of the larger ones has its own.
constexpr int64_t kSmall = 26 * 4096, kLarge = (2 << 20) + 12288;

// A store of real files with all its experts in memory.
struct Filled {
    Filled(int64_t recordBytes, int64_t experts) : folder(2, experts, recordBytes) {
        StoreOptions options;
        options.cacheSize = experts;
        options.prefetchThreads = 2;
        auto opened = ExpertStore::open(folder.info, options, nullptr);
        if (opened.ok()) store = std::move(*opened);
    }
    // Reads the missing experts. False: a record is wrong.
    bool fill() {
        std::vector<uint16_t> all;
        for (int64_t i = 0; i < folder.info.config.numExperts; ++i) all.push_back(uint16_t(i));
        records.clear();
        for (int64_t layer = 0; layer < 2; ++layer) {
            std::vector<Ticket> tickets;
            store->request(layer, all, tickets);
            for (const Ticket& ticket : tickets) {
                auto pin = store->wait(ticket);
                const int64_t bytes = folder.info.expertLayers[0].recordBytes;
                if (!pin.ok() || !recordIs(pin->record(), layer, ticket.expert, bytes))
                    return false;
                records.push_back(pin->record());
            }
        }
        return true;
    }
    std::map<int, int64_t> pages() const {
        std::map<int, int64_t> sum;
        for (const std::byte* record : records)
            for (const auto& [node, count] :
                 pagesByNode(record, folder.info.expertLayers[0].recordBytes))
                sum[node] += count;
        return sum;
    }
    std::set<int> policies() const {
        std::set<int> modes;
        for (const std::byte* record : records) modes.insert(policyAt(record));
        return modes;
    }
    int64_t allPages() const {
        return int64_t(records.size()) * folder.info.expertLayers[0].recordBytes / 4096;
    }

    ExpertFolder folder;
    std::unique_ptr<ExpertStore> store;
    std::vector<const std::byte*> records;
};

}  // namespace

class TestTwoNodes : public QObject {
    Q_OBJECT

    static bool settled(const Filled& f, NumaMode mode, int node) {
        const KnobState modeNow = f.store->state(KnobId::NumaMode),
                        nodeNow = f.store->state(KnobId::NumaNode);
        return modeNow.effective == int64_t(mode) && modeNow.reason.empty() &&
               nodeNow.effective == node && nodeNow.reason.empty();
    }
    // "" if each node has its share of the pages, within a tenth of all; otherwise the pages of
    // each.
    static QString unevenness(const Filled& f) {
        auto pages = f.pages();
        const int64_t all = f.allPages(), share = all / numaNodes();
        bool even = true;
        QString text;
        for (int node = 0; node < numaNodes(); ++node) {
            even = even && std::abs(pages[node] - share) <= all / 10;
            text += QString("node %1: %2 pages ").arg(node).arg(pages[node]);
        }
        return even ? QString() : text;
    }

private slots:
    void initTestCase() {
        if (numaNodes() < 2) QSKIP(numaNodesText(numaNodes()).c_str());
        const auto numa = Numa::system();
        if (!numa->refusal().empty()) QSKIP(numa->refusal().c_str());
    }

    void newSlots_data() {
        QTest::addColumn<qint64>("bytes");
        QTest::addColumn<int>("experts");
        QTest::newRow("small") << qint64(kSmall) << 160;
        QTest::newRow("large") << qint64(kLarge) << 12;
    }
    void newSlots() {
        QFETCH(qint64, bytes);
        QFETCH(int, experts);
        for (const int node : {0, 1}) {
            Filled f(bytes, experts);
            f.store->setNuma(NumaMode::Bind, node);
            QVERIFY(f.fill());
            QCOMPARE(f.pages(), (std::map<int, int64_t>{{node, f.allPages()}}));
            QCOMPARE(f.policies(), std::set<int>{MPOL_BIND});
            QVERIFY(settled(f, NumaMode::Bind, node));
        }
        Filled f(bytes, experts);
        f.store->setNuma(NumaMode::Interleave, 0);
        QVERIFY(f.fill());
        QCOMPARE(unevenness(f), QString());
        QCOMPARE(f.policies(), std::set<int>{MPOL_INTERLEAVE});
        QVERIFY(settled(f, NumaMode::Interleave, 0));
    }

    void slotsInUseMove_data() { newSlots_data(); }
    void slotsInUseMove() {
        QFETCH(qint64, bytes);
        QFETCH(int, experts);
        Filled f(bytes, experts);
        QVERIFY(f.fill());
        for (const int node : {1, 0, 1}) {
            f.store->setNuma(NumaMode::Bind, node);
            QTRY_VERIFY_WITH_TIMEOUT(settled(f, NumaMode::Bind, node), kPatienceMs);
            QCOMPARE(f.pages(), (std::map<int, int64_t>{{node, f.allPages()}}));
            QCOMPARE(f.policies(), std::set<int>{MPOL_BIND});
            QVERIFY(f.fill());
        }
        f.store->setNuma(NumaMode::Interleave, 1);
        QTRY_VERIFY_WITH_TIMEOUT(settled(f, NumaMode::Interleave, 1), kPatienceMs);
        QCOMPARE(unevenness(f), QString());
        QCOMPARE(f.policies(), std::set<int>{MPOL_INTERLEAVE});
        f.store->setNuma(NumaMode::Off, 1);
        QTRY_VERIFY_WITH_TIMEOUT(settled(f, NumaMode::Off, 1), kPatienceMs);
        QCOMPARE(f.policies(), std::set<int>{MPOL_DEFAULT});
        QVERIFY(f.fill());
    }

    // More experts than the node can hold: the rest is put elsewhere and reported.
    void aFullNode() {
        constexpr int64_t kLeft = 160 << 20;
        const int64_t hog = nodeMemory(1).free - kLeft;
        if (hog > int64_t(2) << 30) QSKIP("the node is too large to be filled in a test");
        QVERIFY(hog > 0);
        void* const taken =
            mmap(nullptr, size_t(hog), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        QVERIFY(taken != MAP_FAILED);
        QVERIFY(Numa::system()
                    ->place({static_cast<std::byte*>(taken), size_t(hog)}, {NumaMode::Bind, 1})
                    .ok());
        std::memset(taken, 1, size_t(hog));
        {
            Filled f(kLarge, 48);
            f.store->setNuma(NumaMode::Bind, 1);
            QVERIFY(f.fill());
            const auto pages = f.pages();
            QVERIFY(pages.contains(0));
            QTRY_VERIFY_WITH_TIMEOUT(!f.store->state(KnobId::NumaMode).reason.empty(), kPatienceMs);
            QVERIFY(!f.store->state(KnobId::NumaNode).reason.empty());
            qInfo("%s; %s", f.store->state(KnobId::NumaMode).reason.c_str(),
                  f.store->state(KnobId::NumaNode).reason.c_str());
        }
        munmap(taken, size_t(hog));
    }

    void prefetchThreads() {
        Filled f(kSmall, 12);
        const auto any = coresOfThreads("prefetch-");
        QCOMPARE(any.size(), size_t(2));
        for (const int core : {logicalCpus() - 1, 0}) {
            QCOMPARE(f.store->setPrefetchThreadCore(1, core).effective, int64_t(core));
            QCOMPARE(coresOfThreads("prefetch-").count(std::to_string(core)), size_t(1));
        }
        f.store->setPrefetchThreadCore(1, -1);
        QCOMPARE(coresOfThreads("prefetch-"), any);
    }
};

QTEST_GUILESS_MAIN(TestTwoNodes)
#include "test_two_nodes.moc"
