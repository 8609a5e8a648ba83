// SPDX-License-Identifier: GPL-3.0-or-later
// Failing expert reads in many patterns and at every cache size: each request ends with an error
// that names file and byte, and the engine continues.
#include <QtTest>
#include <filesystem>
#include <future>
#include <mutex>

#include "engine/runtime/forward.h"
#include "engine/store/store_factory.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr auto kPatience = 60s;  // time after which a request counts as stuck

enum class Pattern { None, First, Last, All, Alternating, AllButFirst };

// Fails the reads of some experts of each layer, by the order in which they are first read.
class PatternReader final : public Reader {
public:
    struct Plan {
        std::mutex mutex;
        Pattern pattern = Pattern::None;
        std::map<int64_t, std::vector<int64_t>> order;  // layer -> offsets, as first read
        std::map<int64_t, size_t> reads;                // layer -> experts read without faults
    };
    PatternReader(std::unique_ptr<Reader> files, std::shared_ptr<Plan> plan)
        : m_files(std::move(files)), m_plan(std::move(plan)) {}

    int64_t readAt(int64_t layer, int64_t offset, std::span<std::byte> out, IoMode mode) override {
        {
            std::lock_guard lock(m_plan->mutex);
            std::vector<int64_t>& order = m_plan->order[layer];
            auto at = std::find(order.begin(), order.end(), offset);
            if (at == order.end()) at = order.insert(order.end(), offset);
            const auto ordinal = size_t(at - order.begin());
            if (m_plan->pattern == Pattern::None) m_plan->reads[layer] = order.size();
            if (fails(ordinal, m_plan->reads[layer])) return -EIO;
        }
        return m_files->readAt(layer, offset, out, mode);
    }

private:
    bool fails(size_t ordinal, size_t reads) const {
        switch (m_plan->pattern) {
            case Pattern::None:
                return false;
            case Pattern::First:
                return ordinal == 0;
            case Pattern::Last:
                return ordinal + 1 == reads;
            case Pattern::All:
                return true;
            case Pattern::Alternating:
                return ordinal % 2 == 1;
            case Pattern::AllButFirst:
                return ordinal > 0;
        }
        return false;
    }
    const std::unique_ptr<Reader> m_files;
    const std::shared_ptr<Plan> m_plan;
};

// A forward pass over a store whose reads fail as configured.
struct Pass {
    Pass(const ContainerInfo& container, int64_t cacheSize) : info(container) {
        auto loaded = DenseWeights::load(info, {}, nullptr);
        if (!loaded.ok()) throw std::runtime_error(loaded.status().text());
        dense = std::move(*loaded);
        if (Status s = weights.bind(info, *dense); !s.ok()) throw std::runtime_error(s.text());
        auto files = FileReader::open(info);
        if (!files.ok()) throw std::runtime_error(files.status().text());
        StoreParts parts;
        parts.queue = std::make_unique<ThreadQueue>(
            std::make_unique<PatternReader>(std::move(*files), plan), "");
        StoreOptions options;
        options.cacheSize = cacheSize;
        options.prefetchSource = PrefetchSource::Off;
        options.ioDepth = 1;  // reads in the order of requests
        auto opened =
            StoreFactory::open(StoreFactory::shapeOf(info), options, nullptr, std::move(parts));
        if (!opened.ok()) throw std::runtime_error(opened.status().text());
        store = std::move(*opened);
        const ModelConfig& c = info.config;
        kv = {c.numLayers, c.cachedHeads(), c.cachedKeyDim(), KvType::F32, 0, 64};
        ring = telemetry.addRing("test", 1 << 12);
        forward =
            std::make_unique<Forward>(info, weights, *store, threads, bestKernels(), kv, ring);
        forward->setPrefetch({PrefetchSource::Off, 0});
    }

