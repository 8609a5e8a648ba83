// SPDX-License-Identifier: GPL-3.0-or-later
// Thousands of random operations on a store, compared with a plain model of it.
#include <QtTest>
#include <map>
#include <random>

#include "oracle_policy.h"
#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

// The expected state of the store if all reads complete immediately. See expert_store.h.
class Model {
public:
    Model(CachePolicyKind kind, int64_t layers, int64_t experts, int64_t slotCount)
        : m_policy(kind, layers * experts, slotCount),
          m_entries(size_t(layers * experts)),
          m_experts(experts),
          m_capacity(slotCount) {}

    // Returns which experts are hits.
    std::vector<bool> request(int64_t layer, const std::vector<uint16_t>& experts) {
        std::vector<bool> hits;
        for (uint16_t expert : experts) {
            Entry& e = m_entries[key(layer, expert)];
            if (e.tickets++ == 0) e.order = ++m_order;
            hits.push_back(e.resident);
            e.asked = true;
            ++lookups;
            hitCount += e.resident;
        }
        for (uint16_t expert : experts) {
            const uint32_t k = key(layer, expert);
            if (m_entries[k].resident) {
                m_policy.touch(k);
            } else if (std::find(m_line.begin(), m_line.end(), k) == m_line.end()) {
                m_line.push_back(k);
                feed();
            }
        }
        return hits;
    }
    void wait(int64_t layer, uint16_t expert) {
        const uint32_t k = key(layer, expert);
        if (!m_entries[k].resident) force(k);
        --m_entries[k].tickets;
        ++m_entries[k].pins;
    }
    void drop(int64_t layer, uint16_t expert) {
        --m_entries[key(layer, expert)].tickets;
        letGo(key(layer, expert));
    }
    void release(int64_t layer, uint16_t expert) {
        --m_entries[key(layer, expert)].pins;
        letGo(key(layer, expert));
    }
    void resize(int64_t slotCount) {
        m_capacity = slotCount;
        m_policy.setSlots(slotCount);
        trim();
        feed();
    }
    void setPolicy(CachePolicyKind kind) {
        OraclePolicy next(kind, int64_t(m_entries.size()), m_capacity);
        next.adopt(m_policy.order());
        m_policy = next;
    }

    std::vector<uint32_t> order() const { return m_policy.order(); }
    std::vector<Residency> residency() const {
        std::vector<Residency> out;
        for (const Entry& e : m_entries)
            out.push_back(e.resident      ? Residency::Resident
                          : e.tickets > 0 ? Residency::Reading
                                          : Residency::OnDisk);
        return out;
    }
    int64_t used() const { return int64_t(m_policy.order().size()); }
    int64_t capacity() const { return m_capacity; }
    uint64_t lookups = 0, hitCount = 0, reads = 0, evictions = 0;

private:
    struct Entry {
        bool resident = false, asked = false;
        int tickets = 0, pins = 0;
        uint64_t order = 0;
    };
    uint32_t key(int64_t layer, uint16_t expert) const {
        return uint32_t(layer * m_experts + expert);
    }
    void load(uint32_t k) {
        std::erase(m_line, k);
        m_entries[k].resident = true;
        m_policy.insert(k);
        ++reads;
    }
    bool evictColdest() {
        for (uint32_t k : m_policy.order()) {
            if (m_entries[k].tickets + m_entries[k].pins > 0) continue;
            evict(k);
            return true;
        }
        return false;
    }
    void evict(uint32_t k) {
        m_policy.remove(k);
        m_entries[k].resident = false;
        ++evictions;
    }
    void trim() {
        while (used() > m_capacity && evictColdest()) {
        }
    }
    void feed() {
        while (!m_line.empty()) {
            trim();
            if (used() > m_capacity) return;
            if (used() == m_capacity && !evictColdest()) return;
            load(m_line.front());
        }
    }
    void force(uint32_t k) {
        int64_t youngest = -1;
        for (uint32_t other : m_policy.order()) {
            const Entry& e = m_entries[other];
            if (e.pins > 0 || e.tickets == 0) continue;
            if (youngest < 0 || e.order > m_entries[size_t(youngest)].order) youngest = other;
        }
        if (youngest >= 0) {
            evict(uint32_t(youngest));
            m_line.push_back(uint32_t(youngest));
        }
        load(k);  // exceeds the size if all are pinned
    }
    void letGo(uint32_t k) {
        const Entry& e = m_entries[k];
        if (e.tickets + e.pins > 0) return;
        if (!e.resident) std::erase(m_line, k);
        trim();
        feed();
    }

    OraclePolicy m_policy;
    std::vector<Entry> m_entries;
    std::vector<uint32_t> m_line;
    int64_t m_experts, m_capacity;
    uint64_t m_order = 0;
};

std::vector<uint16_t> pick(std::mt19937& random, int64_t experts, int64_t count) {
    std::vector<uint16_t> all(static_cast<size_t>(experts));
    std::iota(all.begin(), all.end(), uint16_t(0));
    std::vector<uint16_t> chosen;
    while (int64_t(chosen.size()) < count) {
        // Skewed, so that hits occur.
        const size_t i = std::min(random() % all.size(), random() % all.size());
        chosen.push_back(all[i]);
        all.erase(all.begin() + int64_t(i));
    }
    return chosen;
}

}  // namespace

