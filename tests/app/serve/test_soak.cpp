// SPDX-License-Identifier: GPL-3.0-or-later
// Mixed requests on the demo model: users of the engine and of the server, four alternating
// conversations, random knob changes and cancellations, expert files truncated and restored. Checks
// that memory does not grow, every request ends, each text equals that of a run alone, and the only
// errors are failed reads. Runs three minutes, or COLIBRI_SOAK_MINUTES; COLIBRI_SOAK_SEED repeats a
// run.
#include <malloc.h>
#include <QtTest>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "engine/base/process.h"
#include "profiler/record/recorder.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

// Knobs that are changed while requests run, each with values that the engine allows.
constexpr KnobId kTurned[] = {
    KnobId::ExpertCacheSize, KnobId::CachePolicy,  KnobId::PrefetchSource, KnobId::PrefetchDepth,
    KnobId::PrefetchThreads, KnobId::BatchTimeout, KnobId::MaxBatch,       KnobId::ComputeThreads,
    KnobId::IoMode,          KnobId::IoDepth,      KnobId::PrefillChunk,   KnobId::LinkLimit,
};

std::chrono::duration<double> length() {
    const double minutes = qEnvironmentVariable("COLIBRI_SOAK_MINUTES", "3").toDouble();
    return std::chrono::duration<double>(60 * minutes);
}

uint32_t seed() {
    bool given = false;
    const uint32_t value = qEnvironmentVariable("COLIBRI_SOAK_SEED").toUInt(&given);
    return given ? value : std::random_device{}();
}

struct Count {
    std::atomic<uint64_t> finished{0}, cancelled{0}, http{0}, hungUp{0}, turns{0};
    std::atomic<uint64_t> talked{0}, reused{0};  // turns of conversations, their cached tokens
    // Truncations and restorations of files; requests affected.
    std::atomic<uint64_t> cuts{0}, restores{0}, hurt{0};
};

// One turn of a conversation, and its reply in a run alone.
struct Turn {
    std::vector<int32_t> prompt, reply;
};

constexpr const char* kSayings[] = {
    "Tell me about the fox.", "Why is that so?",    "And then?",
    "Who was there?",         "What did she find?", "Say it in one line."};
constexpr size_t kConversations = 4, kTurns = 6;

}  // namespace

class TestSoak : public QObject {
    Q_OBJECT

    std::filesystem::path m_model;
    std::unique_ptr<Served> m_served;
    std::vector<std::vector<int32_t>> m_prompts, m_alone;
    std::vector<std::vector<Turn>> m_conversations;
    const uint32_t m_seed = seed();
    Count m_count;
    std::atomic<bool> m_stop{false};
    std::mutex m_mutex;
    QString m_wrong;  // the first failure

    void wrong(const QString& what) {
        std::lock_guard lock(m_mutex);
        if (m_wrong.isEmpty()) m_wrong = what;
    }

    // A request failed. This is correct if a file was truncated meanwhile and the error names it.
    void judgeError(const std::string& text, uint64_t restoresBefore) {
        if (m_count.cuts <= restoresBefore || text.find("experts/layer_") == text.npos ||
            text.find("byte") == text.npos) {
            wrong("failed: " + QString::fromStdString(text));
        }
        ++m_count.hurt;
    }