    struct Answer {
        std::vector<Status> status;              // (sequences)
        std::vector<std::vector<float>> logits;  // (sequences) of the last row
    };
    // Two prompts of six tokens in one batch, each from an empty context.
    Answer run() {
        {
            std::lock_guard lock(plan->mutex);
            plan->order.clear();
        }
        KvCache pool(kv, 2);
        KvSequence sequences[2];
        std::vector<BatchRow> rows(12);
        for (int s = 0; s < 2; ++s) {
            pool.grow(sequences[s], 6);
            for (int i = 0; i < 6; ++i) {
                BatchRow& row = rows[size_t(6 * s + i)];
                row.sequence = &sequences[s];
                row.token = 17 + 31 * s + 5 * i;
                row.position = i;
                row.prefill = true;
                row.wantLogits = i == 5;
                row.request = uint64_t(s + 1);
            }
        }
        forward->run(rows, nullptr);
        Answer answer;
        for (const size_t last : {5u, 11u}) {
            answer.status.push_back(rows[last].status);
            const float* l = rows[last].logits;
            answer.logits.emplace_back(l, l ? l + info.config.vocabSize : l);
        }
        for (KvSequence& sequence : sequences) pool.release(sequence);
        return answer;
    }
    // Calls run(), and ends the test program if it does not return.
    Answer runWatched(const char* what) {
        auto answer = std::async(std::launch::async, [this] { return run(); });
        if (answer.wait_for(kPatience) != std::future_status::ready)
            qFatal("a step never ends: %s", what);
        return answer.get();
    }

    const ContainerInfo& info;
    Telemetry telemetry;
    EventRing* ring = nullptr;
    std::unique_ptr<DenseWeights> dense;
    ModelWeights weights;
    std::shared_ptr<PatternReader::Plan> plan = std::make_shared<PatternReader::Plan>();
    std::unique_ptr<ExpertStore> store;
    KvShape kv;
    ThreadPool threads{2};
    std::unique_ptr<Forward> forward;
};

QByteArray contentOf(const fs::path& path) {
    QFile file(QString::fromStdString(path.string()));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// Truncates a file to its first `bytes` bytes.
void cut(const fs::path& path, int64_t bytes) {
    fs::resize_file(path, uintmax_t(bytes));
}

// Appends the truncated part, so that a reader sees correct bytes or the end of the file.
void restore(const fs::path& path, const QByteArray& content) {
    QFile file(QString::fromStdString(path.string()));
    QVERIFY(file.open(QIODevice::ReadWrite));
    QVERIFY(file.seek(file.size()));
    file.write(content.mid(file.size()));
}

}  // namespace

class TestFailingReads : public QObject {
    Q_OBJECT

    Result<ContainerInfo> m_info = Status(Code::Internal, "");

private slots:
    void initTestCase() {
        m_info = openContainer(randomModel());
        QVERIFY(m_info.ok());
    }

    void noPatternKeepsAStepFromEnding_data() {
        QTest::addColumn<int>("cacheSize");
        for (const int size : {1, 2, 3, 4, 5, 8, 15, 16}) QTest::addRow("%d", size) << size;
    }
    void noPatternKeepsAStepFromEnding() {
        QFETCH(int, cacheSize);
        for (const Pattern pattern : {Pattern::First, Pattern::Last, Pattern::All,
                                      Pattern::Alternating, Pattern::AllButFirst}) {
            const QByteArray what = QByteArray("pattern ") + QByteArray::number(int(pattern)) +
                                    ", cache " + QByteArray::number(cacheSize);
            Pass pass(*m_info, cacheSize);
            const Pass::Answer whole = pass.runWatched(what);
            QVERIFY(whole.status[0].ok() && whole.status[1].ok());
            // All experts must be read again.
            Pass failing(*m_info, cacheSize);
            failing.plan->reads = pass.plan->reads;
            failing.plan->pattern = pattern;
            const Pass::Answer broken = failing.runWatched(what);
            int failed = 0;
            for (int s = 0; s < 2; ++s) {
                if (broken.status[size_t(s)].ok()) {
                    QCOMPARE(broken.logits[size_t(s)], whole.logits[size_t(s)]);
                    continue;
                }
                ++failed;
                const std::string text = broken.status[size_t(s)].text();
                QVERIFY2(text.find("experts/layer_") != text.npos, text.c_str());
                QVERIFY2(text.find("byte") != text.npos, text.c_str());
            }
            QVERIFY2(failed > 0, what);
            failing.plan->pattern = Pattern::None;
            const Pass::Answer after = failing.runWatched(what);
            QVERIFY2(after.status[0].ok() && after.status[1].ok(), what);
            QCOMPARE(after.logits, whole.logits);
        }
    }

