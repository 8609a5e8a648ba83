// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <algorithm>
#include <random>
#include <vector>

#include "profiler/metrics/stack_distances.h"

using namespace colibri;

class TestStackDistances : public QObject {
    Q_OBJECT
private slots:
    void countsDistinctKeysSinceTheLastUse() {
        StackDistances distances(4);
        QCOMPARE(distances.use(0), StackDistances::kNever);
        QCOMPARE(distances.use(0), 0u);
        QCOMPARE(distances.use(1), StackDistances::kNever);
        QCOMPARE(distances.use(2), StackDistances::kNever);
        QCOMPARE(distances.use(1), 1u);
        QCOMPARE(distances.use(1), 0u);
        QCOMPARE(distances.use(0), 2u);
    }
    // Compared with a list in order of use, over many renumberings of the times.
    void agreesWithAListInOrderOfUse() {
        constexpr size_t kKeys = 30;
        StackDistances distances(kKeys);
        std::vector<size_t> newestFirst;
        std::mt19937 random(3);
        for (int i = 0; i < 20'000; ++i) {
            const size_t key = std::min(random() % kKeys, random() % kKeys);
            const auto at = std::find(newestFirst.begin(), newestFirst.end(), key);
            const uint32_t expected = at == newestFirst.end() ? StackDistances::kNever
                                                              : uint32_t(at - newestFirst.begin());
            if (at != newestFirst.end()) newestFirst.erase(at);
            newestFirst.insert(newestFirst.begin(), key);
            QCOMPARE(distances.use(key), expected);
        }
    }
};

QTEST_GUILESS_MAIN(TestStackDistances)
#include "test_stack_distances.moc"