    // Requests to the engine itself. Half of those that are not greedy are cancelled.
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
            const uint64_t restores = m_count.restores;
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
                judgeError(result.status.text(), restores);
            } else if (greedy && result.tokens != m_alone[i]) {
                wrong(QString("prompt %1 got another text").arg(i));
            }
            ++m_count.finished;
        }
    }

    // Repeats one of the conversations, turn by turn. A turn that failed because of a fault is
    // repeated.
    void converse(const std::vector<Turn>& turns) {
        for (size_t t = 0; !m_stop; t = (t + 1) % turns.size()) {
            const Turn& turn = turns[t];
            for (bool whole = false; !whole && !m_stop;) {
                const uint64_t restores = m_count.restores;
                Pending pending(*m_served->engine,
                                greedyRequest(turn.prompt, int(turn.reply.size())));
                const RequestResult& result = pending.wait();
                whole = result.status.ok();
                if (!whole) {
                    judgeError(result.status.text(), restores);
                } else if (result.tokens != turn.reply) {
                    wrong(QString("turn %1 of a conversation got another text").arg(t));
                }
                m_count.reused += result.cachedTokens;
                ++m_count.talked;
            }
        }
    }

    // Clients of the server, some of which disconnect in the middle.
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
            const uint64_t restores = m_count.restores;
            httplib::Client client = m_served->client();
            const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
            if (!reply) {
                wrong("HTTP: no answer");
            } else if (reply->status != 200 || reply->body.find("\"error\"") != std::string::npos) {
                judgeError(reply->body, restores);
            }
            ++m_count.http;
        }
    }

    // Truncates an expert file briefly. It is restored by appending, so that a read sees correct
    // bytes or the end of the file.
    void cutFiles(uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(m_model / "experts"))
            files.push_back(entry.path());
        while (!m_stop) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200 + random() % 2000));
            const auto& path = files[random() % files.size()];
            QFile file(QString::fromStdString(path.string()));
            if (!file.open(QIODevice::ReadWrite)) return wrong("cannot open " + file.fileName());
            const QByteArray content = file.readAll();
            const qint64 left = random() % 4 == 0 ? 0 : qint64(random() % uint32_t(content.size()));
            ++m_count.cuts;
            if (!file.resize(left)) return wrong("cannot cut " + file.fileName());
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
            if (!file.seek(left) || file.write(content.mid(left)) != content.size() - left ||
                !file.flush())
                return wrong("cannot restore " + file.fileName());
            ++m_count.restores;
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

    // Resident bytes when idle with default knobs, excluding expert slots, whose number depends on
    // earlier cache sizes.
    int64_t restingMemory() {
        for (const KnobId id : kTurned) {
            m_served->engine->applyKnob(id, m_served->engine->knobLimits(id).defaultValue);
        }
        malloc_trim(0);
        const EngineMemory memory = m_served->engine->memory();
        return memory.processRss - memory.parts.expertCache;
    }

    // False: a request does not end. `most`: receives the peak memory in bytes.
    bool run(std::chrono::duration<double> time, uint32_t seed, int64_t& most) {
        m_stop = false;
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < 3; ++i) {
            threads.emplace_back([this, s = seed + i] { ask(s); });
            threads.emplace_back([this, s = seed + 10 + i] { talk(s); });
        }
        for (const std::vector<Turn>& turns : m_conversations)
            threads.emplace_back([this, &turns] { converse(turns); });
        threads.emplace_back([this, s = seed + 30] { cutFiles(s); });
        threads.emplace_back([this, s = seed + 20] { turnKnobs(s); });
        const auto end = Clock::now() + time;
        uint64_t seen = 0;
        auto changed = Clock::now();
        bool stuck = false;
        while (Clock::now() < end && !stuck) {
            std::this_thread::sleep_for(200ms);
            const uint64_t now = m_count.finished + m_count.http + m_count.talked;
            most = std::max(most, m_served->engine->memory().processRss);
            if (now != seen) changed = Clock::now();
            seen = now;
            stuck = Clock::now() - changed > 120s;
        }
        m_stop = true;
        // The test's own time limit handles stuck requests.
        for (std::thread& t : threads) t.join();
        return !stuck;
    }

