// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "engine/runtime/kv_cache.h"

using namespace colibri;

namespace {

using Tokens = std::vector<int32_t>;

const KvShape kShape{2, 2, 8, KvType::F16};
constexpr int64_t kPositionBytes = 8;

Tokens range(int from, int count) {
    Tokens v(static_cast<size_t>(count));
    std::iota(v.begin(), v.end(), from);
    return v;
}

Tokens operator+(Tokens a, const Tokens& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// Represents the keys and values of a position: a value that depends on all tokens up to it.
uint64_t mark(uint64_t before, int32_t token) {
    return (before ^ uint64_t(token)) * 1099511628211u + 7;
}

std::byte* place(const KvSequence& s, int64_t position) {
    return s.blocks[size_t(position / kPageTokens)]->data + position % kPageTokens * kPositionBytes;
}

// Does the same to the cache as a forward pass over these tokens.
bool append(KvCache& cache, KvSequence& s, std::span<const int32_t> tokens) {
    if (!cache.grow(s, s.length() + int64_t(tokens.size()))) return false;
    uint64_t value = 0;
    for (const int32_t t : s.tokens) value = mark(value, t);
    for (const int32_t t : tokens) {
        s.tokens.push_back(t);
        value = mark(value, t);
        std::memcpy(place(s, s.length() - 1), &value, sizeof value);
    }
    return true;
}

bool contentsAreRight(const KvSequence& s) {
    uint64_t value = 0;
    for (int64_t p = 0; p < s.length(); ++p) {
        value = mark(value, s.tokens[size_t(p)]);
        if (std::memcmp(&value, place(s, p), sizeof value) != 0) return false;
    }
    return true;
}

// A sequence of these tokens that reuses what the cache has.
KvSequence read(KvCache& cache, const Tokens& tokens, int64_t* found = nullptr) {
    KvSequence s;
    const int64_t n = cache.find(s, tokens);
    if (found) *found = n;
    if (!append(cache, s, std::span(tokens).subspan(size_t(n)))) qFatal("no room");
    cache.share(s);
    return s;
}

void converse(KvCache& cache, const Tokens& tokens) {
    KvSequence s = read(cache, tokens);
    cache.keep(s);
}

int64_t found(KvCache& cache, const Tokens& tokens) {
    KvSequence s;
    const int64_t n = cache.find(s, tokens);
    if (!contentsAreRight(s)) qFatal("found something else");
    cache.keep(s);
    return n;
}

}  // namespace

class TestKvCache : public QObject {
    Q_OBJECT

private slots:
    void blocksAreLazyAndReused() {
        KvCache cache(kShape, 100);
        QCOMPARE(cache.allocatedBytes(), int64_t(0));
        KvSequence a;
        QVERIFY(cache.grow(a, 1));
        QCOMPARE(a.blocks.size(), size_t(1));
        QVERIFY(cache.grow(a, kPageTokens));
        QCOMPARE(a.blocks.size(), size_t(1));
        QVERIFY(cache.grow(a, kPageTokens + 1));
        QCOMPARE(a.blocks.size(), size_t(2));
        const int64_t bytes = cache.allocatedBytes();
        QVERIFY(bytes >= 2 * kShape.blockBytes());
        const std::set<KvBlock*> first(a.blocks.begin(), a.blocks.end());
        cache.release(a);
        KvSequence b;
        QVERIFY(cache.grow(b, 2 * kPageTokens));
        QCOMPARE(std::set<KvBlock*>(b.blocks.begin(), b.blocks.end()), first);
        QCOMPARE(cache.allocatedBytes(), bytes);
        cache.release(b);
        QCOMPARE(cache.counts().held, int64_t(0));
    }

    void anotherConversationDestroysNothing() {
        KvCache cache(kShape, 100);
        const Tokens a = range(0, 119), b = range(0, 6) + range(500, 90);
        converse(cache, a);
        converse(cache, b);
        QCOMPARE(found(cache, a), int64_t(119));
        QCOMPARE(found(cache, b), int64_t(96));
        QCOMPARE(found(cache, a + range(900, 40)), int64_t(119));
    }

    // Also with running sequences, as soon as a block is complete.
    void sequencesThatBeginAlikeHoldTheSameBlocks() {
        KvCache cache(kShape, 100);
        const Tokens system = range(0, 3 * kPageTokens);
        int64_t n = 0;
        KvSequence a = read(cache, system + range(500, 10));
        KvSequence b = read(cache, system + range(600, 10), &n);
        QCOMPARE(n, int64_t(system.size()));
        for (size_t i = 0; i < 3; ++i) QCOMPARE(a.blocks[i], b.blocks[i]);
        QVERIFY(a.blocks[3] != b.blocks[3]);
        QCOMPARE(cache.counts().held, int64_t(5));
        QCOMPARE(cache.heldAlone(a), int64_t(1));
        cache.release(a);
        QCOMPARE(cache.counts().held, int64_t(4));
        QVERIFY(contentsAreRight(b));
        cache.release(b);
    }

