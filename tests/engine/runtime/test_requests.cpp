// SPDX-License-Identifier: GPL-3.0-or-later
// The life of a request: argument checks, ends, cancellation, failing reads, queue, events.
#include <QtTest>
#include <filesystem>
#include <future>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestRequests : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;

private slots:
    void initTestCase() { m_model = randomModel(); }

    void wrongRequestsAreRefused() {
        const auto engine = load(m_model, {{KnobId::ContextLength, 64}});
        const auto code = [&](const Request& r) { return Pending(*engine, r).submitted().code(); };
        QCOMPARE(code(greedyRequest({}, 4)), Code::InvalidArgument);
        QCOMPARE(code(greedyRequest({1, 300}, 4)), Code::InvalidArgument);
        QCOMPARE(code(greedyRequest({-1}, 4)), Code::InvalidArgument);
        QCOMPARE(code(greedyRequest({1}, 0)), Code::InvalidArgument);
        QCOMPARE(code(greedyRequest(somePrompt(64, 300), 1)), Code::InvalidArgument);
        Request bad = greedyRequest({1}, 1);
        bad.sampling.temperature = -1;
        QCOMPARE(code(bad), Code::InvalidArgument);
        bad = greedyRequest({1}, 1);
        bad.sampling.topP = 0;
        QCOMPARE(code(bad), Code::InvalidArgument);
        const Status status = Pending(*engine, greedyRequest({1, 300}, 4)).submitted();
        QVERIFY(status.message().find("300") != std::string::npos);
        QCOMPARE(engine->activeRequests(), 0);
    }

    void endsAtMaxTokens() {
        const auto engine = load(m_model);
        Pending p(*engine, greedyRequest({1, 2, 3}, 5));
        const RequestResult& r = p.wait();
        QCOMPARE(r.stop, StopReason::MaxTokens);
        QCOMPARE(r.tokens.size(), size_t(5));
        QCOMPARE(r.gapsMs.size(), size_t(4));
        QCOMPARE(r.promptTokens, 3u);
        QCOMPARE(r.cachedTokens, 0u);
        QVERIFY(r.ttftMs > 0 && r.decodeTokS > 0 && r.promptTokS > 0);
    }

    void forcedTokensReplaceSampledOnes() {
        const auto engine = load(m_model);
        const std::vector<int32_t> free = test::generate(*engine, {1, 2, 3}, 8);
        Request request = greedyRequest({1, 2, 3}, 8);
        request.forced = {int32_t(free[0] == 5 ? 6 : 5), 7};
        const std::vector<int32_t> forced = request.forced;
        Pending p(*engine, request);
        const RequestResult& r = p.wait();
        QCOMPARE(r.tokens.size(), size_t(8));
        QCOMPARE(r.tokens[0], forced[0]);
        QCOMPARE(r.tokens[1], forced[1]);
        // The rest continues the forced tokens, as if they were part of the prompt.
        const std::vector<int32_t> rest =
            test::generate(*engine, {1, 2, 3, forced[0], forced[1]}, 6);
        QCOMPARE(std::vector<int32_t>(r.tokens.begin() + 2, r.tokens.end()), rest);

        request.forced = {300};
        const Status status = Pending(*engine, request).submitted();
        QCOMPARE(status.code(), Code::InvalidArgument);
        QVERIFY(status.message().find("300") != std::string::npos);
    }

    void aPauseIsInNoGap() {
        constexpr double kPauseMs = 300;
        const auto engine = load(m_model);
        const std::vector<int32_t> want = test::generate(*engine, {1, 2, 3}, 200);
        QElapsedTimer wall;
        wall.start();
        Pending p(*engine, greedyRequest({1, 2, 3}, 200));
        while (p.tokens() < 5) QThread::usleep(20);
        {
            const EnginePause pause(*engine);
            const EnginePause another(*engine);
            QThread::msleep(20);  // the callback of the last step may still run
            const size_t tokens = p.tokens();
            QVERIFY(!p.done());
            QThread::msleep(int(kPauseMs));
            QCOMPARE(p.tokens(), tokens);
        }
        const RequestResult& r = p.wait();
        const double wallMs = double(wall.nsecsElapsed()) * 1e-6;
        QCOMPARE(r.tokens, want);
        const double gaps = std::accumulate(r.gapsMs.begin(), r.gapsMs.end(), 0.0);
        QVERIFY(r.ttftMs + gaps <= wallMs - kPauseMs);
        // The rate comes from the same time.
        QVERIFY(std::abs(r.decodeTokS * gaps * 1e-3 - 199) < 1);
    }

    void endsWhenTheContextIsFull() {
        const auto engine = load(m_model, {{KnobId::ContextLength, 64}});
        Pending p(*engine, greedyRequest(somePrompt(50, 300), 1000));
        const RequestResult& r = p.wait();
        QCOMPARE(r.stop, StopReason::ContextFull);
        QCOMPARE(r.tokens.size(), size_t(14));
    }

    void endsAtEos() {
        const auto engine = load(m_model);
        const std::vector<int32_t> all = test::generate(*engine, {1, 2, 3}, 40);
        // A model whose end-of-sequence token is the fourth token generated.
        RandomShape shape;
        const auto dir = randomModel(shape);
        std::string json;
        {
            QFile file(QString::fromStdString((dir / "model.json").string()));
            QVERIFY(file.open(QIODevice::ReadOnly));
            json = file.readAll().toStdString();
        }
        nlohmann::json model = nlohmann::json::parse(json);
        QVERIFY(model.contains("eos_token_id"));
        model["eos_token_id"] = std::vector<int32_t>{all[3]};
        {
            QFile file(QString::fromStdString((dir / "model.json").string()));
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(QByteArray::fromStdString(model.dump()));
        }
        const auto other = load(dir);
        Request request = greedyRequest({1, 2, 3}, 40);
        request.ignoreEos = false;
        Pending p(*other, request);
        const RequestResult& r = p.wait();
        QCOMPARE(r.stop, StopReason::Eos);
        const auto first = std::find(all.begin(), all.end(), all[3]);
        QCOMPARE(r.tokens, std::vector<int32_t>(all.begin(), first + 1));
        QCOMPARE(Pending(*other, greedyRequest({1, 2, 3}, 40)).wait().tokens, all);
    }

    void stopStringsNeverShow() {
        const auto engine = load(goldenModel("qwen3moe"));
        const std::vector<int32_t> prompt = engine->tokenizer()->encode("hello");
        Pending whole(*engine, greedyRequest(prompt, 40));
        const std::string text = whole.wait().text;
        QCOMPARE(whole.streamed(), text);
        QVERIFY(text.size() > 12);
        // A stop string from the middle of the text, probably across a token boundary.
        size_t at = text.size() / 2;
        while ((uint8_t(text[at]) & 0xc0) == 0x80) ++at;
        size_t end = std::min(text.size(), at + 5);
        while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80) ++end;
        const std::string stop = text.substr(at, end - at);
        Request request = greedyRequest(prompt, 40);
        request.stops = {stop, "never to be seen"};
        Pending cut(*engine, request);
        const RequestResult& r = cut.wait();
        QCOMPARE(r.stop, StopReason::StopString);
        QCOMPARE(r.text, text.substr(0, text.find(stop)));
        QCOMPARE(cut.streamed(), r.text);
    }

    void cancelledWithinOneToken() {
        const auto engine = load(m_model, {{KnobId::ContextLength, 2048}});
        Pending p(*engine, greedyRequest({1, 2, 3}, 2000));
        while (p.tokens() < 3) std::this_thread::yield();
        engine->cancel(p.id());
        const size_t then = p.tokens();
        const RequestResult& r = p.wait();
        QCOMPARE(r.stop, StopReason::Cancelled);
        QVERIFY(r.status.ok());
        QVERIFY2(r.tokens.size() <= then + 2, "went on after the cancellation");
        QCOMPARE(engine->activeRequests(), 0);
    }

    void callbackCancels() {
        const auto engine = load(m_model);
        std::promise<RequestResult> done;
        RequestCallbacks callbacks;
        callbacks.onToken = [](const GeneratedToken& t) { return t.index < 2; };
        callbacks.onDone = [&](RequestResult r) { done.set_value(std::move(r)); };
        QVERIFY(engine->submit(greedyRequest({1}, 50), callbacks).ok());
        const RequestResult result = done.get_future().get();
        QCOMPARE(result.stop, StopReason::Cancelled);
        QCOMPARE(result.tokens.size(), size_t(3));
    }

    // A long prompt with a slow link is cancelled immediately, not at the end of the chunk.
    void cancelledDuringPrefill() {
        const auto engine = load(
            m_model,
            {{KnobId::LinkLimit, 1}, {KnobId::ExpertCacheSize, 4}, {KnobId::PrefillChunk, 2048}});
        Pending p(*engine, greedyRequest(somePrompt(1500, 300), 5));
        QTRY_VERIFY(engine->store().stats().lookups > 0);
        engine->cancel(p.id());
        QCOMPARE(p.wait().stop, StopReason::Cancelled);
        QVERIFY(p.wait().tokens.empty());
        engine->setKnob(KnobId::LinkLimit, 0);
        QCOMPARE(test::generate(*engine, {1, 2, 3}, 4).size(), size_t(4));
    }

    void queueIsBounded() {
        const auto engine = load(m_model, {{KnobId::LinkLimit, 1}, {KnobId::ExpertCacheSize, 1}});
        std::vector<std::unique_ptr<Pending>> pending;
        int busy = 0;
        for (int i = 0; i < 90; ++i) {
            pending.push_back(std::make_unique<Pending>(*engine, greedyRequest({1, i}, 200)));
            if (pending.back()->submitted().code() == Code::Busy) ++busy;
        }
        QVERIFY(busy >= 90 - 64 - 8);
        QVERIFY(busy < 90 - 8);
        for (auto& p : pending) {
            if (p->submitted().ok()) engine->cancel(p->id());
        }
        for (auto& p : pending) {
            if (p->submitted().ok()) QCOMPARE(p->wait().stop, StopReason::Cancelled);
        }
        QCOMPARE(engine->activeRequests(), 0);
    }

    void engineEndsWhileRequestsRun() {
        auto engine = load(m_model, {{KnobId::LinkLimit, 1}, {KnobId::ExpertCacheSize, 2}});
        std::vector<std::unique_ptr<Pending>> pending;
        for (int i = 0; i < 12; ++i) {
            pending.push_back(
                std::make_unique<Pending>(*engine, greedyRequest(somePrompt(40, 300), 500)));
        }
        engine.reset();
        for (auto& p : pending) QCOMPARE(p->wait().stop, StopReason::Cancelled);
    }

    // The expert files are truncated while the model is loaded: requests end with the file's name.
    // Once the files are restored, the engine works again.
    void failedReadEndsOnlyItsRequest() {
        const auto dir = randomModel();
        const auto engine = load(dir, {{KnobId::ExpertCacheSize, 4}});
        const std::vector<int32_t> before = test::generate(*engine, {1, 2, 3}, 8);
        std::map<std::string, QByteArray> saved;
        for (const auto& entry : std::filesystem::directory_iterator(dir / "experts")) {
            QFile file(QString::fromStdString(entry.path().string()));
            QVERIFY(file.open(QIODevice::ReadOnly));
            saved[entry.path().string()] = file.readAll();
            file.close();
            std::filesystem::resize_file(entry.path(), 0);
        }
        Pending failing(*engine, greedyRequest(somePrompt(40, 300), 20));
        const RequestResult& r = failing.wait();
        QCOMPARE(r.stop, StopReason::Error);
        QVERIFY(!r.status.ok());
        QVERIFY2(r.status.message().find("layer_") != std::string::npos,
                 r.status.message().c_str());
        for (const auto& [path, bytes] : saved) {
            QFile file(QString::fromStdString(path));  // the same file, not a new one
            QVERIFY(file.open(QIODevice::ReadWrite));
            QCOMPARE(file.write(bytes), qint64(bytes.size()));
        }
        QCOMPARE(test::generate(*engine, {1, 2, 3}, 8), before);
    }

    void eventsTellTheStory() {
        const auto engine = load(m_model, {{KnobId::ExpertCacheSize, 6}});
        std::vector<Event> events;
        engine->telemetry().drain(events);
        const StoreStats start = engine->store().stats();
        Pending p(*engine, greedyRequest(somePrompt(20, 300), 6));
        const RequestResult& r = p.wait();
        engine->telemetry().drain(events);
        std::map<EventType, int> count;
        uint64_t lookups = 0, hits = 0, stallNs = 0, memoryStallNs = 0;
        int rows = 0;
        for (const Event& e : events) {
            ++count[e.type];
            if (e.type == EventType::BatchFormed) rows += e.batch.rows;
            if (e.type == EventType::Token) {
                QCOMPARE(e.token.request, p.id());
                QVERIFY(e.token.memoryStallNs <= e.token.stallNs);
                stallNs += e.token.stallNs;
                memoryStallNs += e.token.memoryStallNs;
            }
            if (e.type == EventType::LayerStep) {
                QCOMPARE(int(e.layerStep.count), 4);
                lookups += uint64_t(qPopulationCount(uint32_t(e.layerStep.firstBits)));
                hits += uint64_t(
                    qPopulationCount(uint32_t(e.layerStep.firstBits & e.layerStep.hitBits)));
            }
        }
        QCOMPARE(count[EventType::RequestArrived], 1);
        QCOMPARE(count[EventType::RequestAdmitted], 1);
        QCOMPARE(count[EventType::RequestFirstToken], 1);
        QCOMPARE(count[EventType::RequestDone], 1);
        QCOMPARE(count[EventType::Prompt], 1);
        QCOMPARE(count[EventType::Token], 6);
        QCOMPARE(rows, 20 + 5);
        QCOMPARE(count[EventType::LayerStep], 4 * (20 + 5));
        // The events give the same hit rate as the store.
        const StoreStats end = engine->store().stats();
        QCOMPARE(lookups, end.lookups - start.lookups);
        QCOMPARE(hits, end.hits - start.hits);
        QCOMPARE(r.experts.lookups, lookups);
        QCOMPARE(r.experts.hits, hits);
        // The prompt is one step, so the tokens include every wait of the store.
        QCOMPARE(memoryStallNs, end.freshStallNs - start.freshStallNs);
        QVERIFY(stallNs >= end.stallNs - start.stallNs);
    }

    void everyStepSaysWhereItsTimeWent() {
        const auto engine = load(m_model, {{KnobId::ExpertCacheSize, 6}});
        std::vector<Event> events;
        engine->telemetry().drain(events);
        const StoreStats start = engine->store().stats();
        Pending p(*engine, greedyRequest(somePrompt(20, 300), 6));
        p.wait();
        engine->telemetry().drain(events);
        std::map<uint32_t, StepEvent> steps;
        std::map<uint32_t, int> members;
        std::set<uint32_t> ofReads;
        double stalls = 0;
        for (const Event& e : events) {
            if (e.type == EventType::StepMember && e.stepMember.request == p.id())
                members[e.stepMember.step] += e.stepMember.rows;
            if (e.type == EventType::ExpertRead && e.expertRead.needNs > 0)
                ofReads.insert(e.expertRead.step);
            if (e.type != EventType::Step) continue;
            const StepEvent& s = e.step;
            steps[s.step] = s;
            const double waits = double(s.stallSlotNs) + s.stallDiskNs + s.stallLinkNs +
                                 s.stallMemoryNs + s.stallPrefetchNs;
            const double parts = double(s.attentionNs) + s.routerNs + s.expertsNs + s.denseNs +
                                 s.headNs + s.sampleNs + waits;
            QVERIFY(s.attentionNs > 0 && s.expertsNs > 0 && s.headNs > 0 && s.routerNs > 0);
            QVERIFY2(parts <= double(s.totalNs) * 1.0001, qPrintable(QString::number(parts)));
            stalls += waits;
        }
        QCOMPARE(steps.size(), size_t(6));  // the prompt, which gives a token, and 5 tokens
        QCOMPARE(int(steps.begin()->second.prefillRows), 20);
        for (const auto& [number, step] : steps) QCOMPARE(members[number], int(step.rows));
        for (const Event& e : events)
            if (e.type == EventType::Token) QVERIFY(steps.contains(e.token.step));
        // Every read that a token waited for names the step.
        QVERIFY(!ofReads.empty());
        for (const uint32_t step : ofReads) QVERIFY(steps.contains(step));
        // The causes add up to the store's total.
        const double total = double(engine->store().stats().stallNs - start.stallNs);
        QVERIFY2(std::abs(stalls - total) <= 1e-4 * total + 10,
                 qPrintable(QString("%1 %2").arg(stalls).arg(total)));
    }

    void knobsAreAppliedAndReported() {
        const auto engine = load(m_model);
        std::vector<Event> events;
        engine->telemetry().drain(events);
        engine->setKnob(KnobId::ExpertCacheSize, 5);
        QTRY_COMPARE(engine->knobState(KnobId::ExpertCacheSize).effective, int64_t(5));
        QCOMPARE(engine->store().stats().slotCount, int64_t(5 * 4));
        engine->setKnob(KnobId::ExpertCacheSize, 1000);
        QTRY_COMPARE(engine->knobState(KnobId::ExpertCacheSize).effective, int64_t(16));
        QCOMPARE(engine->knobState(KnobId::ExpertCacheSize).requested, int64_t(1000));
        QVERIFY(!engine->knobState(KnobId::ExpertCacheSize).reason.empty());
        engine->setKnob(KnobId::PrefetchSource, int64_t(PrefetchSource::RouterTable));
        QTRY_COMPARE(engine->knobState(KnobId::PrefetchSource).effective,
                     int64_t(PrefetchSource::Off));
        QVERIFY(engine->knobState(KnobId::PrefetchSource).reason.find("router table") !=
                std::string::npos);
        engine->setKnob(KnobId::ContextLength, 128);
        QTRY_VERIFY(!engine->knobState(KnobId::ContextLength).reason.empty());
        QVERIFY(engine->knobState(KnobId::ContextLength).effective != 128);
        int changes = 0;
        QTRY_VERIFY([&] {
            engine->telemetry().drain(events);
            for (const Event& e : events) changes += e.type == EventType::KnobChanged;
            return changes == 4;
        }());
    }
};

QTEST_GUILESS_MAIN(TestRequests)
#include "test_requests.moc"
