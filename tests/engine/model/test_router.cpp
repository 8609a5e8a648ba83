// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>

#include "engine/model/router.h"

using namespace colibri;

namespace {

struct Choice {
    std::vector<int> experts;
    std::vector<float> weights;
};

Choice select(const RoutingSpec& spec, std::vector<float> logits, int k,
              const std::vector<float>& bias = {}) {
    const int n = int(logits.size());
    const Router router(spec, n, k, kernelsFor(Isa::Scalar));
    std::vector<float> scratch(static_cast<size_t>(n));
    Choice c{std::vector<int>(size_t(k)), std::vector<float>(size_t(k))};
    router.select(logits.data(), bias.empty() ? nullptr : bias.data(), scratch.data(),
                  c.experts.data(), c.weights.data());
    return c;
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
bool near(double a, double b) {
    return std::abs(a - b) < 1e-6;
}

}  // namespace

class TestRouter : public QObject {
    Q_OBJECT

    const std::vector<float> m_logits{0.5f, 2.0f, -1.0f, 1.0f};
    const double m_sum = std::exp(0.5) + std::exp(2.0) + std::exp(-1.0) + std::exp(1.0);

private slots:
    void softmaxKeepsScoresWithoutRenorm() {
        const Choice c = select({}, m_logits, 2);
        QCOMPARE(c.experts, (std::vector<int>{1, 3}));
        QVERIFY(near(c.weights[0], std::exp(2.0) / m_sum));
        QVERIFY(near(c.weights[1], std::exp(1.0) / m_sum));
    }
    void renormDividesByTheChosenSum() {
        RoutingSpec spec;
        spec.renorm = true;
        const Choice c = select(spec, m_logits, 2);
        QVERIFY(near(c.weights[0] + c.weights[1], 1));
        QVERIFY(near(c.weights[0], std::exp(2.0) / (std::exp(2.0) + std::exp(1.0))));
    }
    void logitSoftmaxEqualsRenormalisedSoftmax() {
        RoutingSpec spec;
        spec.weightSource = WeightSource::LogitSoftmax;
        const Choice c = select(spec, m_logits, 2);
        QVERIFY(near(c.weights[0], std::exp(2.0) / (std::exp(2.0) + std::exp(1.0))));
    }
    void biasTakesPartInSelectionOnly() {
        RoutingSpec spec;
        spec.scoreFn = ScoreFn::Sigmoid;
        spec.selectBias = true;
        const Choice c = select(spec, m_logits, 2, {0, 0, 5, 0});
        QCOMPARE(c.experts, (std::vector<int>{2, 1}));
        QVERIFY(near(c.weights[0], sigmoid(-1)));
        QVERIFY(near(c.weights[1], sigmoid(2)));
    }
    void scaleComesAfterRenorm() {
        RoutingSpec spec;
        spec.renorm = true;
        spec.scale = 2.5;
        const Choice c = select(spec, m_logits, 3);
        QVERIFY(near(c.weights[0] + c.weights[1] + c.weights[2], 2.5));
    }
    void sigmoidOfLogit() {
        RoutingSpec spec;
        spec.weightSource = WeightSource::SigmoidLogit;
        const Choice c = select(spec, m_logits, 1);
        QCOMPARE(c.experts, (std::vector<int>{1}));
        QVERIFY(near(c.weights[0], sigmoid(2)));
    }
    void equalScoresTakeTheLowestExpert() {
        QCOMPARE(select({}, {1, 1, 1, 1}, 2).experts, (std::vector<int>{0, 1}));
    }
    // Experts from a table are weighted by the gate, with the sum of the gate's own choice.
    void weighKeepsTheTotalOfTheOwnChoice() {
        for (const bool renorm : {false, true}) {
            RoutingSpec spec;
            spec.renorm = renorm;
            spec.scale = 1.5;
            const Router router(spec, 4, 2, kernelsFor(Isa::Scalar));
            std::vector<float> logits = m_logits, scratch(4), weights(2);
            const std::vector<int> named = {3, 0};
            std::vector<int> own(2);
            router.weigh(logits.data(), nullptr, scratch.data(), named.data(), own.data(),
                         weights.data());
            QCOMPARE(own, (std::vector<int>{1, 3}));
            const Choice exact = select(spec, m_logits, 2);
            QVERIFY(near(weights[0] + weights[1], exact.weights[0] + exact.weights[1]));
            QVERIFY(near(weights[0] / weights[1], std::exp(1.0) / std::exp(0.5)));
        }
    }
    void weighGivesTheOwnChoiceItsOwnWeights() {
        const Router router({}, 4, 2, kernelsFor(Isa::Scalar));
        std::vector<float> logits = m_logits, scratch(4), weights(2);
        const std::vector<int> named = {1, 3};
        std::vector<int> own(2);
        router.weigh(logits.data(), nullptr, scratch.data(), named.data(), own.data(),
                     weights.data());
        QCOMPARE(weights, select({}, m_logits, 2).weights);
    }
    void weighSharesEquallyWhenTheGateGivesNothing() {
        RoutingSpec spec;
        const Router router(spec, 4, 2, kernelsFor(Isa::Scalar));
        std::vector<float> logits = {200, 199, -200, -200}, scratch(4), weights(2);
        const std::vector<int> named = {2, 3};
        std::vector<int> own(2);
        router.weigh(logits.data(), nullptr, scratch.data(), named.data(), own.data(),
                     weights.data());
        QVERIFY(near(weights[0], 0.5) && near(weights[1], 0.5));
    }
    void zeroSumDoesNotDivide() {
        RoutingSpec spec;
        spec.scoreFn = ScoreFn::Sigmoid;
        spec.renorm = true;
        const Choice c = select(spec, {-200, -200, -200, -200}, 2);
        for (const float w : c.weights) QVERIFY(std::isfinite(w));
    }

