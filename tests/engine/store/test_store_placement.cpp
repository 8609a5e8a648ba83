// SPDX-License-Identifier: GPL-3.0-or-later
// The node of slots and the cores of prefetch threads, on a simulated machine with four nodes and
// on the real one.
#include <sched.h>

#include <QtTest>
#include <map>
#include <mutex>

#include "engine/base/machine.h"
#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

class FakeNuma final : public Numa {
public:
    int nodes() const override { return 4; }
    std::string refusal() const override { return m_refusal; }
    Result<bool> place(std::span<std::byte> memory, NumaPlace place) override {
        std::lock_guard lock(m_mutex);
        if (m_fail) return Status(Code::Unsupported, "mbind: Operation not permitted");
        if (m_busy > 0) {
            --m_busy;
            return false;
        }
        m_places[memory.data()] = place;
        return true;
    }
    Result<NumaPlace> placeOf(const std::byte* memory) const override {
        std::lock_guard lock(m_mutex);
        const auto it = m_places.find(memory);
        return it == m_places.end() ? NumaPlace{} : it->second;
    }
    std::vector<int> nodesOf(std::span<std::byte* const> pages) const override {
        std::lock_guard lock(m_mutex);
        std::vector<int> nodes;
        for (std::byte* page : pages) {
            const auto it = m_places.find(page);
            nodes.push_back(it == m_places.end() || m_stuck ? 0 : it->second.node);
        }
        return nodes;
    }
    size_t on(NumaPlace place) const {
        std::lock_guard lock(m_mutex);
        return size_t(std::count_if(m_places.begin(), m_places.end(),
                                    [&](const auto& p) { return p.second == place; }));
    }
    void set(bool fail, bool stuck) {
        std::lock_guard lock(m_mutex);
        m_fail = fail;
        m_stuck = stuck;
    }
    // The next `calls` calls move nothing.
    void busy(int calls) {
        std::lock_guard lock(m_mutex);
        m_busy = calls;
    }
    std::string m_refusal;

private:
    mutable std::mutex m_mutex;
    std::map<const std::byte*, NumaPlace> m_places;
    bool m_fail = false, m_stuck = false;
    int m_busy = 0;
};

}  // namespace

class TestStorePlacement : public QObject {
    Q_OBJECT

    static bool fill(Rig& rig) {
        for (int64_t layer = 0; layer < rig.layers; ++layer)
            if (useLayer(rig, layer, {0, 1, 2, 3, 4, 5, 6, 7}) < 0) return false;
        return true;
    }
    static Rig rigOn(FakeNuma*& numa, std::string refusal = {}, int64_t prefetchThreads = 0) {
        RigOptions options;
        options.prefetchThreads = prefetchThreads;
        options.numa = [&] {
            auto fake = std::make_unique<FakeNuma>();
            fake->m_refusal = refusal;
            numa = fake.get();
            return fake;
        };
        return makeRig(options);
    }

private slots:
    void newSlotsGoWhereTheyShould() {
        FakeNuma* numa = nullptr;
        Rig rig = rigOn(numa);
        rig.store->setNuma(NumaMode::Bind, 2);
        QVERIFY(fill(rig));
        QCOMPARE(numa->on({NumaMode::Bind, 2}), size_t(32));
        QCOMPARE(rig.store->state(KnobId::NumaMode).effective, int64_t(NumaMode::Bind));
        QVERIFY(rig.store->state(KnobId::NumaMode).reason.empty());
        QCOMPARE(rig.store->state(KnobId::NumaNode).effective, int64_t(2));
        QVERIFY(rig.store->state(KnobId::NumaNode).reason.empty());
    }