    // Two sequences computed the same block at the same time; one copy is kept.
    void equalBlocksBecomeOne() {
        KvCache cache(kShape, 100);
        KvSequence a, b;
        const Tokens tokens = range(0, 2 * kPageTokens);
        QVERIFY(append(cache, a, tokens) && append(cache, b, tokens));
        QCOMPARE(cache.counts().held, int64_t(4));
        cache.share(a);
        cache.share(b);
        QCOMPARE(cache.counts().held, int64_t(2));
        QCOMPARE(a.blocks, b.blocks);
        cache.release(a);
        cache.release(b);
    }

    // The beginning of a block is copied, and the block itself does not change.
    void aBranchInTheMiddleOfABlockIsACopy() {
        KvCache cache(kShape, 100);
        KvSequence running = read(cache, range(0, 2 * kPageTokens));
        int64_t n = 0;
        KvSequence branch = read(cache, range(0, 40) + range(800, 50), &n);
        QCOMPARE(n, int64_t(40));
        QVERIFY(contentsAreRight(branch) && contentsAreRight(running));
        QCOMPARE(branch.blocks[0], running.blocks[0]);
        QVERIFY(branch.blocks[1] != running.blocks[1]);
        cache.keep(branch);
        cache.keep(running);
        QCOMPARE(found(cache, range(0, 2 * kPageTokens)), int64_t(2 * kPageTokens));
    }

    void strangersShareNothing() {
        KvCache cache(kShape, 100);
        converse(cache, range(0, 40));
        QCOMPARE(found(cache, range(7, 40)), int64_t(0));
        QCOMPARE(found(cache, {}), int64_t(0));
        QCOMPARE(cache.counts().kept, int64_t(2));
    }

    // The end of a conversation that was continued uses no block.
    void aContinuedEndIsNotKeptTwice() {
        KvCache cache(kShape, 100);
        for (int turn = 1; turn <= 30; ++turn) converse(cache, range(0, 7 * turn));
        QCOMPARE(cache.counts().kept, kvBlocksFor(7 * 30));
        converse(cache, range(0, 45));
        QCOMPARE(cache.counts().kept, kvBlocksFor(7 * 30));
    }

    void leastRecentlyUsedGoesFirst() {
        KvCache cache(kShape, 6);
        converse(cache, range(0, 64));
        converse(cache, range(1000, 64));
        converse(cache, range(2000, 64));
        QCOMPARE(found(cache, range(0, 64)), int64_t(64));
        converse(cache, range(3000, 32));
        // Evicts the end of the least recently used one.
        QCOMPARE(found(cache, range(0, 64)), int64_t(64));
        QCOMPARE(found(cache, range(2000, 64)), int64_t(64));
        QCOMPARE(found(cache, range(1000, 64)), int64_t(32));
    }

    void heldBlocksAreNeverTaken() {
        KvCache cache(kShape, 4);
        KvSequence a = read(cache, range(0, 70));
        QCOMPARE(cache.missing({}, 33), int64_t(1));
        QCOMPARE(cache.missing({}, 32), int64_t(0));
        QCOMPARE(cache.missing(range(0, 64), 96), int64_t(0));
        KvSequence b;
        QVERIFY(cache.grow(b, 32));
        QVERIFY(!cache.grow(b, 33));
        QVERIFY(!cache.grow(a, 97));
        QVERIFY(contentsAreRight(a));
        cache.release(b);
        QVERIFY(cache.grow(a, 97));
        cache.release(a);
    }

    // A sequence with blocks reserved for its prompt reuses blocks that others have completed.
    void aSequenceThatReadsFindsWhatOthersCompleted() {
        KvCache cache(kShape, 100);
        const Tokens prompt = range(0, 100);
        KvSequence late;
        QVERIFY(cache.grow(late, 101));
        KvSequence first = read(cache, prompt);
        QCOMPARE(cache.counts().held, int64_t(8));
        QCOMPARE(cache.find(late, std::span(prompt).first(99)), int64_t(96));
        QCOMPARE(cache.counts().held, int64_t(5));
        QVERIFY(append(cache, late, std::span(prompt).subspan(96)));
        QVERIFY(contentsAreRight(late));
        cache.keep(first);
        cache.keep(late);
        QCOMPARE(cache.counts().held, int64_t(0));
    }

