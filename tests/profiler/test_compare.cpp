// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <filesystem>
#include <random>

#include "profiler/compare/compare.h"
#include "profiler/session/session_writer.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

// Gaps that are similar to their neighbours (an autoregression), with some slow ones.
std::vector<double> gaps(int n, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 1);
    std::vector<double> out;
    double drift = 0;
    for (int i = 0; i < n; ++i) {
        drift = 0.8 * drift + noise(random);
        out.push_back(20 + drift + (i % 17 == 0 ? 15 : 0));
    }
    return out;
}

}  // namespace

class TestCompare : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }

    struct Session {
        const char* model = "m";
        int32_t firstPromptToken = 5;
        double slower = 1;  // factor on every gap
        int64_t cacheSize = 8;
        int tokens = 400;
    };
    Status record(const fs::path& path, const Session& session) {
        auto writer = SessionWriter::create(
            path, {{"model", session.model}, {"model_fingerprint", session.model}});
        if (!writer) return writer.status();
        Event event{};
        event.type = EventType::KnobChanged;
        event.knob.knob = uint8_t(KnobId::ExpertCacheSize);
        event.knob.requested = event.knob.effective = session.cacheSize;
        COLIBRI_TRY((*writer)->write(event, 0));
        event = {};
        event.request.request = 1;
        event.request.promptTokens = 2;
        for (const auto type : {EventType::RequestArrived, EventType::RequestAdmitted,
                                EventType::RequestFirstToken}) {
            event.type = type;
            COLIBRI_TRY((*writer)->write(event, type == EventType::RequestFirstToken ? 0.5 : 0.1));
        }
        event = {};
        event.type = EventType::Prompt;
        event.prompt = {.request = 1, .count = 2, .tokens = {session.firstPromptToken, 6}};
        COLIBRI_TRY((*writer)->write(event, 0.1));
        const std::vector<double> gap = gaps(session.tokens, 3);
        for (int i = 0; i < session.tokens; ++i) {
            event = {};
            event.type = EventType::Token;
            event.token.request = 1;
            event.token.index = uint32_t(i);
            event.token.token = i % 50;
            event.token.gapNs = i ? uint64_t(gap[size_t(i)] * session.slower * 1e6) : 0;
            event.token.lookups = 8;
            event.token.hits = 6;
            COLIBRI_TRY((*writer)->write(event, 0.5 + 0.02 * i));
        }
        return (*writer)->finish();
    }
    Result<SessionComparison> compare(const Session& before, const Session& after) {
        static int number = 0;
        const fs::path a = file(("a" + std::to_string(++number)).c_str());
        const fs::path b = file(("b" + std::to_string(number)).c_str());
        COLIBRI_TRY(record(a, before));
        COLIBRI_TRY(record(b, after));
        auto x = SessionDb::open(a), y = SessionDb::open(b);
        if (!x) return x.status();
        if (!y) return y.status();
        return compareSessions(*x, *y, nullptr);
    }

private slots:
    // A machine whose speed drifts for seconds, and runs that do not differ otherwise.
    void driftIsNoDifference() {
        constexpr int kRuns = 200, kTokens = 300;
        int significant = 0;
        for (int run = 0; run < kRuns; ++run) {
            std::mt19937_64 random(uint64_t(run + 1));
            std::normal_distribution<double> noise(0, 1);
            const auto slowed = [&](const std::vector<double>& text) {
                std::vector<double> out;
                double drift = 0;
                for (const double gap : text) {
                    drift = 0.95 * drift + 0.02 * noise(random);
                    out.push_back(gap * (1 + std::abs(drift)));
                }
                return out;
            };
            const std::vector<double> text = gaps(kTokens, uint64_t(run + 1));
            significant += pairedDifference(slowed(text), slowed(text), meanOf).significant;
        }
        QVERIFY2(significant <= kRuns * 8 / 100, QByteArray::number(significant));
    }
    void pairingSeesASmallDifference() {
        const std::vector<double> before = gaps(500, 1);
        std::vector<double> after;
        for (const double gap : before) after.push_back(gap * 1.02);
        const Difference paired = pairedDifference(before, after, meanOf);
        QVERIFY(paired.significant);
        QVERIFY(std::abs(paired.relative - 0.02) < 1e-9);
        QVERIFY(paired.low <= 0.02 + 1e-9 && paired.high >= 0.02 - 1e-9);
        // Without pairing the text hides it.
        QVERIFY(!unpairedDifference(before, gaps(500, 2), meanOf).significant);
    }
    void theIntervalHoldsTheTruth() {
        // Two runs of one setting, 200 times: the interval holds 0 in about 95 % of them.
        int holds = 0;
        for (uint64_t i = 0; i < 200; ++i) {
            const Difference d =
                unpairedDifference(gaps(400, 100 + 2 * i), gaps(400, 101 + 2 * i), meanOf);
            holds += d.low <= 0 && d.high >= 0;
        }
        QVERIFY2(holds >= 178, qPrintable(QString::number(holds)));
    }
    void fewValuesHaveNoInterval() {
        const std::vector<double> few(10, 1.0);
        const Difference d = pairedDifference(few, few, meanOf);
        QCOMPARE(d.relative, 0.0);
        QVERIFY(std::isnan(d.low) && !d.significant);
        QVERIFY(std::isnan(pairedDifference({}, {}, meanOf).relative));
    }
    void sessionsOfTheSameTokensArePaired() {
        const auto c = compare({}, {.slower = 1.05, .cacheSize = 16});
        QVERIFY2(c.ok(), c.status().text().c_str());
        QVERIFY(c->whyNot.empty() && c->matched);
        QCOMPARE(c->knobs.size(), size_t(1));
        QCOMPARE(c->knobs[0].name, std::string("expert_cache_size"));
        QCOMPARE(c->knobs[0].after, std::string("16"));
        const Difference& rate = c->figures[0].difference;
        QVERIFY(std::abs(rate.relative - (1 / 1.05 - 1)) < 1e-3);
        QVERIFY(rate.significant && rate.high < 0);
        QVERIFY(std::abs(c->figures[4].difference.before - 0.75) < 1e-9);
        QVERIFY(!c->figures[4].difference.significant);
        QVERIFY(c->quantiles[0].second > 0);
    }
    void theSameSessionTwiceDiffersInNothing() {
        const auto c = compare({}, {});
        QVERIFY(c.ok());
        QVERIFY(c->knobs.empty());
        for (const auto& row : c->figures) QVERIFY2(!row.difference.significant, row.name);
    }
    void whatCannotBeComparedIsNamed() {
        const auto model = compare({}, {.model = "other"});
        QVERIFY(model.ok());
        QCOMPARE(model->whyNot.size(), size_t(1));
        QVERIFY(model->whyNot[0].find("other") != std::string::npos);
        const auto prompt = compare({}, {.firstPromptToken = 9});
        QCOMPARE(prompt->whyNot, std::vector<std::string>{"the prompts differ"});
        QVERIFY(!prompt->matched);
        // Other replies to the same prompt can be compared, but not paired.
        const auto shorter = compare({}, {.tokens = 300});
        QVERIFY(shorter->whyNot.empty() && !shorter->matched);
    }
};

QTEST_GUILESS_MAIN(TestCompare)
#include "test_compare.moc"
