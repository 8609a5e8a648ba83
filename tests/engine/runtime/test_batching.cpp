// SPDX-License-Identifier: GPL-3.0-or-later
// The composition of batches: batch timeout, batch size, turns of prompts. Other requests in the
// batch do not change the output.
#include <QtTest>
#include <map>
#include <random>
#include <thread>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr int kTokens = 20;

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

size_t indexOf(const std::vector<Event>& events, EventType type, uint64_t request) {
    for (size_t i = 0; i < events.size(); ++i) {
        if (events[i].type == type && events[i].request.request == request) return i;
    }
    return events.size();
}

}  // namespace

class TestBatching : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;
    std::vector<std::vector<int32_t>> m_prompts, m_alone;

    std::vector<std::unique_ptr<Pending>> submitAll(Engine& engine) const {
        std::vector<std::unique_ptr<Pending>> pending;
        for (const auto& p : m_prompts) {
            pending.push_back(std::make_unique<Pending>(engine, greedyRequest(p, kTokens)));
        }
        return pending;
    }

private slots:
    void initTestCase() {
        m_model = randomModel();
        const auto engine = load(m_model);
        for (int i = 0; i < 7; ++i) {
            m_prompts.push_back(somePrompt(3 + 17 * i, 300, uint64_t(i + 40)));
            m_alone.push_back(test::generate(*engine, m_prompts.back(), kTokens));
        }
    }

    void companyChangesNothing_data() {
        QTest::addColumn<int>("timeout");
        QTest::addColumn<int>("batch");
        for (const int timeout : {0, 1, 30}) {
            for (const int batch : {1, 2, 3, 8, 64}) {
                QTest::addRow("timeout %d batch %d", timeout, batch) << timeout << batch;
            }
        }
    }
    void companyChangesNothing() {
        QFETCH(int, timeout);
        QFETCH(int, batch);
        const auto engine = load(m_model, {{KnobId::BatchTimeout, timeout},
                                           {KnobId::MaxBatch, batch},
                                           {KnobId::PrefillChunk, 32},
                                           {KnobId::ExpertCacheSize, 9}});
        auto pending = submitAll(*engine);
        for (size_t i = 0; i < pending.size(); ++i) QCOMPARE(pending[i]->wait().tokens, m_alone[i]);
        int largest = 0;
        for (const Event& e : drained(*engine)) {
            if (e.type == EventType::BatchFormed) {
                largest = std::max(largest, int(e.batch.requests));
                QVERIFY(e.batch.prefillRows <= 32);
                QVERIFY(e.batch.rows <= 32 + batch);
            }
        }
        QVERIFY(largest >= 1 && largest <= batch);
        const BatchStats stats = engine->batchStats();
        QCOMPARE(stats.active + stats.queued, 0);
        QVERIFY(stats.meanBatch() >= 1 && stats.meanBatch() <= batch);
        QVERIFY(stats.rows >= stats.requests);
    }

    void aFullBatchStartsTogether() {
        const auto engine = load(m_model, {{KnobId::BatchTimeout, 200}, {KnobId::MaxBatch, 7}});
        auto pending = submitAll(*engine);
        for (auto& p : pending) p->wait();
        for (const Event& e : drained(*engine)) {
            if (e.type != EventType::BatchFormed) continue;
            QCOMPARE(int(e.batch.requests), 7);
            break;
        }
    }

    // The timeout of a single request ends, and without a timeout no clock is needed.
    void aLoneRequestStarts() {
        for (const int64_t timeout : {0, 20}) {
            const auto engine = load(m_model, {{KnobId::BatchTimeout, timeout}});
            QCOMPARE(test::generate(*engine, m_prompts[0], kTokens), m_alone[0]);
        }
    }

    // Two requests that fill the batch join a running one in the same step.
    void joinersWaitForEachOther() {
        const auto engine = load(m_model, {{KnobId::BatchTimeout, 0}, {KnobId::MaxBatch, 3}});
        Pending running(*engine, greedyRequest(m_prompts[0], 1900));
        QTRY_VERIFY(running.tokens() > 2);
        engine->setKnob(KnobId::BatchTimeout, 200);
        QTRY_COMPARE(engine->knobState(KnobId::BatchTimeout).effective, int64_t(200));
        Pending b(*engine, greedyRequest(m_prompts[1], kTokens));
        Pending c(*engine, greedyRequest(m_prompts[2], kTokens));
        QCOMPARE(b.wait().tokens, m_alone[1]);
        QCOMPARE(c.wait().tokens, m_alone[2]);
        engine->cancel(running.id());
        running.wait();
        const std::vector<Event> events = drained(*engine);
        const size_t first = indexOf(events, EventType::RequestAdmitted, b.id());
        const size_t second = indexOf(events, EventType::RequestAdmitted, c.id());
        QVERIFY(first < second && second < events.size());
        for (size_t i = first; i < second; ++i) {
            QVERIFY2(events[i].type != EventType::BatchFormed, "a step ran between the two");
        }
    }

    void aWaitingRequestIsCancelled() {
        const auto engine = load(m_model, {{KnobId::BatchTimeout, 200}});
        Pending p(*engine, greedyRequest(m_prompts[0], kTokens));
        engine->cancel(p.id());
        QCOMPARE(p.wait().stop, StopReason::Cancelled);
        QVERIFY(p.wait().tokens.empty());
        QCOMPARE(engine->activeRequests(), 0);
    }

    void anEngineEndsWithRequestsWaiting() {
        auto engine = load(m_model, {{KnobId::BatchTimeout, 200}});
        Pending p(*engine, greedyRequest(m_prompts[0], kTokens));
        engine.reset();
        QCOMPARE(p.wait().stop, StopReason::Cancelled);
    }

    // A short prompt after a long one gets its first token first, and a running reply gets a token
    // in every step of the long prompt.
    void aLongPromptHoldsNobodyUp() {
        const auto engine = load(
            m_model,
            {{KnobId::BatchTimeout, 0}, {KnobId::PrefillChunk, 16}, {KnobId::ExpertCacheSize, 16}});
        Pending running(*engine, greedyRequest(m_prompts[0], 400));
        // 400 tokens are generated quickly.
        while (running.tokens() == 0) std::this_thread::yield();
        Pending longer(*engine, greedyRequest(somePrompt(800, 300, 5), 2));
        Pending shorter(*engine, greedyRequest(m_prompts[1], kTokens));
        QCOMPARE(shorter.wait().tokens, m_alone[1]);
        longer.wait();
        running.wait();
        const std::vector<Event> events = drained(*engine);
        const size_t admitted = indexOf(events, EventType::RequestAdmitted, longer.id());
        const size_t first = indexOf(events, EventType::RequestFirstToken, longer.id());
        QVERIFY(indexOf(events, EventType::RequestFirstToken, shorter.id()) < first);
        int steps = 0, tokens = 0;
        for (size_t i = admitted; i < first; ++i) {
            steps += events[i].type == EventType::BatchFormed;
            tokens += events[i].type == EventType::Token && events[i].token.request == running.id();
        }
        QVERIFY(steps >= 800 / 16);
        QVERIFY(tokens >= steps - 1);
    }

    // A smaller batch size takes effect at once. Surplus requests take turns and lose nothing.
    void aSmallerBatchHoldsAtOnce() {
        const auto engine = load(m_model, {{KnobId::BatchTimeout, 200}, {KnobId::MaxBatch, 7}});
        std::vector<std::unique_ptr<Pending>> pending;
        for (int i = 0; i < 7; ++i) {
            pending.push_back(
                std::make_unique<Pending>(*engine, greedyRequest(m_prompts[size_t(i)], 150)));
        }
        while (pending[6]->tokens() == 0) std::this_thread::yield();
        // Drained in between, because the ring could fill up on a busy machine.
        std::vector<Event> events = drained(*engine);
        engine->setKnob(KnobId::MaxBatch, 2);
        for (auto& p : pending) p->wait();
        for (const Event& e : drained(*engine)) events.push_back(e);
        bool smaller = false, larger = false;
        for (const Event& e : events) {
            smaller = smaller || (e.type == EventType::KnobChanged &&
                                  e.knob.knob == int(KnobId::MaxBatch) && e.knob.effective == 2);
            if (e.type != EventType::BatchFormed) continue;
            larger = larger || e.batch.requests > 2;
            QVERIFY(!smaller || e.batch.requests <= 2);
        }
        QVERIFY(smaller && larger);
        for (size_t i = 0; i < pending.size(); ++i) {
            const std::vector<int32_t>& all = pending[i]->wait().tokens;
            QCOMPARE(all.size(), size_t(150));
            QVERIFY(std::equal(m_alone[i].begin(), m_alone[i].end(), all.begin()));
        }
    }

    // Random requests of every kind start and end while knobs change.
    void randomCompany() {
        const auto engine = load(m_model, {{KnobId::ExpertCacheSize, 12}});
        std::mt19937 random(3);
        std::vector<std::pair<size_t, std::unique_ptr<Pending>>> pending;
        std::vector<std::unique_ptr<Pending>> noise;
        for (int i = 0; i < 60; ++i) {
            const size_t which = random() % m_prompts.size();
            pending.emplace_back(which, std::make_unique<Pending>(
                                            *engine, greedyRequest(m_prompts[which], kTokens)));
            Request sampled = greedyRequest(m_prompts[random() % m_prompts.size()], 60);
            sampled.sampling.temperature = 1;
            sampled.sampling.seed = random();
            noise.push_back(std::make_unique<Pending>(*engine, sampled));
            engine->setKnob(KnobId::BatchTimeout, int64_t(random() % 20));
            engine->setKnob(KnobId::MaxBatch, 1 + int64_t(random() % 10));
            if (noise.back()->submitted().ok() && random() % 2) engine->cancel(noise.back()->id());
            if (random() % 4 == 0) pending.back().second->wait();
        }
        for (auto& [which, p] : pending) QCOMPARE(p->wait().tokens, m_alone[which]);
        for (auto& p : noise) {
            if (p->submitted().ok()) p->wait();
        }
        QCOMPARE(engine->activeRequests(), 0);
    }
};

QTEST_GUILESS_MAIN(TestBatching)
#include "test_batching.moc"
