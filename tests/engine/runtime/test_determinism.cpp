// SPDX-License-Identifier: GPL-3.0-or-later
// Greedy output has the same ids for every cache, prefetch, batch and thread setting.
#include <QtTest>
#include <set>
#include <thread>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestDeterminism : public QObject {
    Q_OBJECT

    static constexpr int kTokens = 24;
    std::filesystem::path m_model;
    std::vector<int32_t> m_prompt;
    std::vector<int32_t> m_expected;  // of the best instruction set

    void same(const Knobs& knobs, const char* what, std::optional<Isa> isa = {},
              const std::vector<int32_t>* expected = nullptr) {
        const auto engine = load(m_model, knobs, isa);
        QVERIFY2(test::generate(*engine, m_prompt, kTokens) == (expected ? *expected : m_expected),
                 what);
    }

private slots:
    void initTestCase() {
        m_model = randomModel();
        m_prompt = somePrompt(70, 300);
        const auto engine = load(m_model);
        m_expected = test::generate(*engine, m_prompt, kTokens);
        QCOMPARE(m_expected.size(), size_t(kTokens));
        // A text that repeats one token would prove nothing.
        QVERIFY(std::set<int32_t>(m_expected.begin(), m_expected.end()).size() > 4);
    }

    void everyCacheSize() {
        for (int64_t size = 1; size <= 16; ++size) {
            same({{KnobId::ExpertCacheSize, size}}, qPrintable(QString::number(size)));
        }
    }

    void everyPolicy() {
        for (int64_t policy = 0; policy < 3; ++policy) {
            same({{KnobId::ExpertCacheSize, 5}, {KnobId::CachePolicy, policy}}, "policy");
        }
    }

    void everyPrefetchSetting() {
        for (int64_t source = 0; source < 4; ++source) {
            for (const int64_t depth : {0, 1, 2, 4}) {
                for (const int64_t threads : {0, 1, 2}) {
                    same({{KnobId::ExpertCacheSize, 6},
                          {KnobId::PrefetchSource, source},
                          {KnobId::PrefetchDepth, depth},
                          {KnobId::PrefetchThreads, threads}},
                         qPrintable(QString("source %1 depth %2 threads %3")
                                        .arg(source)
                                        .arg(depth)
                                        .arg(threads)));
                }
            }
        }
    }

    void everyChunkAndThreadCount() {
        for (const int64_t threads : {1, 2}) {
            for (const int64_t chunk : {16, 17, 33, 512}) {
                same({{KnobId::ComputeThreads, threads},
                      {KnobId::PrefillChunk, chunk},
                      {KnobId::ExpertCacheSize, 7}},
                     qPrintable(QString("threads %1 chunk %2").arg(threads).arg(chunk)));
            }
        }
    }

    void bufferedReadsAndLinkLimit() {
        same({{KnobId::IoMode, int64_t(IoMode::Buffered)}, {KnobId::ExpertCacheSize, 4}},
             "buffered");
        same({{KnobId::LinkLimit, 200}, {KnobId::ExpertCacheSize, 8}}, "link limit");
    }

    void everyInstructionSetWithinItself() {
        for (const Isa isa : availableIsas()) {
            for (const KvType kv : {KvType::F32, KvType::F16, KvType::Q8}) {
                const std::pair<KnobId, int64_t> type{KnobId::KvDtype, int64_t(kv)};
                const auto engine = load(m_model, {{KnobId::ComputeThreads, 1}, type}, isa);
                const std::vector<int32_t> expected = test::generate(*engine, m_prompt, kTokens);
                same({{KnobId::ComputeThreads, 2},
                      {KnobId::ExpertCacheSize, 3},
                      {KnobId::PrefillChunk, 16},
                      type},
                     "isa", isa, &expected);
            }
        }
    }

    // Each of several requests gives the same result alone and with the others.
    void batchesDoNotMix() {
        std::vector<std::vector<int32_t>> prompts, alone;
        for (int i = 0; i < 6; ++i)
            prompts.push_back(somePrompt(5 + 23 * i, 300, uint64_t(i + 10)));
        {
            const auto engine = load(m_model);
            for (const auto& p : prompts) alone.push_back(test::generate(*engine, p, kTokens));
        }
        const auto engine =
            load(m_model, {{KnobId::PrefillChunk, 32}, {KnobId::ExpertCacheSize, 9}});
        std::vector<std::unique_ptr<Pending>> pending;
        for (const auto& p : prompts) {
            pending.push_back(std::make_unique<Pending>(*engine, greedyRequest(p, kTokens)));
        }
        for (size_t i = 0; i < prompts.size(); ++i) QCOMPARE(pending[i]->wait().tokens, alone[i]);
    }

    // Sampling with a seed does not depend on other requests either.
    void seedsDoNotMix() {
        Request request = greedyRequest(m_prompt, kTokens);
        request.sampling.temperature = 1.0f;
        request.sampling.seed = 5;
        const auto engine = load(m_model);
        Pending first(*engine, request);
        const std::vector<int32_t> alone = first.wait().tokens;
        QVERIFY(alone != m_expected);
        Pending other(*engine, greedyRequest(somePrompt(30, 300, 77), kTokens));
        Pending second(*engine, request);
        QCOMPARE(second.wait().tokens, alone);
        other.wait();
    }

    void knobsTurnedWhileGenerating() {
        const auto engine = load(m_model, {{KnobId::ExpertCacheSize, 16}});
        for (int round = 0; round < 3; ++round) {
            Pending pending(*engine, greedyRequest(m_prompt, kTokens));
            for (int64_t i = 0; !pending.done(); ++i) {
                engine->setKnob(KnobId::ExpertCacheSize, 1 + i % 16);
                engine->setKnob(KnobId::ComputeThreads, 1 + i % 2);
                engine->setKnob(KnobId::PrefetchSource, i % 4);
                engine->setKnob(KnobId::PrefetchThreads, i % 3);
                engine->setKnob(KnobId::CachePolicy, i % 3);
                engine->setKnob(KnobId::PrefillChunk, 16 + i % 40);
                std::this_thread::yield();
            }
            QCOMPARE(pending.wait().tokens, m_expected);
        }
    }

    void reusedPrefixGivesTheSame() {
        const auto engine = load(m_model);
        std::vector<int32_t> longer = m_prompt;
        longer.insert(longer.end(), m_expected.begin(), m_expected.end());
        const std::vector<int32_t> question = somePrompt(9, 300, 3);
        longer.insert(longer.end(), question.begin(), question.end());
        const std::vector<int32_t> fresh = test::generate(*engine, longer, kTokens);
        const auto other = load(m_model);
        QCOMPARE(test::generate(*other, m_prompt, kTokens), m_expected);
        Pending second(*other, greedyRequest(longer, kTokens));
        const RequestResult& result = second.wait();
        QCOMPARE(result.cachedTokens, uint32_t(m_prompt.size() + m_expected.size() - 1));
        QCOMPARE(result.tokens, fresh);
    }
};

QTEST_GUILESS_MAIN(TestDeterminism)
#include "test_determinism.moc"