private slots:
    void initTestCase() {
        prepareProcess();  // same setup as the programs
        qInfo("seed %u", m_seed);
        m_model = scratchFolder() / "demo";
        std::filesystem::copy(COLIBRI_SOURCE_DIR "/resources/demo-model/container", m_model,
                              std::filesystem::copy_options::recursive);
        m_served =
            std::make_unique<Served>(Knobs{{KnobId::MaxBatch, 8}}, serve::ApiOptions{}, m_model);
        Engine& engine = *m_served->engine;
        // Threads and reads in flight have event buffers, which are never freed.
        for (const KnobId id : {KnobId::IoDepth, KnobId::PrefetchThreads})
            engine.applyKnob(id, engine.knobLimits(id).max);
        const int64_t vocab = engine.info().config.vocabSize;
        std::mt19937 random(3);
        for (uint32_t i = 0; i < 20; ++i) {
            m_prompts.push_back(somePrompt(1 + int(random() % 200), vocab, i));
            m_alone.push_back(test::generate(engine, m_prompts.back(), 1 + int(random() % 60)));
        }
        // Each from an empty context, on a separate engine.
        const auto alone = load(m_model);
        for (size_t c = 0; c < kConversations; ++c) {
            std::vector<Turn> turns;
            nlohmann::ordered_json messages = nlohmann::ordered_json::array();
            for (size_t t = 0; t < kTurns; ++t) {
                messages.push_back({{"role", "user"}, {"content", kSayings[(c + t) % kTurns]}});
                const auto prompt = alone->encodeChat(messages);
                QVERIFY(prompt.ok());
                Turn turn{*prompt, test::generate(*alone, *prompt, 10 + int(random() % 40))};
                messages.push_back(
                    {{"role", "assistant"}, {"content", engine.tokenizer()->decode(turn.reply)}});
                turns.push_back(std::move(turn));
            }
            m_conversations.push_back(std::move(turns));
        }
    }

    void hours() {
        const auto mib = [](int64_t bytes) { return double(bytes) / (1 << 20); };
        // In the first round, buffers and the heaps of threads grow to their final sizes.
        constexpr int kStretches = 6;
        std::vector<int64_t> most(kStretches), resting, heap;
        for (int i = 0; i < kStretches; ++i) {
            // A recorder for each round: its memory is bounded, but takes long to reach the bound.
            auto recorder = Recorder::start(*m_served->engine, {});
            QVERIFY(recorder.ok());
            QVERIFY(run(length() / kStretches, m_seed + 100 * uint32_t(i), most[size_t(i)]));
            QTRY_COMPARE_WITH_TIMEOUT(m_served->engine->activeRequests(), 0, 60'000);
            recorder->reset();
            resting.push_back(restingMemory());
            const auto blocks = mallinfo2();  // zeros under a sanitizer
            heap.push_back(int64_t(blocks.uordblks + blocks.hblkhd));
            qInfo("memory at most %.1f MiB, at rest %.1f MiB, of that allocated %.1f MiB",
                  mib(most[size_t(i)]), mib(resting.back()), mib(heap.back()));
        }
        const auto number = [](const std::atomic<uint64_t>& n) {
            return (unsigned long long)(n.load());
        };
        qInfo(
            "seed %u: %llu requests, %llu cancelled, %llu turns of conversations (%llu tokens "
            "reused), %llu over HTTP, %llu hung up, %llu turns of knobs, %llu files cut, %llu "
            "requests ended by it",
            m_seed, number(m_count.finished), number(m_count.cancelled), number(m_count.talked),
            number(m_count.reused), number(m_count.http), number(m_count.hungUp),
            number(m_count.turns), number(m_count.cuts), number(m_count.hurt));
        QVERIFY2(m_wrong.isEmpty(), qPrintable(m_wrong));
        QVERIFY(m_count.finished > 50 && m_count.http > 50 && m_count.talked > 50);
        QVERIFY(m_count.cancelled && m_count.turns && m_count.cuts && m_count.hurt);
        // Allocated memory does not grow. Resident memory may grow a little longer, up to a limit,
        // because of fragmentation in the heaps of many threads.
        QVERIFY(heap.back() - heap.front() <= int64_t(4) << 20);
        QVERIFY(resting.back() - resting.front() <= int64_t(64) << 20);
        QVERIFY(most.back() - most.front() <= int64_t(64) << 20);
        // Not all requests failed: one last run of each prompt alone.
        for (size_t i = 0; i < m_prompts.size(); ++i) {
            QCOMPARE(test::generate(*m_served->engine, m_prompts[i], int(m_alone[i].size())),
                     m_alone[i]);
        }
    }
};

// QtTest's default limit for a function is five minutes and must be changed before it starts.
int main(int argc, char** argv) {
    using std::chrono::milliseconds;
    const auto limit = std::chrono::duration_cast<milliseconds>(length() + 10min);
    qputenv("QTEST_FUNCTION_TIMEOUT", QByteArray::number(qint64(limit.count())));
    QCoreApplication program(argc, argv);
    TestSoak test;
    return QTest::qExec(&test, argc, argv);
}
#include "test_soak.moc"
