// SPDX-License-Identifier: GPL-3.0-or-later
// Long and short replies at the same time, and what happens when no KV blocks are left.
#include <QtTest>
#include <atomic>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

using Tokens = std::vector<int32_t>;
constexpr int kHuge = 100'000;  // as sent by clients that do not set a limit

// The request events and tokens so far, in order.
std::vector<Event> drained(Engine& engine) {
    std::vector<Event> events;
    engine.telemetry().drain(events);
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.sequence < b.sequence; });
    std::erase_if(events, [](const Event& e) {
        return e.type == EventType::LayerStep || e.type == EventType::ExpertRead ||
               e.type == EventType::Eviction;
    });
    return events;
}

bool sameLogprobs(const RequestResult& a, const RequestResult& b) {
    return std::equal(a.logprobs.begin(), a.logprobs.end(), b.logprobs.begin(), b.logprobs.end(),
                      [](const auto& x, const auto& y) {
                          return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                            [](const Logprob& p, const Logprob& q) {
                                                return p.id == q.id && p.value == q.value;
                                            });
                      });
}

}  // namespace

class TestPreemption : public QObject {
    Q_OBJECT

    std::filesystem::path m_model, m_long;  // m_long has a long context

    RequestResult alone(const Request& request, const Knobs& knobs) const {
        const auto engine = load(m_model, knobs);
        return Pending(*engine, request).wait();
    }

    // An engine with two replies that do not fit into memory together, so that one of them waits.
    struct Crowded {
        std::unique_ptr<Engine> engine;
        std::vector<std::unique_ptr<Pending>> pending;
    };
    Crowded crowded(int context) const {
        Crowded c;
        c.engine = load(m_long, {{KnobId::ContextLength, context}, {KnobId::BatchTimeout, 0}});
        for (uint64_t i = 0; i < 2; ++i) {
            c.pending.push_back(std::make_unique<Pending>(
                *c.engine, greedyRequest(somePrompt(context * 3 / 8, 300, i), kHuge)));
        }
        return c;
    }
    static bool waitForPreemption(const Crowded& c) {
        while (!c.pending[0]->done() || !c.pending[1]->done()) {
            if (c.engine->batchStats().preempted > 0) return true;
            std::this_thread::yield();
        }
        return false;
    }

private slots:
    void initTestCase() {
        m_model = randomModel();
        RandomShape shape;
        shape.context = 1 << 16;
        m_long = randomModel(shape);
    }

    void aHugeMaxTokensStarvesNobody() {
        const auto engine =
            load(m_long, {{KnobId::BatchTimeout, 0}, {KnobId::ContextLength, 1 << 16}});
        Pending huge(*engine, greedyRequest(somePrompt(20, 300, 1), kHuge));
        while (huge.tokens() < 3) std::this_thread::yield();
        for (uint64_t i = 0; i < 5; ++i) {
            QCOMPARE(test::generate(*engine, somePrompt(30, 300, 2 + i), 3).size(), size_t(3));
            QVERIFY2(!huge.done(), "the short request waited for the end of the long one");
        }
        engine->cancel(huge.id());
        QCOMPARE(huge.wait().stop, StopReason::Cancelled);
    }