    void slotsInUseAreMoved() {
        FakeNuma* numa = nullptr;
        Rig rig = rigOn(numa);
        QVERIFY(fill(rig));
        QCOMPARE(numa->on({NumaMode::Bind, 3}), size_t(0));
        std::vector<Ticket> tickets;
        rig.store->request(1, std::vector<uint16_t>{4}, tickets);
        auto pin = rig.store->wait(tickets[0]);
        rig.store->setNuma(NumaMode::Bind, 3);
        QTRY_COMPARE(numa->on({NumaMode::Bind, 3}), size_t(32));
        QTRY_VERIFY(rig.store->state(KnobId::NumaMode).reason.empty());
        QVERIFY(recordIs(pin->record(), 1, 4));
        rig.store->setNuma(NumaMode::Interleave, 3);
        QTRY_COMPARE(numa->on({NumaMode::Interleave, 3}), size_t(32));
        rig.store->setNuma(NumaMode::Off, 0);
        QTRY_COMPARE(numa->on({}), size_t(32));
        pin->release();
        QVERIFY(fill(rig));
        QCOMPARE(rig.store->setCacheSize(1).effective, int64_t(1));
    }

    // A slot is not moved while its record is being read.
    void aReadIsNotMovedUnderTheDisk() {
        FakeNuma* numa = nullptr;
        Rig rig = rigOn(numa);
        rig.reader->hold();
        std::vector<Ticket> tickets;
        rig.store->request(0, std::vector<uint16_t>{1, 2}, tickets);
        rig.reader->waitStarted(2);
        rig.store->setNuma(NumaMode::Bind, 1);
        QCOMPARE(rig.store->state(KnobId::NumaMode).reason, std::string("0 of 2 slots moved"));
        rig.reader->letGo();
        QTRY_COMPARE(numa->on({NumaMode::Bind, 1}), size_t(2));
        for (const Ticket& t : tickets) QVERIFY(rig.store->wait(t).ok());
    }

    void whatDoesNotMoveIsTriedAgain() {
        FakeNuma* numa = nullptr;
        Rig rig = rigOn(numa);
        QVERIFY(fill(rig));
        numa->busy(50);  // one full pass and a part of the next
        rig.store->setNuma(NumaMode::Bind, 3);
        QTRY_COMPARE(numa->on({NumaMode::Bind, 3}), size_t(32));
        QTRY_VERIFY(rig.store->state(KnobId::NumaMode).reason.empty());
        QVERIFY(fill(rig));
    }

    void refusalsAreTold() {
        FakeNuma* numa = nullptr;
        Rig without = rigOn(numa, "libnuma.so.1 is not installed");
        QCOMPARE(without.store->problem(KnobId::NumaMode, int64_t(NumaMode::Off)), std::string());
        QCOMPARE(without.store->problem(KnobId::NumaMode, int64_t(NumaMode::Bind)),
                 std::string("libnuma.so.1 is not installed"));
        without.store->setNuma(NumaMode::Bind, 1);
        QVERIFY(fill(without));
        KnobState state = without.store->state(KnobId::NumaMode);
        QCOMPARE(state.requested, int64_t(NumaMode::Bind));
        QCOMPARE(state.effective, int64_t(NumaMode::Off));
        QCOMPARE(state.reason, std::string("libnuma.so.1 is not installed"));

        Rig denied = rigOn(numa);
        numa->set(true, false);
        denied.store->setNuma(NumaMode::Interleave, 0);
        QVERIFY(fill(denied));
        state = denied.store->state(KnobId::NumaMode);
        QCOMPARE(state.effective, int64_t(NumaMode::Off));
        QCOMPARE(state.reason, std::string("mbind: Operation not permitted"));

        Rig few = rigOn(numa);
        few.store->setNuma(NumaMode::Bind, 4);
        QVERIFY(fill(few));
        QCOMPARE(few.store->state(KnobId::NumaMode).effective, int64_t(NumaMode::Off));
        QCOMPARE(few.store->state(KnobId::NumaNode).effective, int64_t(3));
        QCOMPARE(few.store->state(KnobId::NumaNode).reason,
                 std::string("this machine has 4 NUMA nodes"));

        Rig stuck = rigOn(numa);
        numa->set(false, true);
        stuck.store->setNuma(NumaMode::Bind, 2);
        QVERIFY(fill(stuck));
        QCOMPARE(stuck.store->state(KnobId::NumaNode).effective, int64_t(0));
        QVERIFY(!stuck.store->state(KnobId::NumaNode).reason.empty());
    }

