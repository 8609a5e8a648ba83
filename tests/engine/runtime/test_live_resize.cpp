// SPDX-License-Identifier: GPL-3.0-or-later
// The cache slider while the bundled model streams a reply: the change takes effect at the next
// token, the hit rate follows, and the text does not change.
#include <QtTest>
#include <future>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr uint32_t kTurnAt = 60, kTokens = 180;

struct Reply {
    std::string text;
    std::vector<GeneratedToken> tokens;
    int64_t appliedAt = -1;  // index of the first token with the new effective size
};

Reply tell(Engine& engine, std::optional<int64_t> newSize) {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    messages.push_back(
        {{"role", "user"}, {"content", "Tell me a long story about a fox who finds a key."}});
    const auto prompt = engine.encodeChat(messages);
    if (!prompt.ok()) throw std::runtime_error(prompt.status().text());
    Reply reply;
    std::promise<RequestResult> done;
    Request request = greedyRequest(*prompt, kTokens);
    request.ignoreEos = true;
    RequestCallbacks callbacks;
    callbacks.onToken = [&](const GeneratedToken& token) {
        if (newSize) {
            if (token.index == kTurnAt) engine.setKnob(KnobId::ExpertCacheSize, *newSize);
            if (reply.appliedAt < 0 &&
                engine.knobState(KnobId::ExpertCacheSize).effective == *newSize) {
                reply.appliedAt = token.index;
            }
        }
        reply.tokens.push_back(token);
        return true;
    };
    callbacks.onDone = [&](RequestResult result) { done.set_value(std::move(result)); };
    if (const auto id = engine.submit(std::move(request), std::move(callbacks)); !id.ok()) {
        throw std::runtime_error(id.status().text());
    }
    const RequestResult result = done.get_future().get();
    if (!result.status.ok()) throw std::runtime_error(result.status.text());
    reply.text = result.text;
    return reply;
}

double hitRate(const Reply& reply, size_t from, size_t to) {
    uint32_t lookups = 0, hits = 0;
    for (size_t i = from; i < to; ++i) {
        lookups += reply.tokens[i].lookups;
        hits += reply.tokens[i].hits;
    }
    return lookups ? double(hits) / lookups : 0;
}

}  // namespace

class TestLiveResize : public QObject {
    Q_OBJECT

    const std::filesystem::path m_demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";

private slots:
    void sliderActsAtOnceAndLeavesTheText_data() {
        QTest::addColumn<int>("from");
        QTest::addColumn<int>("to");
        QTest::newRow("grow") << 6 << 24;
        QTest::newRow("shrink") << 24 << 6;
    }
    void sliderActsAtOnceAndLeavesTheText() {
        QFETCH(int, from);
        QFETCH(int, to);
        const auto steady = load(m_demo, {{KnobId::ExpertCacheSize, from}});
        const Reply before = tell(*steady, {});
        const auto turned = load(m_demo, {{KnobId::ExpertCacheSize, from}});
        const Reply after = tell(*turned, to);
        QCOMPARE(after.text, before.text);
        QCOMPARE(after.tokens.size(), size_t(kTokens));
        // Effective within two tokens: the running one and the next.
        QVERIFY2(after.appliedAt >= kTurnAt && after.appliedAt <= kTurnAt + 2,
                 qPrintable(QString::number(after.appliedAt)));
        // Forty tokens are two seconds at the demo's link limit.
        const double was = hitRate(after, 20, kTurnAt),
                     is = hitRate(after, kTurnAt + 10, kTurnAt + 50);
        qInfo("hit rate %.1f %% -> %.1f %%", 100 * was, 100 * is);
        if (to > from) {
            QVERIFY(is > was + 0.1);
        } else {
            QVERIFY(is < was - 0.1);
        }
    }
};

QTEST_GUILESS_MAIN(TestLiveResize)
#include "test_live_resize.moc"