    // Unlimited replies, and short ones that arrive repeatedly: each short one ends before all long
    // ones, and every reply equals that of a run alone.
    void manyUsersOfMixedLengths() {
        const Knobs knobs{{KnobId::ContextLength, 1024}, {KnobId::BatchTimeout, 0}};
        std::vector<Request> requests;
        for (int i = 0; i < 4; ++i) {
            requests.push_back(greedyRequest(somePrompt(20 + 30 * i, 300, uint64_t(i)), kHuge));
        }
        std::mt19937 random(1);
        for (int i = 0; i < 20; ++i) {
            requests.push_back(greedyRequest(
                somePrompt(1 + int(random() % 60), 300, uint64_t(50 + i)), 1 + int(random() % 20)));
        }
        std::vector<Tokens> want;
        for (const Request& r : requests) want.push_back(alone(r, knobs).tokens);
        const auto engine = load(m_model, knobs);
        std::atomic<size_t> ended{0};
        std::atomic<bool> submitted{false};
        std::vector<RequestResult> got(requests.size());
        std::vector<size_t> place(requests.size());  // the order in which they end
        for (size_t i = 0; i < requests.size(); ++i) {
            RequestCallbacks callbacks;
            callbacks.onToken = [&](const GeneratedToken&) {
                // The engine continues when all have arrived, even on a busy machine.
                while (!submitted) std::this_thread::yield();
                return true;
            };
            callbacks.onDone = [&, i](RequestResult r) {
                got[i] = std::move(r);
                place[i] = ended++;
            };
            QVERIFY(engine->submit(requests[i], std::move(callbacks)).ok());
        }
        submitted = true;
        while (ended < requests.size()) std::this_thread::yield();
        for (size_t i = 0; i < requests.size(); ++i) {
            QCOMPARE(got[i].tokens, want[i]);
            QCOMPARE(int(got[i].stop),
                     int(i < 4 ? StopReason::ContextFull : StopReason::MaxTokens));
            QVERIFY2(i < 4 || place[i] < 20, "a short request waited for the end of a long one");
        }
        const KvStats kv = engine->batchStats().kv;
        QVERIFY(kv.preemptions > 0);  // four contexts do not fit into the memory of one
        QCOMPARE(kv.heldBlocks, int64_t(0));
        QCOMPARE(engine->batchStats().preempted, 0);
    }

    // Long replies use all rows of the batch and all blocks. A short one still gets in.
    void longRepliesTakeTurns_data() {
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("context");
        QTest::addRow("no place in the batch") << 1 << 2048;
        QTest::addRow("no block") << 8 << 640;
    }
    void longRepliesTakeTurns() {
        QFETCH(int, batch);
        QFETCH(int, context);
        const Knobs knobs{
            {KnobId::MaxBatch, batch}, {KnobId::ContextLength, context}, {KnobId::BatchTimeout, 0}};
        const Request longer = greedyRequest(somePrompt(10, 300, 1), kHuge);
        const Request shorter = greedyRequest(somePrompt(300, 300, 2), 5);
        const Tokens wantLonger = alone(longer, knobs).tokens;
        const Tokens wantShorter = alone(shorter, knobs).tokens;
        const auto engine = load(m_model, knobs);
        std::atomic<bool> reached{false}, submitted{false};
        std::promise<RequestResult> done;
        std::atomic<bool> ended{false};
        RequestCallbacks callbacks;
        callbacks.onToken = [&](const GeneratedToken& t) {
            reached = reached || t.index == 400;
            while (t.index == 400 && !submitted) std::this_thread::yield();
            return true;
        };
        callbacks.onDone = [&](RequestResult r) {
            ended = true;
            done.set_value(std::move(r));
        };
        QVERIFY(engine->submit(longer, callbacks).ok());
        while (!reached) std::this_thread::yield();
        bool endedBefore = true;
        std::promise<Tokens> shortDone;
        RequestCallbacks shortCallbacks;
        shortCallbacks.onDone = [&](RequestResult r) {
            endedBefore = ended;
            shortDone.set_value(std::move(r.tokens));
        };
        QVERIFY(engine->submit(shorter, shortCallbacks).ok());
        submitted = true;
        QCOMPARE(shortDone.get_future().get(), wantShorter);
        QVERIFY2(!endedBefore, "the short request waited for the end of the long one");
        const RequestResult result = done.get_future().get();
        QCOMPARE(result.tokens, wantLonger);
        QCOMPARE(result.preemptions, 1u);
    }

