// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity compared with sums over the engine's logits, windows, and the comparison of two
// models.
#include <QTest>

#include <cmath>

#include "profiler/quality/perplexity.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

double nll(const std::vector<float>& logits, int32_t token) {
    double sum = 0;
    for (const float v : logits) sum += std::exp(double(v));
    return std::log(sum) - logits[size_t(token)];
}

}  // namespace

class TestPerplexity : public QObject {
    Q_OBJECT

    std::unique_ptr<Engine> m_exact;
    std::vector<int32_t> m_ids;

private slots:
    void initTestCase() {
        m_exact = load(goldenModel("qwen3moe"));
        m_ids = somePrompt(41, m_exact->info().config.vocabSize);
    }

    void oneWindowIsTheSumOverThePositions() {
        const auto rows = m_exact->logits(m_ids);
        QVERIFY(rows.ok());
        double sum = 0;
        for (size_t i = 1; i < m_ids.size(); ++i) sum += nll(rows->logits[i - 1], m_ids[i]);
        const auto p = measurePerplexity(*m_exact, m_ids, {.window = 41}, {}, nullptr);
        QVERIFY2(p.ok(), p.status().text().c_str());
        QCOMPARE(p->tokens, int64_t(40));
        QVERIFY(std::abs(p->meanNll - sum / 40) < 1e-6);
        QVERIFY(std::abs(p->perplexity() - std::exp(sum / 40)) < 1e-4 * p->perplexity());
        QVERIFY(p->standardError > 0);
    }

    // Windows of 16 tokens: the first scores 15, each of the others its eight new ones.
    void overlappingWindowsScoreEachTokenOnce() {
        double sum = 0;
        for (size_t scored = 1; scored < m_ids.size();) {
            const size_t begin = scored == 1 ? 0 : scored - 8;
            const size_t end = std::min(m_ids.size(), begin + 16);
            const auto rows =
                m_exact->logits({m_ids.begin() + long(begin), m_ids.begin() + long(end)});
            QVERIFY(rows.ok());
            for (; scored < end; ++scored)
                sum += nll(rows->logits[scored - 1 - begin], m_ids[scored]);
        }
        const auto p = measurePerplexity(*m_exact, m_ids, {.window = 16}, {}, nullptr);
        QVERIFY(p.ok());
        QCOMPARE(p->tokens, int64_t(40));
        QVERIFY(std::abs(p->meanNll - sum / 40) < 1e-6);
    }

    void aModelEqualsItself() {
        const auto c = compareModels(*m_exact, *m_exact, m_ids, {.window = 41}, {}, nullptr);
        QVERIFY(c.ok());
        QCOMPARE(c->meanKl, 0.0);
        QCOMPARE(c->top1Agreement, 1.0);
        QCOMPARE(c->a.meanNll, c->b.meanNll);
    }

    void coarserWeightsLieFurtherAway() {
        const auto q8 = load(goldenModel("qwen3moe", DType::Q8_0));
        const auto q4 = load(goldenModel("qwen3moe", DType::Q4_0));
        const auto near = compareModels(*m_exact, *q8, m_ids, {.window = 41}, {}, nullptr);
        const auto far = compareModels(*m_exact, *q4, m_ids, {.window = 41}, {}, nullptr);
        QVERIFY(near.ok() && far.ok());
        QVERIFY(near->meanKl > 0);
        QVERIFY(far->meanKl > near->meanKl);
        QVERIFY(near->maxKl >= near->p99Kl && near->p99Kl >= 0);
    }

    void wrongInputIsSaid() {
        const auto none = measurePerplexity(*m_exact, {1}, {.window = 16}, {}, nullptr);
        QCOMPARE(none.status().code(), Code::InvalidArgument);
        const int64_t context = m_exact->contextLength();
        const auto wide = measurePerplexity(*m_exact, m_ids, {.window = context + 1}, {}, nullptr);
        QCOMPARE(wide.status().code(), Code::InvalidArgument);
        const auto outside = measurePerplexity(*m_exact, {1, 1 << 30}, {.window = 16}, {}, nullptr);
        QCOMPARE(outside.status().code(), Code::InvalidArgument);
        CancelFlag cancel{true};
        const auto stopped = measurePerplexity(*m_exact, m_ids, {.window = 16}, {}, &cancel);
        QCOMPARE(stopped.status().code(), Code::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestPerplexity)
#include "test_perplexity.moc"
