// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "engine/runtime/sampler.h"
#include "engine/runtime/text_stream.h"

using namespace colibri;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The number of draws of each id in `n` draws.
std::map<int32_t, int> draws(const Sampling& sampling, const std::vector<float>& logits, int n) {
    Sampler sampler(sampling, {});
    std::map<int32_t, int> counts;
    for (int i = 0; i < n; ++i) ++counts[*sampler.next(logits)];
    return counts;
}

// Pearson's chi-square statistic of counts for these probabilities.
double chiSquare(const std::map<int32_t, int>& counts, const std::vector<double>& p, int n) {
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) {
        const auto it = counts.find(int32_t(i));
        const double expected = p[i] * n, seen = it == counts.end() ? 0 : it->second;
        sum += (seen - expected) * (seen - expected) / expected;
    }
    return sum;
}

}  // namespace

class TestSampler : public QObject {
    Q_OBJECT

    const std::vector<float> m_logits{1.0f, 3.0f, 0.0f, 2.0f, -1.0f};
    static constexpr int kDraws = 40000;

    std::vector<double> softmax(double temperature, std::vector<int> kept = {}) {
        std::vector<double> p(m_logits.size(), 0);
        double sum = 0;
        for (size_t i = 0; i < p.size(); ++i) {
            if (!kept.empty() && std::find(kept.begin(), kept.end(), int(i)) == kept.end())
                continue;
            p[i] = std::exp(double(m_logits[i]) / temperature);
            sum += p[i];
        }
        for (double& v : p) v /= sum;
        return p;
    }

private slots:
    void greedyTakesTheLargest() {
        Sampler sampler({}, {});
        QCOMPARE(sampler.next(m_logits), std::optional<int32_t>(1));
    }
    void greedyTieIsTheLowestId() {
        Sampler sampler({}, {});
        QCOMPARE(sampler.next(std::vector<float>{0, 5, 5, 5}), std::optional<int32_t>(1));
    }
    void nanAndInfinityAreNeverChosen() {
        for (const float temperature : {0.0f, 1.0f}) {
            Sampling s;
            s.temperature = temperature;
            Sampler sampler(s, {});
            QCOMPARE(sampler.next(std::vector<float>{kNan, kInfinity, 1, -kInfinity}),
                     std::optional<int32_t>(2));
            QCOMPARE(sampler.next(std::vector<float>{kNan, kInfinity}), std::optional<int32_t>());
        }
    }