    // Replies outgrow the memory. With sampling, penalty, stop strings and log-probabilities, each
    // continues exactly where it stopped.
    void preemptedRepliesGoOnAsIfNothingHappened() {
        const std::filesystem::path model = goldenModel("qwen3moe");
        const Knobs knobs{{KnobId::ContextLength, 160}, {KnobId::BatchTimeout, 0}};
        std::vector<Request> requests;
        for (int i = 0; i < 6; ++i) {
            const auto engine = load(model, knobs);
            const std::string text = "hello " + std::string(size_t(8 * i), 'x');
            Request r = greedyRequest(engine->tokenizer()->encode(text), kHuge);
            r.sampling.temperature = i % 2 ? 1.0f : 0.0f;
            r.sampling.repetitionPenalty = i % 3 ? 1.2f : 1.0f;
            r.sampling.seed = uint64_t(i);
            r.logprobs = 3;
            if (i >= 3) {  // a match late in the text
                const std::string whole = Pending(*engine, r).wait().text;
                size_t at = whole.size() * 3 / 4;
                while ((uint8_t(whole[at]) & 0xc0) == 0x80) ++at;
                r.stops = {whole.substr(at, 12)};
            }
            requests.push_back(std::move(r));
        }
        std::vector<RequestResult> want;
        for (const Request& r : requests) {
            const auto engine = load(model, knobs);
            want.push_back(Pending(*engine, r).wait());
        }
        const auto engine = load(model, knobs);
        std::vector<std::unique_ptr<Pending>> pending;
        for (const Request& r : requests) pending.push_back(std::make_unique<Pending>(*engine, r));
        uint32_t preemptions = 0;
        for (size_t i = 0; i < pending.size(); ++i) {
            const RequestResult& got = pending[i]->wait();
            QCOMPARE(got.tokens, want[i].tokens);
            QCOMPARE(got.text, want[i].text);
            QCOMPARE(pending[i]->streamed(), want[i].text);
            QCOMPARE(int(got.stop), int(want[i].stop));
            QVERIFY(sameLogprobs(got, want[i]));
            QCOMPARE(got.cachedTokens <= got.promptTokens, true);
            preemptions += got.preemptions;
            QCOMPARE(got.preemptions > 0, got.preemptedMs > 0);
        }
        QVERIFY(preemptions > 0);
    }

    // The pause is reported: events, the token after it, the result and the totals agree.
    void aPreemptionIsItsOwnCauseOfAStall() {
        Crowded c = crowded(256);
        std::vector<Event> events;
        for (auto& p : c.pending) p->wait();
        for (const Event& e : drained(*c.engine)) events.push_back(e);
        std::map<uint64_t, uint32_t> preempted, resumed;
        std::map<uint64_t, uint64_t> ns;
        bool full = false;
        for (const Event& e : events) {
            if (e.type == EventType::RequestPreempted) ++preempted[e.request.request];
            if (e.type == EventType::RequestResumed) ++resumed[e.request.request];
            if (e.type == EventType::Token) {
                ns[e.token.request] += e.token.preemptedNs;
                QVERIFY(e.token.index == 0 || e.token.preemptedNs <= e.token.gapNs);
            }
            if (e.type == EventType::BatchFormed) {
                QCOMPARE(e.batch.kvBlocks, 8u);
                QVERIFY(e.batch.kvHeld + e.batch.kvKept <= 8);
                full = full || e.batch.kvHeld == 8;
            }
        }
        QVERIFY(full);
        uint64_t total = 0, recomputed = 0;
        for (auto& p : c.pending) {
            const RequestResult& r = p->wait();
            QCOMPARE(r.preemptions, preempted[p->id()]);
            QCOMPARE(r.preemptions, resumed[p->id()]);
            QCOMPARE(r.preemptedMs, double(ns[p->id()]) * 1e-6);
            total += r.preemptions;
            recomputed += r.recomputedTokens;
        }
        QVERIFY(total > 0 && recomputed > 0);
        QCOMPARE(c.engine->batchStats().kv.preemptions, total);
        QCOMPARE(c.engine->batchStats().kv.recomputedTokens, recomputed);
    }

    void aPreemptedRequestIsCancelled() {
        Crowded c = crowded(4096);
        QVERIFY(waitForPreemption(c));
        for (auto& p : c.pending) c.engine->cancel(p->id());
        for (auto& p : c.pending) {
            const StopReason stop = p->wait().stop;
            QVERIFY(stop == StopReason::Cancelled || stop == StopReason::ContextFull);
        }
        QCOMPARE(c.engine->activeRequests(), 0);
        QCOMPARE(c.engine->batchStats().preempted, 0);
        QCOMPARE(c.engine->batchStats().active, 0);
        QCOMPARE(c.engine->batchStats().kv.heldBlocks, int64_t(0));
        QCOMPARE(test::generate(*c.engine, somePrompt(200, 300), 4).size(), size_t(4));
    }