    // The two group scores choose different groups here.
    void onlyTheBestGroupsAreChosenFrom() {
        const std::vector<float> logits{3.0f, -9.0f, 2.0f, 1.9f};  // groups {0, 1} and {2, 3}
        RoutingSpec spec;
        spec.scoreFn = ScoreFn::Sigmoid;
        spec.groups = 2;
        spec.groupTopK = 1;
        spec.groupScore = GroupScore::Max;
        QCOMPARE(select(spec, logits, 2).experts, (std::vector<int>{0, 1}));
        spec.groupScore = GroupScore::Top2Sum;
        const Choice c = select(spec, logits, 2);
        QCOMPARE(c.experts, (std::vector<int>{2, 3}));
        QVERIFY(near(c.weights[0], sigmoid(2.0)));
        // The bias of the first group affects the choice and not the weights.
        const Choice biased = select(
            [&] {
                RoutingSpec s = spec;
                s.selectBias = true;
                return s;
            }(),
            logits, 2, {2.0f, 2.0f, 0.0f, 0.0f});
        QCOMPARE(biased.experts, (std::vector<int>{0, 1}));
        QVERIFY(near(biased.weights[0], sigmoid(3.0)));
    }

    // The weight of each of the two experts is a softmax over the logits close to its own.
    void sparseMixerWeighsEachChoiceByItsNeighbours() {
        RoutingSpec spec;
        spec.scoreFn = ScoreFn::Logit;
        spec.weightSource = WeightSource::SparseMixer;
        spec.sparseJitter = 0.3;  // up to 60 % below
        const Choice c = select(spec, {4.0f, 2.0f, 1.0f, 0.5f}, 2);
        QCOMPARE(c.experts, (std::vector<int>{0, 1}));
        // (4 - 2) / 4 counts, (4 - 1) / 4 does not; then (2 - 1) / 2 counts, (2 - 0.5) / 2 not.
        QVERIFY(near(c.weights[0], 1 / (1 + std::exp(-2.0))));
        QVERIFY(near(c.weights[1], 1 / (1 + std::exp(-1.0))));
    }
};

QTEST_GUILESS_MAIN(TestRouter)
#include "test_router.moc"