class TestStoreRandom : public QObject {
    Q_OBJECT

    static constexpr int64_t kLayers = 3, kExperts = 10;

    struct Held {
        Ticket ticket;
        Pin pin;
    };

    static void compare(const Rig& rig, const Model& model) {
        QCOMPARE(StoreFactory::order(*rig.store), model.order());
        std::vector<Residency> shown;
        rig.store->residency(shown);
        QVERIFY(shown == model.residency());
        const StoreStats stats = rig.store->stats();
        QCOMPARE(stats.lookups, model.lookups);
        QCOMPARE(stats.hits, model.hitCount);
        QCOMPARE(stats.demandReads, model.reads);
        QCOMPARE(stats.evictions, model.evictions);
        QCOMPARE(stats.bytesRead, model.reads * uint64_t(kRecord));
        QCOMPARE(stats.slotsUsed, model.used());
        QCOMPARE(stats.slotCount, model.capacity());
        QCOMPARE(stats.slotBytes, model.used() * kRecord);
    }

private slots:
    void likeTheModel_data() {
        QTest::addColumn<int>("policyKind");
        QTest::addColumn<bool>("uring");
        QTest::newRow("lru") << int(CachePolicyKind::Lru) << false;
        QTest::newRow("slru") << int(CachePolicyKind::Slru) << false;
        QTest::newRow("lfru") << int(CachePolicyKind::Lfru) << false;
        QTest::newRow("lru, io_uring") << int(CachePolicyKind::Lru) << true;
        QTest::newRow("slru, io_uring") << int(CachePolicyKind::Slru) << true;
        QTest::newRow("lfru, io_uring") << int(CachePolicyKind::Lfru) << true;
    }

    void likeTheModel() {
        QFETCH(int, policyKind);
        QFETCH(bool, uring);
        CachePolicyKind kind = CachePolicyKind(policyKind);
        RigOptions options;
        options.layers = kLayers;
        options.experts = kExperts;
        options.cacheSize = 4;
        options.policy = kind;
        options.uring = uring;
        Rig rig = makeRig(options);
        if (uring && !rig.store) QSKIP("no io_uring here");
        QVERIFY(rig.store);
        Model model(kind, kLayers, kExperts, 4 * kLayers);
        std::mt19937 random(11 + uint32_t(kind));
        std::vector<Held> tickets, pins;
        std::vector<Ticket> got;
        size_t pinsAllowed = 1;  // varies from few to more than the slots
        for (int step = 0; step < 10'000; ++step) {
            const uint32_t what = random() % 100;
            if (step % 50 == 0) pinsAllowed = 1 + random() % (random() % 8 == 0 ? 24 : 4);
            if (what < 30 && tickets.size() < 8) {
                const int64_t layer = random() % kLayers;
                const auto experts =
                    pick(random, kExperts, 1 + random() % (random() % 8 == 0 ? kExperts : 4));
                const auto hits = model.request(layer, experts);
                rig.store->request(layer, experts, got);
                QCOMPARE(got.size(), experts.size());
                for (size_t i = 0; i < got.size(); ++i) {
                    QCOMPARE(got[i].hit, bool(hits[i]));
                    tickets.push_back({got[i], {}});
                }
            } else if (what < 65 && !tickets.empty() && pins.size() < pinsAllowed) {
                // Mostly in order.
                const size_t i = random() % 8 == 0 ? random() % tickets.size() : 0;
                Held held = std::move(tickets[i]);
                tickets.erase(tickets.begin() + int64_t(i));
                const Ticket& t = held.ticket;
                if (random() % 12 == 0) {
                    model.drop(t.moeLayer, t.expert);
                    rig.store->drop(t);
                } else {
                    model.wait(t.moeLayer, t.expert);
                    auto pin = rig.store->wait(t);
                    QVERIFY(pin.ok());
                    QVERIFY(recordIs(pin->record(), t.moeLayer, t.expert));
                    held.pin = std::move(*pin);
                    pins.push_back(std::move(held));
                }
            } else if (what < 94 && !pins.empty()) {
                const size_t i = random() % pins.size();
                const Ticket& t = pins[i].ticket;
                QVERIFY(recordIs(pins[i].pin.record(), t.moeLayer, t.expert));
                model.release(t.moeLayer, t.expert);
                pins.erase(pins.begin() + int64_t(i));
            } else if (what < 96) {
                const int64_t size = 1 + random() % kExperts;
                model.resize(size * kLayers);
                const KnobState state = rig.store->setCacheSize(size);
                QCOMPARE(state.requested, size);
                QCOMPARE(state.reason.empty(), state.effective == size);
            } else if (what < 97) {
                const auto policy = CachePolicyKind(random() % 3);
                if (policy != kind) model.setPolicy(policy);
                kind = policy;
                rig.store->setPolicy(policy);
            } else {
                // The source is off.
                rig.store->hint(random() % kLayers, pick(random, kExperts, 4));
            }
            StoreFactory::settle(*rig.store);
            compare(rig, model);
            if (QTest::currentTestFailed()) {
                qWarning("at step %d", step);
                return;
            }
        }
        QVERIFY2(model.hitCount > 800 && model.evictions > 800,
                 qPrintable(QString("%1 hits, %2 evictions of %3 lookups")
                                .arg(model.hitCount)
                                .arg(model.evictions)
                                .arg(model.lookups)));
    }