    void emptyExpertFilesEndEveryRequest_data() {
        QTest::addColumn<int>("cacheSize");
        QTest::addColumn<bool>("half");
        for (const int size : {1, 4, 16})
            for (const bool half : {false, true})
                QTest::addRow("%d, %s", size, half ? "half cut off" : "empty") << size << half;
    }
    void emptyExpertFilesEndEveryRequest() {
        QFETCH(int, cacheSize);
        QFETCH(bool, half);
        const fs::path model = randomModel();
        const auto engine = load(model, {{KnobId::ExpertCacheSize, cacheSize}});
        std::map<fs::path, QByteArray> files;
        for (const auto& entry : fs::directory_iterator(model / "experts"))
            files[entry.path()] = contentOf(entry.path());
        for (const auto& [path, content] : files) cut(path, half ? content.size() / 2 : 0);
        std::vector<std::unique_ptr<Pending>> requests;
        for (uint32_t i = 0; i < 4; ++i)
            requests.push_back(
                std::make_unique<Pending>(*engine, greedyRequest(somePrompt(40, 300, i), 4)));
        for (const auto& request : requests) {
            QTRY_VERIFY_WITH_TIMEOUT(request->done(), 60'000);
            const RequestResult& result = request->wait();
            QCOMPARE(result.stop, StopReason::Error);
            const std::string text = result.status.text();
            QVERIFY2(text.find("experts/layer_") != text.npos, text.c_str());
            QVERIFY2(text.find("byte") != text.npos, text.c_str());
        }
        for (const auto& [path, content] : files) restore(path, content);
        const auto prompt = somePrompt(40, 300, 1);
        const auto fresh = load(model);
        QCOMPARE(test::generate(*engine, prompt, 6), test::generate(*fresh, prompt, 6));
    }

    // With this limit a read takes nearly one second, and a token six.
    void slowReadsDoNotHoldUpACancellation_data() {
        QTest::addColumn<int>("promptTokens");
        QTest::newRow("prompt") << 200;
        QTest::newRow("decoding") << 1;
    }
    void slowReadsDoNotHoldUpACancellation() {
        QFETCH(int, promptTokens);
        RandomShape shape;
        shape.hidden = 1024, shape.expertSize = 256;  // records of 0.8 MB
        shape.layers = 2;
        const auto engine = load(
            randomModel(shape),
            {{KnobId::ExpertCacheSize, 1}, {KnobId::PrefetchSource, int64_t(PrefetchSource::Off)}});
        Pending request(*engine, greedyRequest(somePrompt(promptTokens, 300), 1000));
        if (promptTokens == 1) QTRY_VERIFY_WITH_TIMEOUT(request.tokens() > 0, 60'000);
        engine->applyKnob(KnobId::LinkLimit, 1);
        const uint64_t lookups = engine->store().stats().lookups;
        QTRY_VERIFY_WITH_TIMEOUT(engine->store().stats().lookups > lookups, 60'000);
        QTest::qWait(50);
        const uint64_t before = engine->store().stats().bytesRead;
        engine->cancel(request.id());
        QTRY_VERIFY_WITH_TIMEOUT(request.done(), 60'000);
        QCOMPARE(request.wait().stop, StopReason::Cancelled);
        // It ended without waiting for the remaining reads.
        QVERIFY(engine->store().stats().bytesRead - before < 4 * (1u << 20));
    }
};

QTEST_GUILESS_MAIN(TestFailingReads)
#include "test_failing_reads.moc"