    void nothingIsFoundAfterForget() {
        KvCache cache(kShape, 100);
        converse(cache, range(0, 70));
        KvSequence running = read(cache, range(0, 64) + range(500, 40));
        cache.forget();
        QCOMPARE(found(cache, range(0, 70)), int64_t(0));
        QVERIFY(contentsAreRight(running));
        // Its beginning is evicted, so the end of the sequence must not be kept.
        QVERIFY(append(cache, running, range(900, 60)));
        cache.share(running);
        cache.keep(running);
        QCOMPARE(found(cache, range(0, 64)), int64_t(0));
        QCOMPARE(cache.counts().held, int64_t(0));
        QCOMPARE(cache.counts().kept, int64_t(0));
        converse(cache, range(0, 70));
        QCOMPARE(found(cache, range(0, 70)), int64_t(70));
    }

    // Random operations. With enough memory everything ever stored is found. With little memory,
    // what is found is correct, and no block is lost or counted twice.
    void randomOperations_data() {
        QTest::addColumn<int>("blocks");
        for (const int blocks : {3, 8, 20, 100000}) {
            QTest::addRow("%d blocks", blocks) << blocks;
        }
    }
    void randomOperations() {
        QFETCH(int, blocks);
        KvCache cache(kShape, blocks);
        const bool plenty = blocks > 1000;
        std::mt19937 random{uint32_t(blocks)};
        const auto below = [&](size_t n) { return size_t(random() % n); };
        std::vector<Tokens> ended;
        std::vector<KvSequence> running;
        const auto lengthInCommon = [&](const Tokens& tokens) {
            size_t most = 0;
            const auto compare = [&](const Tokens& other, size_t length) {
                size_t n = 0;
                while (n < std::min(tokens.size(), length) && tokens[n] == other[n]) ++n;
                most = std::max(most, n);
            };
            for (const Tokens& t : ended) compare(t, t.size());
            for (const KvSequence& s : running) compare(s.tokens, size_t(s.shared * kPageTokens));
            return int64_t(most);
        };
        for (int i = 0; i < 2000; ++i) {
            const size_t what = below(10);
            if (what < 4 && running.size() < 12) {
                // Begins like an earlier one, with few different tokens, so that beginnings are
                // often equal.
                Tokens tokens;
                if (!ended.empty() && below(4) > 0) {
                    tokens = ended[below(ended.size())];
                    tokens.resize(below(tokens.size() + 1));
                }
                for (size_t n = 1 + below(50); n > 0; --n) tokens.push_back(int32_t(below(2)));
                KvSequence s;
                const int64_t expected = lengthInCommon(tokens);
                const bool fits = cache.missing(tokens, int64_t(tokens.size())) == 0;
                const int64_t n = cache.find(s, tokens);
                QVERIFY2(n <= expected, "found what was never stored");
                if (plenty) QCOMPARE(n, expected);
                const bool grown = append(cache, s, std::span(tokens).subspan(size_t(n)));
                QCOMPARE(grown, fits);
                if (grown) {
                    cache.share(s);
                    running.push_back(std::move(s));
                } else {
                    cache.release(s);
                }
            } else if (!running.empty()) {
                const size_t at = below(running.size());
                KvSequence& s = running[at];
                if (what < 8) {
                    const int32_t token = int32_t(below(2));
                    if (append(cache, s, {&token, 1}) && below(2)) cache.share(s);
                } else {
                    if (what == 8) {
                        ended.push_back(s.tokens);
                        cache.keep(s);
                    } else {
                        cache.share(s);
                        ended.emplace_back(s.tokens.begin(),
                                           s.tokens.begin() + s.shared * kPageTokens);
                        cache.release(s);
                    }
                    running.erase(running.begin() + std::ptrdiff_t(at));
                }
            } else if (below(50) == 0) {
                cache.forget();
                ended.clear();
            }
            std::map<const KvBlock*, int64_t> holders;
            for (const KvSequence& s : running) {
                QVERIFY(contentsAreRight(s));
                for (const KvBlock* b : s.blocks) ++holders[b];
            }
            for (const auto& [block, count] : holders) QCOMPARE(block->holders, count);
            const KvCounts counts = cache.counts();
            QCOMPARE(counts.held, int64_t(holders.size()));
            QVERIFY(counts.held + counts.kept <= blocks);
        }
        for (KvSequence& s : running) cache.release(s);
        QCOMPARE(cache.counts().held, int64_t(0));
        cache.forget();
        QCOMPARE(cache.counts().kept, int64_t(0));
        if (plenty) return;
        KvSequence all;  // all blocks are still available
        QVERIFY(cache.grow(all, blocks * kPageTokens));
        cache.release(all);
    }
};

QTEST_GUILESS_MAIN(TestKvCache)
#include "test_kv_cache.moc"
