// SPDX-License-Identifier: GPL-3.0-or-later
// Blocking requests: what the observer receives, and how a request ends early.
#include <QtTest>

#include "engine/runtime/run_request.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestRunRequest : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;

private slots:
    void initTestCase() { m_model = randomModel(); }

    void theObserverSeesTokensTextAndTheEndInOrder() {
        const auto engine = load(goldenModel("qwen3moe"));
        std::string text, shownAtEnd;
        std::vector<int32_t> tokens;
        uint32_t prefilled = 0;
        RequestObserver observer;
        observer.onToken = [&](const GeneratedToken& token) {
            tokens.push_back(token.id);
            return true;
        };
        observer.onText = [&](const std::string& piece) {
            text += piece;
            return true;
        };
        observer.onPrefill = [&](uint32_t done, uint32_t) { prefilled = done; };
        observer.onEnd = [&] { shownAtEnd = text; };
        const std::vector<int32_t> prompt = engine->tokenizer()->encode("hello");
        const auto result = runRequest(*engine, greedyRequest(prompt, 20), observer);
        QVERIFY(result.ok());
        QCOMPARE(result->stop, StopReason::MaxTokens);
        QCOMPARE(tokens, result->tokens);
        QCOMPARE(text, result->text);
        QCOMPARE(shownAtEnd, text);
        QCOMPARE(prefilled, uint32_t(prompt.size()));
    }

    void heldBackTextComesAtTheEnd() {
        const auto engine = load(goldenModel("qwen3moe"));
        Request request = greedyRequest(engine->tokenizer()->encode("hello"), 20);
        const auto whole = runRequest(*engine, request);
        QVERIFY(whole.ok() && whole->text.size() > 3);
        // The end of the text begins the stop string, so it is held back.
        request.stops = {whole->text.substr(whole->text.size() - 3) + "never to be seen"};
        std::string text;
        std::vector<std::string> pieces;
        RequestObserver observer;
        observer.onText = [&](const std::string& piece) {
            pieces.push_back(piece);
            text += piece;
            return true;
        };
        const auto result = runRequest(*engine, request, observer);
        QVERIFY(result.ok());
        QCOMPARE(result->text, whole->text);
        QCOMPARE(text, whole->text);
        QVERIFY(pieces.back().size() >= 3);
    }

    void whatIsRefusedIsNotObserved() {
        const auto engine = load(m_model);
        bool seen = false;
        RequestObserver observer;
        observer.onToken = [&](const GeneratedToken&) { return seen = true; };
        observer.onEnd = [&] { seen = true; };
        const auto result = runRequest(*engine, greedyRequest({}, 4), observer);
        QCOMPARE(result.status().code(), Code::InvalidArgument);
        QVERIFY(!seen);
        QCOMPARE(engine->activeRequests(), 0);
    }

    void theFlagEndsAPromptUnderWay() {
        const auto engine = load(m_model, {{KnobId::PrefillChunk, 16}});
        CancelFlag cancel{false};
        RequestObserver observer;
        observer.onPrefill = [&](uint32_t done, uint32_t total) {
            // Waits until runRequest, which polls the flag, has cancelled the request.
            if (done == 0 || done == total) return;
            cancel.store(true);
            QTest::qSleep(20);
        };
        const auto result =
            runRequest(*engine, greedyRequest(somePrompt(1900, 300), 100), observer, &cancel);
        QVERIFY(result.ok());
        QCOMPARE(result->stop, StopReason::Cancelled);
        QCOMPARE(result->tokens.size(), size_t(0));
    }

    void theFlagEndsAReply() {
        const auto engine = load(m_model);
        CancelFlag cancel{false};
        RequestObserver observer;
        observer.onToken = [&](const GeneratedToken& token) {
            if (token.index == 2) cancel.store(true);
            return true;
        };
        const auto result = runRequest(*engine, greedyRequest({1, 2}, 50), observer, &cancel);
        QVERIFY(result.ok());
        QCOMPARE(result->stop, StopReason::Cancelled);
        QCOMPARE(result->tokens.size(), size_t(3));
    }

    void falseFromTheTextEndsTheReply() {
        const auto engine = load(goldenModel("qwen3moe"));
        int pieces = 0;
        RequestObserver observer;
        observer.onText = [&](const std::string&) { return ++pieces < 3; };
        const auto result =
            runRequest(*engine, greedyRequest(engine->tokenizer()->encode("hello"), 60), observer);
        QVERIFY(result.ok());
        QCOMPARE(result->stop, StopReason::Cancelled);
        QCOMPARE(pieces, 3);
    }

    void waitingEndsWithWhatWasWaitedFor() {
        const auto engine = load(m_model);
        int tokens = 0;
        RequestRun run(*engine);
        RequestObserver observer;
        observer.onToken = [&](const GeneratedToken&) {
            run.locked([&] { ++tokens; });
            return true;
        };
        QVERIFY(run.start(greedyRequest({1, 2}, 2000), observer).ok());
        const auto late = RequestRun::Clock::now() + std::chrono::minutes(10);
        QVERIFY(run.wait(late, [&] { return tokens >= 2; }));
        QVERIFY(!run.wait(RequestRun::Clock::now(), [] { return false; }));
        const RequestResult& result = run.finish();
        QCOMPARE(result.stop, StopReason::Cancelled);
        QVERIFY(result.tokens.size() >= 2 && result.tokens.size() < 2000);
    }

    void aRunThatIsDroppedEndsItsRequest() {
        const auto engine = load(m_model);
        {
            RequestRun run(*engine);
            QVERIFY(run.start(greedyRequest({1, 2}, 2000), {}).ok());
        }
        QCOMPARE(engine->activeRequests(), 0);
        const RequestRun never(*engine);  // a run that was never started does not wait
    }
};

QTEST_GUILESS_MAIN(TestRunRequest)
#include "test_run_request.moc"