    void thisMachine() {
        const auto numa = Numa::system();
        QVERIFY(numa->nodes() >= 1);
        if (!numa->refusal().empty()) QSKIP(numa->refusal().c_str());
        SlotMemory memory;
        std::byte* const slot = memory.allocate(3 << 20);
        std::memset(slot, 1, 3 << 20);
        const auto placed = numa->place({slot, 3 << 20}, {NumaMode::Bind, 0});
        if (!placed.ok()) QSKIP(placed.status().message().c_str());
        QVERIFY(*placed);
        QVERIFY(*numa->placeOf(slot) == (NumaPlace{NumaMode::Bind, 0}));
        QCOMPARE(numa->nodesOf(std::vector<std::byte*>{slot}), std::vector<int>{0});
        QVERIFY(numa->place({slot, 3 << 20}, {NumaMode::Interleave, 0}).ok());
        QVERIFY(numa->placeOf(slot)->mode == NumaMode::Interleave);
        QVERIFY(numa->place({slot, 3 << 20}, {}).ok());
        QVERIFY(numa->placeOf(slot)->mode == NumaMode::Off);
        QVERIFY(!numa->place({slot, 3 << 20}, {NumaMode::Bind, 900}).ok());
        memory.free(slot, 3 << 20);

        const ExpertFolder folder(2, 8, 12288);
        StoreOptions options;
        options.cacheSize = 4;
        auto store = ExpertStore::open(folder.info, options, nullptr);
        QVERIFY(store.ok());
        std::vector<Ticket> tickets;
        for (const NumaMode mode : {NumaMode::Bind, NumaMode::Interleave, NumaMode::Off}) {
            (*store)->setNuma(mode, 0);
            (*store)->request(0, std::vector<uint16_t>{0, 1, 2, 3, 4}, tickets);
            for (const Ticket& t : tickets) {
                auto pin = (*store)->wait(t);
                QVERIFY(pin.ok() && recordIs(pin->record(), 0, t.expert, 12288));
            }
            QTRY_COMPARE((*store)->state(KnobId::NumaMode).effective, int64_t(mode));
            QTRY_VERIFY((*store)->state(KnobId::NumaMode).reason.empty());
            QCOMPARE((*store)->state(KnobId::NumaNode).effective, int64_t(0));
        }
    }

    void prefetchThreadsAreBound() {
        cpu_set_t allowed;
        sched_getaffinity(0, sizeof allowed, &allowed);
        int core = 0;
        while (!CPU_ISSET(size_t(core), &allowed)) ++core;
        FakeNuma* numa = nullptr;
        Rig rig = rigOn(numa, {}, 1);
        ExpertStore& store = *rig.store;
        QCOMPARE(store.prefetchThreadCore(0).effective, int64_t(-1));
        QVERIFY(store.prefetchThreadCore(0).reason.empty());
        QCOMPARE(store.setPrefetchThreadCore(0, core).effective, int64_t(core));
        QVERIFY(store.prefetchThreadCore(0).reason.empty());
        QCOMPARE(store.boundCores(), std::vector<int>{core});
        // A thread that does not run yet is bound when it starts.
        QCOMPARE(store.setPrefetchThreadCore(2, core).effective, int64_t(-1));
        QVERIFY(store.prefetchThreadCore(2).reason.find("is not running") != std::string::npos);
        store.setPrefetchThreads(3);
        QCOMPARE(store.prefetchThreadCore(2).effective, int64_t(core));
        QCOMPARE(store.prefetchThreadCore(1).effective, int64_t(-1));
        QCOMPARE(store.setPrefetchThreadCore(0, -1).effective, int64_t(-1));
        QVERIFY(store.prefetchThreadCore(0).reason.empty());
        // Cores and threads that do not exist.
        const KnobState none = store.setPrefetchThreadCore(0, 1023);
        QCOMPARE(none.effective, int64_t(-1));
        QVERIFY(none.reason.find("core 1023: Invalid argument") != std::string::npos);
        QVERIFY(!store.setPrefetchThreadCore(64, 0).reason.empty());
        QVERIFY(!store.setPrefetchThreadCore(0, -2).reason.empty());
        store.setPrefetchThreads(0);
        QTRY_VERIFY(store.boundCores().empty());
    }
};

QTEST_GUILESS_MAIN(TestStorePlacement)
#include "test_store_placement.moc"
