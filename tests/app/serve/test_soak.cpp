// SPDX-License-Identifier: GPL-3.0-or-later
// Mixed load with knobs changed at random: no growth of memory, no request that never ends, no text
// that differs. Ten minutes, or COLIBRI_SOAK_MINUTES.
#include <malloc.h>
#include <QtTest>
#include <atomic>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "profiler/record/recorder.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

// What is changed while requests run, each within what the engine allows.
constexpr KnobId kTurned[] = {
    KnobId::ExpertCacheSize, KnobId::CachePolicy,  KnobId::PrefetchSource, KnobId::PrefetchDepth,
    KnobId::PrefetchThreads, KnobId::BatchTimeout, KnobId::MaxBatch,       KnobId::ComputeThreads,
    KnobId::IoMode,          KnobId::IoDepth,      KnobId::PrefillChunk,   KnobId::LinkLimit,
};

std::chrono::duration<double> length() {
    const double minutes = qEnvironmentVariable("COLIBRI_SOAK_MINUTES", "10").toDouble();
    return std::chrono::duration<double>(60 * minutes);
}

struct Count {
    std::atomic<uint64_t> finished{0}, cancelled{0}, http{0}, hungUp{0}, turns{0};
};

}  // namespace

class TestSoak : public QObject {
    Q_OBJECT

    std::unique_ptr<Served> m_served;
    std::vector<std::vector<int32_t>> m_prompts, m_alone;
    Count m_count;
    std::atomic<bool> m_stop{false};
    std::mutex m_mutex;
    QString m_wrong;  // the first that went wrong

    void wrong(const QString& what) {
        std::lock_guard lock(m_mutex);
        if (m_wrong.isEmpty()) m_wrong = what;
    }

    // Requests to the engine itself; half of those that are not greedy are cancelled.
    void ask(uint32_t seed) {
        std::mt19937 random(seed);
        while (!m_stop) {
            const size_t i = random() % m_prompts.size();
            Request request = greedyRequest(m_prompts[i], int(m_alone[i].size()));
            const bool greedy = random() % 2;
            if (!greedy) {
                request.sampling = {1.0f, 20, 0.9f, 0, 1.1f, random()};
                request.maxTokens = 1 + int(random() % 300);
            }
            Pending pending(*m_served->engine, std::move(request));
            if (!pending.submitted().ok()) {
                wrong("refused: " + QString::fromStdString(pending.submitted().text()));
                return;
            }
            if (!greedy && random() % 2) {
                std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
                m_served->engine->cancel(pending.id());
                ++m_count.cancelled;
            }
            const RequestResult& result = pending.wait();
            if (!result.status.ok()) {
                wrong("failed: " + QString::fromStdString(result.status.text()));
            } else if (greedy && result.tokens != m_alone[i]) {
                wrong(QString("prompt %1 got another text").arg(i));
            }
            ++m_count.finished;
        }
    }

    // Clients of the server; some hang up in the middle.
    void talk(uint32_t seed) {
        std::mt19937 random(seed);
        while (!m_stop) {
            const bool stream = random() % 2;
            const Json body = chatBody("question " + std::to_string(random() % 50),
                                       1 + int(random() % 60), stream);
            if (random() % 4 == 0) {
                RawClient client(m_served->server->port());
                client.post("/v1/chat/completions", body.dump());
                std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
                ++m_count.hungUp;
                continue;
            }
            httplib::Client client = m_served->client();
            const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
            if (!reply || reply->status != 200) {
                wrong(QString("HTTP: %1").arg(reply ? reply->status : 0));
            }
            ++m_count.http;
        }
    }

