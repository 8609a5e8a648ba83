// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <random>

#include "engine/store/policy.h"
#include "oracle_policy.h"

using namespace colibri;
using colibri::test::OraclePolicy;

class TestPolicy : public QObject {
    Q_OBJECT

    static std::vector<uint32_t> run(CachePolicyKind kind, const std::vector<uint32_t>& uses,
                                     int64_t slotCount) {
        auto policy = makePolicy(kind, 100, slotCount);
        for (uint32_t key : uses) {
            if (policy->contains(key)) {
                policy->touch(key);
                continue;
            }
            if (policy->size() == slotCount) {
                const int64_t victim = policy->coldest(1, [](uint32_t) { return true; });
                policy->remove(uint32_t(victim));
            }
            policy->insert(key);
        }
        return policy->order();
    }

private slots:
    void followsItsDefinition_data() {
        QTest::addColumn<int>("policyKind");
        QTest::newRow("lru") << int(CachePolicyKind::Lru);
        QTest::newRow("slru") << int(CachePolicyKind::Slru);
        QTest::newRow("lfru") << int(CachePolicyKind::Lfru);
    }

    // 20,000 random operations; compares the whole order after each.
    void followsItsDefinition() {
        QFETCH(int, policyKind);
        const CachePolicyKind kind = CachePolicyKind(policyKind);
        constexpr uint32_t kKeys = 40;
        std::mt19937 random(7);
        auto policy = makePolicy(kind, kKeys, 20);
        OraclePolicy oracle(kind, kKeys, 20);
        for (int step = 0; step < 20'000; ++step) {
            const uint32_t key = std::min(random() % kKeys, random() % kKeys);
            switch (random() % 16) {
                case 0:
                    policy->remove(key);
                    oracle.remove(key);
                    break;
                case 1: {
                    const int64_t slotCount = random() % kKeys;
                    policy->setSlots(slotCount);
                    oracle.setSlots(slotCount);
                    break;
                }
                case 2:
                    if (policy->contains(key)) break;
                    policy->insertCold(key);
                    oracle.insertCold(key);
                    break;
                default:
                    if (policy->contains(key)) {
                        policy->touch(key);
                        oracle.touch(key);
                    } else {
                        policy->insert(key);
                        oracle.insert(key);
                    }
            }
            QCOMPARE(policy->order(), oracle.order());
            QCOMPARE(policy->size(), int64_t(oracle.order().size()));
        }
    }

    void changingPolicyKeepsTheOrder() {
        const std::vector<uint32_t> keys = {5, 3, 9, 1, 7, 2, 8};
        auto first = makePolicy(CachePolicyKind::Lru, 10, 8);
        first->adopt(keys);
        auto second = makePolicy(CachePolicyKind::Slru, 10, 8);
        second->adopt(first->order());
        auto third = makePolicy(CachePolicyKind::Lfru, 10, 8);
        third->adopt(second->order());
        QCOMPARE(third->order(), keys);
    }

    void scanSkipsAndStops() {
        auto policy = makePolicy(CachePolicyKind::Slru, 10, 8);
        policy->adopt(std::vector<uint32_t>{4, 5, 6, 7, 8});
        QCOMPARE(policy->coldest(5, [](uint32_t key) { return key % 2 == 1; }), int64_t(5));
        QCOMPARE(policy->coldest(3, [](uint32_t key) { return key == 7; }), int64_t(-1));
        QCOMPARE(policy->coldest(4, [](uint32_t key) { return key == 7; }), int64_t(7));
    }

    // Two experts in continuous use, and a long scan. LRU would evict them.
    void segmentsResistAScan() {
        std::vector<uint32_t> uses = {1, 2, 1, 2, 1, 2};
        for (uint32_t key = 10; key < 30; ++key) uses.push_back(key);
        const auto has = [](const std::vector<uint32_t>& order, uint32_t key) {
            return std::find(order.begin(), order.end(), key) != order.end();
        };
        QVERIFY(!has(run(CachePolicyKind::Lru, uses, 8), 1));
        QVERIFY(has(run(CachePolicyKind::Slru, uses, 8), 1));
        QVERIFY(has(run(CachePolicyKind::Lfru, uses, 8), 2));
    }
};

QTEST_GUILESS_MAIN(TestPolicy)
#include "test_policy.moc"
