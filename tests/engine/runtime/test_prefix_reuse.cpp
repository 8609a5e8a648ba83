// SPDX-License-Identifier: GPL-3.0-or-later
// Results of earlier and concurrent requests are reused, and give the same bytes.
#include <QtTest>
#include <cstring>
#include <thread>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

using Tokens = std::vector<int32_t>;

Tokens operator+(Tokens a, const Tokens& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Tokens cut(Tokens tokens, size_t length) {
    tokens.resize(length);
    return tokens;
}

// Whether two results are equal, including all bits of the log-probabilities.
bool same(const RequestResult& a, const RequestResult& b) {
    if (a.tokens != b.tokens || a.logprobs.size() != b.logprobs.size()) return false;
    for (size_t t = 0; t < a.logprobs.size(); ++t) {
        if (a.logprobs[t].size() != b.logprobs[t].size()) return false;
        for (size_t i = 0; i < a.logprobs[t].size(); ++i) {
            const Logprob x = a.logprobs[t][i], y = b.logprobs[t][i];
            if (x.id != y.id || std::memcmp(&x.value, &y.value, sizeof x.value) != 0) return false;
        }
    }
    return true;
}

RequestResult run(Engine& engine, const Tokens& prompt, int tokens) {
    Request request = greedyRequest(prompt, tokens);
    request.logprobs = kMaxLogprobs;
    return Pending(engine, request).wait();
}

}  // namespace

class TestPrefixReuse : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;