    void theEngineEndsWithARequestPreempted() {
        Crowded c = crowded(4096);
        QVERIFY(waitForPreemption(c));
        c.engine.reset();
        for (auto& p : c.pending) {
            const StopReason stop = p->wait().stop;
            QVERIFY(stop == StopReason::Cancelled || stop == StopReason::ContextFull);
        }
    }

    // Prompts with all logits: each position is reported once, equal to that of a run alone.
    void preemptedPromptsGiveEachLogitOnce() {
        const Knobs knobs{
            {KnobId::ContextLength, 256}, {KnobId::PrefillChunk, 16}, {KnobId::BatchTimeout, 0}};
        const Tokens prompt = somePrompt(140, 300, 8);
        const auto want = load(m_model, knobs)->logits(prompt);
        QVERIFY(want.ok());
        const auto engine = load(m_model, knobs);
        // It grows while the prompt is computed, and needs the prompt's memory.
        Pending growing(*engine, greedyRequest(somePrompt(95, 300, 9), 60));
        while (growing.tokens() == 0) std::this_thread::yield();
        std::vector<std::vector<float>> got;
        std::promise<RequestResult> done;
        RequestCallbacks callbacks;
        callbacks.onLogits = [&](uint32_t position, std::span<const float> logits) {
            if (position == got.size()) got.emplace_back(logits.begin(), logits.end());
        };
        callbacks.onDone = [&](RequestResult r) { done.set_value(std::move(r)); };
        Request request = greedyRequest(prompt, 1);
        request.maxTokens = 0;
        QVERIFY(engine->submit(request, callbacks).ok());
        const RequestResult result = done.get_future().get();
        QVERIFY(result.status.ok());
        QCOMPARE(got, want->logits);
        growing.wait();
    }

    // All features at once, with cancellations and little memory.
    void randomCrowd() {
        const Knobs knobs{{KnobId::ContextLength, 192}, {KnobId::ExpertCacheSize, 12}};
        std::vector<Request> kinds;
        std::vector<Tokens> want;
        for (int i = 0; i < 8; ++i) {
            Tokens prompt = somePrompt(40, 300, 1);  // half of the prompts begin with it
            if (i % 2) prompt = somePrompt(5 + 20 * i, 300, uint64_t(i));
            for (const int32_t id : somePrompt(6, 300, uint64_t(i + 100))) prompt.push_back(id);
            Request r = greedyRequest(prompt, i % 3 == 0 ? kHuge : 10 + 5 * i);
            r.sampling.temperature = i % 4 == 3 ? 1.0f : 0.0f;
            kinds.push_back(r);
            want.push_back(alone(r, knobs).tokens);
        }
        const auto engine = load(m_model, knobs);
        std::mt19937 random(5);
        std::vector<std::pair<size_t, std::unique_ptr<Pending>>> pending;
        for (int i = 0; i < 60; ++i) {
            const size_t kind = random() % kinds.size();
            pending.emplace_back(kind, std::make_unique<Pending>(*engine, kinds[kind]));
            const auto& newest = pending.back().second;
            engine->setKnob(KnobId::MaxBatch, 1 + int64_t(random() % 8));
            engine->setKnob(KnobId::PrefillChunk, 16 + int64_t(random() % 40));
            if (random() % 5 == 0) {
                const auto& any = pending[random() % pending.size()].second;
                if (any->submitted().ok()) engine->cancel(any->id());
            }
            if (random() % 3 == 0 && newest->submitted().ok()) newest->wait();
        }
        for (auto& [kind, p] : pending) {
            if (!p->submitted().ok()) continue;
            const RequestResult& r = p->wait();
            QVERIFY(r.status.ok());
            const bool whole = r.stop != StopReason::Cancelled;
            QVERIFY(whole ? r.tokens == want[kind]
                          : std::equal(r.tokens.begin(), r.tokens.end(), want[kind].begin()));
        }
        QVERIFY(engine->batchStats().kv.preemptions > 0);
        QCOMPARE(engine->batchStats().kv.heldBlocks, int64_t(0));
        QCOMPARE(engine->activeRequests(), 0);
    }
};

QTEST_GUILESS_MAIN(TestPreemption)
#include "test_preemption.moc"
