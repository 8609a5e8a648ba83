// SPDX-License-Identifier: GPL-3.0-or-later
// Log-probabilities of a request: their values, and that requesting them changes nothing else.
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <future>
#include <limits>

#include "engine/runtime/logprobs.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestLogprobs : public QObject {
    Q_OBJECT

    std::unique_ptr<Engine> m_engine;

    static double logSumExp(const std::vector<float>& logits) {
        double sum = 0;
        for (const float x : logits) sum += std::exp(double(x));
        return std::log(sum);
    }

private slots:
    void initTestCase() {
        m_engine = load(goldenModel("qwen3moe"), {{KnobId::KvDtype, int64_t(KvType::F32)}});
    }

    void softmaxOfTheRawLogits_data() {
        QTest::addColumn<bool>("warm");
        QTest::newRow("greedy") << false;
        QTest::newRow("sampled, penalised and cut") << true;
    }
    void softmaxOfTheRawLogits() {
        QFETCH(bool, warm);
        Request request = greedyRequest({5, 6, 7, 8}, 12);
        request.logprobs = 5;
        if (warm) request.sampling = {1.7f, 3, 0.8f, 0.01f, 1.4f, 9};
        const RequestResult r = Pending(*m_engine, request).wait();
        QCOMPARE(r.logprobs.size(), r.tokens.size());
        std::vector<int32_t> all = request.prompt;
        all.insert(all.end(), r.tokens.begin(), r.tokens.end());
        const auto reference = m_engine->logits(all);
        QVERIFY(reference.ok());
        for (size_t i = 0; i < r.tokens.size(); ++i) {
            const std::vector<float>& logits = reference->logits[request.prompt.size() - 1 + i];
            const double total = logSumExp(logits);
            const std::vector<Logprob>& told = r.logprobs[i];
            QCOMPARE(told.size(), size_t(6));
            QCOMPARE(told[0].id, r.tokens[i]);
            for (const Logprob& p : told) {
                const double expected = double(logits[size_t(p.id)]) - total;
                QVERIFY2(std::abs(double(p.value) - expected) < 1e-4,
                         (std::to_string(p.value) + " is not " + std::to_string(expected)).c_str());
            }
            for (size_t n = 2; n < told.size(); ++n) QVERIFY(told[n].value <= told[n - 1].value);
            const auto best = std::max_element(logits.begin(), logits.end());
            QCOMPARE(told[1].id, int32_t(best - logits.begin()));
            if (!warm) QCOMPARE(told[0].id, told[1].id);
        }
    }

    void changeNothingElse() {
        const RequestResult plain = Pending(*m_engine, greedyRequest({1, 2, 3}, 20)).wait();
        QVERIFY(plain.logprobs.empty());
        Request request = greedyRequest({1, 2, 3}, 20);
        request.logprobs = 0;
        const RequestResult with = Pending(*m_engine, request).wait();
        QCOMPARE(with.tokens, plain.tokens);
        QCOMPARE(with.text, plain.text);
        QCOMPARE(with.logprobs.size(), with.tokens.size());
        for (const std::vector<Logprob>& token : with.logprobs) QCOMPARE(token.size(), size_t(1));
    }

    void comeWithEachToken() {
        for (const std::optional<int> wanted : {std::optional<int>(), std::optional<int>(2)}) {
            Request request = greedyRequest({1, 2, 3}, 6);
            request.logprobs = wanted;
            std::vector<GeneratedToken> tokens;
            std::promise<RequestResult> done;
            RequestCallbacks callbacks;
            callbacks.onToken = [&](const GeneratedToken& t) {
                tokens.push_back(t);
                return true;
            };
            callbacks.onDone = [&](RequestResult r) { done.set_value(std::move(r)); };
            QVERIFY(m_engine->submit(request, callbacks).ok());
            const RequestResult r = done.get_future().get();
            QCOMPARE(tokens.size(), size_t(6));
            for (size_t i = 0; i < tokens.size(); ++i) {
                QCOMPARE(tokens[i].logprobs.size(), size_t(wanted ? 3 : 0));
                if (!wanted) continue;
                QCOMPARE(tokens[i].logprobs[0].id, tokens[i].id);
                QCOMPARE(tokens[i].logprobs[2].value, r.logprobs[i][2].value);
            }
        }
    }

    void outOfRangeIsRefused() {
        for (const int wanted : {-1, kMaxLogprobs + 1}) {
            Request request = greedyRequest({1}, 1);
            request.logprobs = wanted;
            const Status status = Pending(*m_engine, request).submitted();
            QCOMPARE(status.code(), Code::InvalidArgument);
            QVERIFY(status.message().find("logprobs") != std::string::npos);
        }
    }

    void equalAndBrokenLogits() {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const float infinity = std::numeric_limits<float>::infinity();
        const std::vector<float> logits{1, 3, nan, 3, infinity, -infinity};
        const std::vector<Logprob> told = logprobsOf(logits, 2, 20);
        std::vector<int32_t> ids;
        double sum = 0;
        for (size_t i = 1; i < told.size(); ++i) {
            ids.push_back(told[i].id);
            sum += std::exp(double(told[i].value));
        }
        QCOMPARE(ids, (std::vector<int32_t>{1, 3, 0}));
        QVERIFY(std::abs(sum - 1) < 1e-6);
        QCOMPARE(told[0].id, 2);
        QCOMPARE(told[0].value, -infinity);
        // Large logits do not overflow.
        QVERIFY(std::abs(logprobsOf(std::vector<float>{1e30f, 1e30f}, 0, 0)[0].value +
                         std::log(2.0f)) < 1e-6f);
    }
};

QTEST_GUILESS_MAIN(TestLogprobs)
#include "test_logprobs.moc"