    // The 99.99 % quantile of chi square with 4 degrees of freedom is 23.5. The seed determines the
    // draws, so the result is always the same.
    void drawsFollowTheSoftmax() {
        for (const float temperature : {0.5f, 1.0f, 2.0f}) {
            Sampling s;
            s.temperature = temperature;
            s.seed = 42;
            QVERIFY(chiSquare(draws(s, m_logits, kDraws), softmax(double(temperature)), kDraws) <
                    23.5);
        }
    }
    void topKKeepsTheLargest() {
        Sampling s;
        s.temperature = 1;
        s.topK = 2;
        const auto counts = draws(s, m_logits, kDraws);
        QCOMPARE(counts.size(), size_t(2));
        const std::vector<double> p = softmax(1, {1, 3});
        QVERIFY(std::abs(counts.at(1) / double(kDraws) - p[1]) < 0.01);
        QVERIFY(counts.contains(3));
    }
    void topPKeepsTheSmallestSetThatReachesIt() {
        const std::vector<double> p = softmax(1);
        Sampling s;
        s.temperature = 1;
        s.topP = float(p[1] + 0.5 * p[3]);  // 1 alone does not reach it, 1 and 3 do
        QCOMPARE(draws(s, m_logits, 2000).size(), size_t(2));
        s.topP = float(0.5 * p[1]);
        QCOMPARE(draws(s, m_logits, 2000).size(), size_t(1));
    }
    // With as many tokens as a vocabulary has, and with sets of very different sizes.
    void topPOfManyTokens() {
        std::vector<float> logits(20000);
        for (size_t i = 0; i < logits.size(); ++i) logits[i] = float(i * 7919 % 20011) / 2000;
        std::vector<size_t> order(logits.size());
        std::iota(order.begin(), order.end(), size_t(0));
        std::sort(order.begin(), order.end(),
                  [&](size_t a, size_t b) { return logits[a] > logits[b]; });
        double total = 0;
        for (const float x : logits) total += std::exp(double(x));
        for (const float topP : {0.001f, 0.1f, 0.9f}) {
            std::set<int32_t> kept;
            double sum = 0;
            for (const size_t i : order) {
                if (!kept.empty() && sum >= double(topP) * total) break;
                sum += std::exp(double(logits[i]));
                kept.insert(int32_t(i));
            }
            Sampling s;
            s.temperature = 1;
            s.topP = topP;
            const auto counts = draws(s, logits, 300);
            QVERIFY(counts.size() > (topP < 0.01f ? 1 : 100));
            for (const auto& [id, n] : counts) QVERIFY(kept.contains(id));
        }
    }
    void aTinyTemperatureIsGreedy() {
        Sampling s;
        for (const float temperature : {1e-38f, 1e-45f}) {
            for (const int topK : {0, 1, 2}) {
                s.temperature = temperature;
                s.topK = topK;
                QCOMPARE(draws(s, {10, 20, kNan, -3}, 20), (std::map<int32_t, int>{{1, 20}}));
                QCOMPARE(draws(s, {-10, -9, -30}, 20), (std::map<int32_t, int>{{1, 20}}));
            }
        }
    }
    void minPIsRelativeToTheBest() {
        Sampling s;
        s.temperature = 1;
        s.minP = float(std::exp(-1.5));  // keeps logits within 1.5 of the largest
        const auto counts = draws(s, m_logits, 2000);
        QCOMPARE(counts.size(), size_t(2));
        QVERIFY(counts.contains(1) && counts.contains(3));
    }
    void penaltyPushesSeenTokensDown() {
        Sampling s;
        s.repetitionPenalty = 10;
        const std::vector<int32_t> prompt{1};
        Sampler sampler(s, prompt);
        QCOMPARE(sampler.next(m_logits), std::optional<int32_t>(3));  // 1 was in the prompt
        QCOMPARE(sampler.next(m_logits), std::optional<int32_t>(0));  // 3 has been generated
        // A negative logit is multiplied, so it decreases too.
        Sampler negative(s, std::vector<int32_t>{0});
        QCOMPARE(negative.next(std::vector<float>{-1, -2}), std::optional<int32_t>(1));
    }
    void presenceCountsOnceFrequencyEachTime() {
        const std::vector<float> logits{5, 4, 3.25f, 0};
        const auto three = [&](float presence, float frequency, std::vector<int32_t> prompt) {
            Sampling s;
            s.presencePenalty = presence;
            s.frequencyPenalty = frequency;
            Sampler sampler(s, prompt);
            std::vector<int32_t> ids;
            for (int i = 0; i < 4; ++i) ids.push_back(*sampler.next(logits));
            return ids;
        };
        using Ids = std::vector<int32_t>;
        QCOMPARE(three(0, 0, {}), (Ids{0, 0, 0, 0}));
        QCOMPARE(three(1.5f, 0, {}), (Ids{0, 1, 0, 0}));          // both 3.5, then no change
        QCOMPARE(three(0, 0.75f, {}), (Ids{0, 0, 1, 0}));         // 5, 4.25, 4 over 3.5, 3.5
        QCOMPARE(three(0, 0.75f, {0, 0, 0}), (Ids{0, 0, 1, 0}));  // the prompt does not count
        QCOMPARE(three(-1, 0, {}), (Ids{0, 0, 0, 0}));
    }
    void biasIsAdded() {
        Sampling s;
        s.logitBias = {{0, 100}, {1, -100}, {99, 5}};
        Sampler sampler(s, {});
        QCOMPARE(sampler.next(m_logits), std::optional<int32_t>(0));
        s.logitBias = {{0, -100}};
        s.temperature = 1;
        Sampler never(s, {});
        for (int i = 0; i < 100; ++i) QVERIFY(never.next(m_logits) != std::optional<int32_t>(0));
    }
    void seedDecides() {
        Sampling s;
        s.temperature = 1;
        const auto sequence = [&](uint64_t seed) {
            s.seed = seed;
            Sampler sampler(s, {});
            std::vector<int32_t> ids;
            for (int i = 0; i < 50; ++i) ids.push_back(*sampler.next(m_logits));
            return ids;
        };
        QCOMPARE(sequence(1), sequence(1));
        QVERIFY(sequence(1) != sequence(2));
    }
    // The generator is documented as splitmix64; these are its published outputs for seed 0.
    void drawsAreSplitmix64() {
        QCOMPARE(uniformDraw(0, 0), double(0xe220a8397b1dcdafull >> 11) / 9007199254740992.0);
        QCOMPARE(uniformDraw(0, 1), double(0x6e789e6aa1b965f4ull >> 11) / 9007199254740992.0);
        QCOMPARE(uniformDraw(0, 2), double(0x06c45d188009454full >> 11) / 9007199254740992.0);
    }

    void stopStringNeverShows() {
        TextStream stream({"STOP", "\n\n"});
        QCOMPARE(stream.push("Hello S"), std::string("Hello "));
        QCOMPARE(stream.push("TO"), std::string());
        QCOMPARE(stream.push("RY"), std::string("STORY"));
        QCOMPARE(stream.push("\n"), std::string());
        QVERIFY(!stream.stopped());
        QCOMPARE(stream.push("\nmore"), std::string());
        QVERIFY(stream.stopped());
        QCOMPARE(stream.finish(), std::string());
        QCOMPARE(stream.text(), std::string("Hello STORY"));
    }
    void heldBackTextComesAtTheEnd() {
        TextStream stream({"STOP"});
        QCOMPARE(stream.push("an S"), std::string("an "));
        QCOMPARE(stream.finish(), std::string("S"));
        QCOMPARE(stream.text(), std::string("an S"));
    }
    void earliestStopWins() {
        TextStream stream({"c", "b"});
        QCOMPARE(stream.push("abc"), std::string("a"));
        QVERIFY(stream.stopped());
    }
    void charactersStayWhole() {
        TextStream stream({});
        QCOMPARE(stream.push("\xe2\x82"), std::string());
        QCOMPARE(stream.push("\xac!"), std::string("\xe2\x82\xac!"));
        QCOMPARE(stream.push("\xe2"), std::string());
        QCOMPARE(stream.finish(), std::string("\xef\xbf\xbd"));
    }
    void stopStringOverCharacterBytes() {
        TextStream stream({"é"});
        QCOMPARE(stream.push("caf\xc3"), std::string("caf"));
        QCOMPARE(stream.push("\xa9s"), std::string());
        QVERIFY(stream.stopped());
    }
};

QTEST_GUILESS_MAIN(TestSampler)
#include "test_sampler.moc"