    // For every cache size, prefetch setting and order of reads, the records are correct and the
    // counters consistent.
    void prefetchChangesNoRecord_data() {
        QTest::addColumn<bool>("uring");
        QTest::newRow("threads") << false;
        QTest::newRow("io_uring") << true;
    }

    void prefetchChangesNoRecord() {
        QFETCH(bool, uring);
        Telemetry telemetry;
        RigOptions options;
        options.layers = kLayers;
        options.experts = kExperts;
        options.cacheSize = 5;
        options.source = PrefetchSource::NextRouter;
        options.prefetchThreads = 2;
        options.telemetry = &telemetry;
        options.uring = uring;
        Rig rig = makeRig(options);
        if (!rig.store) QSKIP("no io_uring here");
        std::mt19937 random(5);
        uint64_t hits = 0, byPrefetch = 0, lookups = 0;
        for (int step = 0; step < 3000; ++step) {
            const int64_t layer = step % kLayers;
            const auto experts = pick(random, kExperts, 1 + random() % 4);
            std::vector<Ticket> tickets;
            rig.store->request(layer, experts, tickets);
            rig.store->hint((layer + 1) % kLayers, pick(random, kExperts, 3));
            for (const Ticket& ticket : tickets) {
                auto pin = rig.store->wait(ticket);
                QVERIFY(pin.ok());
                QVERIFY(recordIs(pin->record(), layer, ticket.expert));
                hits += ticket.hit;
                byPrefetch += ticket.byPrefetch;
                ++lookups;
            }
            switch (random() % 64) {
                case 0:
                    rig.store->setCacheSize(1 + random() % kExperts);
                    break;
                case 1:
                    rig.store->setPolicy(CachePolicyKind(random() % 3));
                    break;
                case 2:
                    rig.store->setPrefetchThreads(random() % 4);
                    break;
                case 3:
                    rig.store->setPrefetch(PrefetchSource(random() % 4), random() % 5);
                    break;
                case 4:
                    rig.store->setLinkLimit(random() % 2 * 50'000);
                    break;
                case 5:
                    rig.store->setIoMode(IoMode(random() % 2));
                    break;
                default:
                    break;
            }
            if (step % 16 == 0) StoreFactory::settle(*rig.store);
        }
        StoreFactory::settle(*rig.store);
        const StoreStats stats = rig.store->stats();
        QCOMPARE(stats.lookups, lookups);
        QCOMPARE(stats.hits, hits);
        QCOMPARE(stats.prefetchUseful, byPrefetch);
        QVERIFY(stats.prefetchUseful > 20);
        QCOMPARE(stats.prefetchReads, stats.prefetchIssued);
        QVERIFY(stats.prefetchUseful + stats.prefetchLate + stats.prefetchWasted <=
                stats.prefetchIssued);
        QCOMPARE(stats.bytesRead, (stats.demandReads + stats.prefetchReads) * uint64_t(kRecord));
        QCOMPARE(stats.demandReads + stats.prefetchReads - stats.evictions,
                 uint64_t(stats.slotsUsed));

        // The same sums from the events.
        rig.store.reset();  // writes the last outcome
        std::vector<Event> events;
        telemetry.drain(events);
        QCOMPARE(telemetry.dropped(), uint64_t(0));
        uint64_t demand = 0, prefetch = 0, evictions = 0;
        PrefetchEvent sum{};
        for (const Event& event : events) {
            if (event.type == EventType::ExpertRead) {
                QCOMPARE(event.expertRead.failed, uint8_t(0));
                QCOMPARE(event.expertRead.bytes, uint32_t(kRecord));
                ++(event.expertRead.reason == ReadReason::Prefetch ? prefetch : demand);
            } else if (event.type == EventType::Eviction) {
                ++evictions;
            } else if (event.type == EventType::PrefetchOutcome) {
                sum.issued += event.prefetch.issued;
                sum.useful += event.prefetch.useful;
                sum.late += event.prefetch.late;
                sum.wasted += event.prefetch.wasted;
            }
        }
        QCOMPARE(demand, stats.demandReads);
        QCOMPARE(prefetch, stats.prefetchReads);
        QCOMPARE(evictions, stats.evictions);
        QCOMPARE(uint64_t(sum.issued), stats.prefetchIssued);
        QCOMPARE(uint64_t(sum.useful), stats.prefetchUseful);
        QCOMPARE(uint64_t(sum.late), stats.prefetchLate);
        QCOMPARE(uint64_t(sum.wasted), stats.prefetchWasted);
    }
};

QTEST_GUILESS_MAIN(TestStoreRandom)
#include "test_store_random.moc"