private slots:
    void initTestCase() { m_model = randomModel(); }

    void anotherConversationDoesNotDestroyTheKeptPrompt() {
        const auto engine = load(m_model);
        const Tokens head = somePrompt(6, 300, 1);
        const Tokens a = head + somePrompt(94, 300, 2), b = head + somePrompt(70, 300, 3);
        const Tokens reply = test::generate(*engine, a, 20);
        test::generate(*engine, b, 20);
        const Tokens second = a + reply + somePrompt(15, 300, 4);
        const RequestResult result = run(*engine, second, 8);
        // All except the reply's last token, which was never computed.
        QCOMPARE(result.cachedTokens, uint32_t(a.size() + reply.size() - 1));
        QVERIFY(same(result, run(*load(m_model), second, 8)));
    }

    // Regenerating, editing, and returning to an earlier branch.
    void branchesOfAChatShareWhatTheyHaveInCommon() {
        const auto engine = load(m_model);
        const Tokens first = somePrompt(60, 300, 1);
        const Tokens reply = test::generate(*engine, first, 30);
        QCOMPARE(run(*engine, first, 30).cachedTokens, 59u);  // regenerate
        const Tokens left = first + reply + somePrompt(20, 300, 2);
        const Tokens right = first + reply + somePrompt(20, 300, 3);
        const Tokens edited = cut(first, 45) + somePrompt(20, 300, 4);
        QCOMPARE(run(*engine, left, 5).cachedTokens, 89u);  // the last token was never computed
        QCOMPARE(run(*engine, right, 5).cachedTokens, 90u);
        QCOMPARE(run(*engine, edited, 5).cachedTokens, 45u);
        for (const Tokens& branch : {left, right, edited}) {
            const RequestResult again = run(*engine, branch, 5);
            QCOMPARE(again.cachedTokens, uint32_t(branch.size() - 1));
            QVERIFY(same(again, run(*load(m_model), branch, 5)));
        }
    }

    void usersWithOneSystemPromptShareIt_data() {
        QTest::addColumn<int>("timeout");
        QTest::addRow("one after another") << 0;
        QTest::addRow("at the same time") << 200;
    }
    void usersWithOneSystemPromptShareIt() {
        QFETCH(int, timeout);
        constexpr int kUsers = 6;
        const Tokens system = somePrompt(100, 300, 1);
        std::vector<Tokens> prompts;
        std::vector<RequestResult> alone;
        for (int i = 0; i < kUsers; ++i) {
            prompts.push_back(system + somePrompt(5 + i, 300, uint64_t(10 + i)));
            alone.push_back(run(*load(m_model), prompts.back(), 10));
        }
        const auto engine = load(m_model, {{KnobId::BatchTimeout, timeout},
                                           {KnobId::MaxBatch, kUsers},
                                           {KnobId::PrefillChunk, 40},
                                           {KnobId::ExpertCacheSize, 9}});
        std::vector<std::unique_ptr<Pending>> pending;
        for (const Tokens& prompt : prompts) {
            Request request = greedyRequest(prompt, 10);
            request.logprobs = kMaxLogprobs;
            pending.push_back(std::make_unique<Pending>(*engine, request));
        }
        uint32_t cached = 0, all = 0;
        for (size_t i = 0; i < prompts.size(); ++i) {
            const RequestResult& result = pending[i]->wait();
            QVERIFY(same(result, alone[i]));
            cached += result.cachedTokens;
            all += result.promptTokens;
        }
        QVERIFY2(cached >= (kUsers - 1) * 96, qPrintable(QString::number(cached)));
        const KvStats kv = engine->batchStats().kv;
        QCOMPARE(kv.promptTokens, uint64_t(all));
        QCOMPARE(kv.reusedTokens, uint64_t(cached));
        QCOMPARE(kv.heldBlocks, int64_t(0));
        QVERIFY(kv.keptBlocks > 0);
        // Tokens counted as cached were not computed.
        QCOMPARE(engine->batchStats().rows, uint64_t(all - cached) + kUsers * 9);
    }

    // Kept conversations use at most the memory of one context, and are evicted for running
    // requests.
    void keptConversationsGiveWay() {
        const auto engine = load(m_model, {{KnobId::ContextLength, 256}});
        for (uint64_t seed = 0; seed < 20; ++seed) {
            const Tokens prompt = somePrompt(90, 300, seed);
            QVERIFY(same(run(*engine, prompt, 30), run(*engine, prompt, 30)));
            const KvStats kv = engine->batchStats().kv;
            QCOMPARE(kv.blocks, int64_t(8));
            QVERIFY(kv.keptBlocks <= 8 && kv.heldBlocks == 0);
        }
        QCOMPARE(run(*engine, somePrompt(200, 300, 99), 100).stop, StopReason::ContextFull);
    }

    // Windows, chunked windows, sinks, latents, all types of keys and values, and a branch at every
    // position in a block: the bytes equal those of an empty cache.
    void everyFamilyGivesTheSameAfterAnyReusedLength_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("type");
        const char* types[] = {"f32", "f16", "q8"};
        for (const auto& entry : goldenIndex()) {
            const auto name = entry["name"].get<std::string>();
            for (const char* wanted :
                 {"qwen3-window", "gpt-oss", "deepseekv2", "llama4", "phimoe", "minimax-m2"}) {
                for (int type = 0; type < 3 && name == wanted; ++type) {
                    QTest::addRow("%s %s", wanted, types[type]) << QString(wanted) << type;
                }
            }
        }
    }
    void everyFamilyGivesTheSameAfterAnyReusedLength() {
        QFETCH(QString, name);
        QFETCH(int, type);
        const std::filesystem::path model = goldenModel(name.toStdString());
        const Knobs knobs{{KnobId::KvDtype, type}, {KnobId::ContextLength, 128}};
        const auto reused = load(model, knobs), fresh = load(model, knobs);
        const int64_t vocab = reused->info().config.vocabSize;
        const Tokens kept = somePrompt(80, vocab, 5);
        for (const size_t length : {1, 7, 31, 32, 33, 63, 64, 79}) {
            const Tokens prompt = cut(kept, length) + somePrompt(11, vocab, length);
            run(*reused, kept, 4);
            const RequestResult got = run(*reused, prompt, 6);
            QVERIFY(got.cachedTokens >= length);
            // Drops the earlier prompts of the fresh engine.
            fresh->applyKnob(KnobId::RouterMode, int64_t(RouterMode::Exact));
            const RequestResult want = run(*fresh, prompt, 6);
            QCOMPARE(want.cachedTokens, 0u);
            QVERIFY2(same(got, want), qPrintable(QString("%1 tokens reused").arg(length)));
        }
    }

    // Keys and values computed with another router are never reused, even if their request ended
    // after the change.
    void anotherRouterReusesNothing() {
        RandomShape shape;
        shape.context = 1 << 16;
        const auto engine = load(randomModel(shape), {{KnobId::ContextLength, 1 << 16}});
        const Tokens prompt = somePrompt(70, 300, 1);
        Pending running(*engine, greedyRequest(prompt, 1 << 15));
        while (running.tokens() < 3) std::this_thread::yield();
        engine->applyKnob(KnobId::RouterMode, int64_t(RouterMode::Exact));
        QVERIFY(!running.done());
        engine->cancel(running.id());
        running.wait();
        QCOMPARE(run(*engine, prompt, 5).cachedTokens, 0u);
        QCOMPARE(run(*engine, prompt, 5).cachedTokens, 69u);
    }
};

QTEST_GUILESS_MAIN(TestPrefixReuse)
#include "test_prefix_reuse.moc"