    void turnKnobs(uint32_t seed) {
        std::mt19937 random(seed);
        while (!m_stop) {
            const KnobId id = kTurned[random() % std::size(kTurned)];
            const KnobLimits limits = m_served->engine->knobLimits(id);
            int64_t value = limits.min + int64_t(random() % uint64_t(limits.max - limits.min + 1));
            if (id == KnobId::LinkLimit) value = random() % 2 ? 0 : 50 + value % 1000;
            if (id == KnobId::BatchTimeout) value %= 20;
            m_served->engine->setKnob(id, value);
            ++m_count.turns;
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
        }
    }

    // Resident bytes when idle, with the knobs at their defaults.
    int64_t restingMemory() {
        for (const KnobId id : kTurned) {
            m_served->engine->applyKnob(id, m_served->engine->knobLimits(id).defaultValue);
        }
        malloc_trim(0);
        return m_served->engine->memory().processRss;
    }

    // False: a request is stuck.
    bool run(std::chrono::duration<double> time, uint32_t seed) {
        m_stop = false;
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < 3; ++i) {
            threads.emplace_back([this, s = seed + i] { ask(s); });
            threads.emplace_back([this, s = seed + 10 + i] { talk(s); });
        }
        threads.emplace_back([this, s = seed + 20] { turnKnobs(s); });
        const auto end = Clock::now() + time;
        uint64_t seen = 0;
        auto changed = Clock::now();
        bool stuck = false;
        while (Clock::now() < end && !stuck) {
            std::this_thread::sleep_for(200ms);
            const uint64_t now = m_count.finished + m_count.http;
            if (now != seen) changed = Clock::now();
            seen = now;
            stuck = Clock::now() - changed > 120s;
        }
        m_stop = true;
        for (std::thread& t : threads) t.join();  // a stuck one ends by the test's own limit
        return !stuck;
    }

private slots:
    void initTestCase() {
        m_served = std::make_unique<Served>(Knobs{{KnobId::MaxBatch, 8}});
        const int64_t vocab = m_served->engine->config().vocabSize;
        std::mt19937 random(3);
        for (uint32_t i = 0; i < 20; ++i) {
            m_prompts.push_back(somePrompt(1 + int(random() % 200), vocab, i));
            m_alone.push_back(
                test::generate(*m_served->engine, m_prompts.back(), 1 + int(random() % 60)));
        }
    }

    void hours() {
        const auto recorder = Recorder::start(*m_served->engine, {});
        QVERIFY(recorder.ok());
        QVERIFY(run(length() / 5, 100));  // buffers, threads' heaps: grown to what they need
        QTRY_COMPARE_WITH_TIMEOUT(m_served->engine->activeRequests(), 0, 60'000);
        const int64_t before = restingMemory();
        QVERIFY(run(length() * 4 / 5, 200));
        QTRY_COMPARE_WITH_TIMEOUT(m_served->engine->activeRequests(), 0, 60'000);
        const int64_t after = restingMemory();
        qInfo(
            "%llu requests, %llu cancelled, %llu over HTTP, %llu hung up, %llu turns of knobs; "
            "memory %.1f -> %.1f MiB",
            (unsigned long long)m_count.finished, (unsigned long long)m_count.cancelled,
            (unsigned long long)m_count.http, (unsigned long long)m_count.hungUp,
            (unsigned long long)m_count.turns, double(before) / (1 << 20),
            double(after) / (1 << 20));
        QVERIFY2(m_wrong.isEmpty(), qPrintable(m_wrong));
        QVERIFY(m_count.finished > 50 && m_count.http > 50 && m_count.cancelled && m_count.turns);
        QVERIFY(after - before <= int64_t(16) << 20);
    }
};

// QtTest ends a function after five minutes unless it is told otherwise before it starts.
int main(int argc, char** argv) {
    using std::chrono::milliseconds;
    const auto limit = std::chrono::duration_cast<milliseconds>(length() + 10min);
    qputenv("QTEST_FUNCTION_TIMEOUT", QByteArray::number(qint64(limit.count())));
    QCoreApplication program(argc, argv);
    TestSoak test;
    return QTest::qExec(&test, argc, argv);
}
#include "test_soak.moc"
