// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <numeric>
#include <set>

#include "engine/run/kv_cache.h"

using namespace colibri;

namespace {

const KvShape kShape{2, 2, 8, KvType::F16};

KvSequence sequenceOf(KvPool& pool, std::vector<int32_t> tokens) {
    KvSequence s;
    if (!pool.grow(s, int64_t(tokens.size()))) qFatal("no memory");
    s.tokens = std::move(tokens);
    return s;
}

std::vector<int32_t> range(int from, int count) {
    std::vector<int32_t> v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), from);
    return v;
}

}  // namespace

class TestKvCache : public QObject {
    Q_OBJECT

private slots:
    void blocksAreLazyAndReused() {
        KvPool pool(kShape, 100);
        QCOMPARE(pool.allocatedBytes(), int64_t(0));
        KvSequence a;
        QVERIFY(pool.grow(a, 1));
        QCOMPARE(a.blocks.size(), size_t(1));
        QVERIFY(pool.grow(a, kPageTokens));
        QCOMPARE(a.blocks.size(), size_t(1));
        QVERIFY(pool.grow(a, kPageTokens + 1));
        QCOMPARE(a.blocks.size(), size_t(2));
        const int64_t bytes = pool.allocatedBytes();
        QVERIFY(bytes >= 2 * kShape.blockBytes());
        const std::set<std::byte*> first(a.blocks.begin(), a.blocks.end());
        pool.release(a);
        KvSequence b;
        QVERIFY(pool.grow(b, 2 * kPageTokens));
        QCOMPARE(std::set<std::byte*>(b.blocks.begin(), b.blocks.end()), first);
        QCOMPARE(pool.allocatedBytes(), bytes);
    }

    void truncateKeepsTheBlocksItNeeds() {
        KvPool pool(kShape, 100);
        KvSequence s = sequenceOf(pool, range(0, 100));
        QCOMPARE(s.blocks.size(), size_t(4));
        const std::vector<std::byte*> before = s.blocks;
        pool.truncate(s, 33);
        QCOMPARE(s.length(), int64_t(33));
        QCOMPARE(s.blocks, std::vector<std::byte*>(before.begin(), before.begin() + 2));
    }

    void longestPrefixWins() {
        KvPool pool(kShape, 100);
        PrefixCache cache(pool);
        cache.put(sequenceOf(pool, range(0, 40)));
        std::vector<int32_t> other = range(0, 70);
        cache.put(sequenceOf(pool, other));
        cache.put(sequenceOf(pool, range(500, 90)));
        std::vector<int32_t> prompt = range(0, 60);
        prompt.push_back(9999);
        KvSequence found = cache.take(prompt);
        QCOMPARE(found.tokens, range(0, 60));
        QCOMPARE(found.blocks.size(), size_t(2));
        QCOMPARE(cache.blocks(), int64_t(2 + 3));  // the other two are still there
        pool.release(found);
    }

    void theLastPromptTokenIsNeverReused() {
        KvPool pool(kShape, 100);
        PrefixCache cache(pool);
        cache.put(sequenceOf(pool, range(0, 40)));
        KvSequence found = cache.take(range(0, 40));
        QCOMPARE(found.length(), int64_t(39));
        pool.release(found);
    }

    void strangersShareNothing() {
        KvPool pool(kShape, 100);
        PrefixCache cache(pool);
        cache.put(sequenceOf(pool, range(0, 40)));
        QCOMPARE(cache.take(range(7, 40)).length(), int64_t(0));
        QCOMPARE(cache.take({0}).length(), int64_t(0));
        QCOMPARE(cache.blocks(), int64_t(2));
    }

    void oldestIsEvictedFirst() {
        KvPool pool(kShape, 100);
        PrefixCache cache(pool);
        cache.put(sequenceOf(pool, range(0, 10)));
        cache.put(sequenceOf(pool, range(100, 10)));
        QVERIFY(cache.evictOldest());
        QCOMPARE(cache.take(range(0, 10)).length(), int64_t(0));
        KvSequence second = cache.take(range(100, 10));
        QCOMPARE(second.length(), int64_t(9));
        pool.release(second);
        QVERIFY(!cache.evictOldest());
    }
};

QTEST_GUILESS_MAIN(TestKvCache)
#include "test_kv_cache.moc"
