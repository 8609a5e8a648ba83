// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace fs = std::filesystem;

class TestEngineLoad : public QObject {
    Q_OBJECT

    static Status loadStatus(const fs::path& dir, const Knobs& knobs = {}) {
        return Engine::load({dir, knobValues(knobs), {}}, {}, nullptr).status();
    }
    static fs::path copyOf(const fs::path& model, const char* name) {
        const fs::path copy = scratchFolder() / name;
        fs::copy(model, copy, fs::copy_options::recursive);
        return copy;
    }

private slots:
    void missingModel() {
        const Status s = loadStatus(scratchFolder() / "nowhere");
        QCOMPARE(s.code(), Code::BadInput);
        QVERIFY(s.message().find("nowhere") != std::string::npos);
    }
    void truncatedFiles() {
        const fs::path dense = copyOf(goldenModel("qwen3moe"), "dense-cut");
        fs::resize_file(dense / "dense.bin", fs::file_size(dense / "dense.bin") - 1);
        QCOMPARE(loadStatus(dense).code(), Code::BadInput);
        const fs::path experts = copyOf(goldenModel("qwen3moe"), "experts-cut");
        fs::resize_file(experts / "experts" / "layer_001.bin", 100);
        QCOMPARE(loadStatus(experts).code(), Code::BadInput);
    }
    void brokenTokenizer() {
        const fs::path dir = copyOf(goldenModel("qwen3moe"), "tokenizer-broken");
        std::ofstream(dir / "tokenizer.json") << "{\"model\": ";
        const Status s = loadStatus(dir);
        QCOMPARE(s.code(), Code::BadInput);
        QVERIFY(s.message().find("tokenizer.json") != std::string::npos);
    }
    void brokenTemplate() {
        const fs::path dir = copyOf(goldenModel("qwen3moe"), "template-broken");
        std::ofstream(dir / "chat_template.jinja") << "{% if %}";
        const Status s = loadStatus(dir);
        QCOMPARE(s.code(), Code::BadInput);
        QVERIFY(s.message().find("chat_template.jinja") != std::string::npos);
    }
    void withoutTokenizer() {
        const auto engine = load(randomModel());
        QVERIFY(!engine->tokenizer());
        QCOMPARE(engine->encodeChat(nlohmann::ordered_json::array()).status().code(),
                 Code::Unsupported);
    }
    void cancelledLoad() {
        CancelFlag cancel{true};
        QCOMPARE(Engine::load({randomModel(), {}, {}}, {}, &cancel).status().code(),
                 Code::Cancelled);
    }
    void progressNamesStages() {
        QStringList stages;
        const auto engine = Engine::load(
            {goldenModel("olmoe"), {}, {}},
            [&](const Progress& p) { stages << QString::fromStdString(p.stage); }, nullptr);
        QVERIFY(engine.ok());
        QVERIFY(stages.contains("Dense weights"));
    }
    void valuesOutOfRangeAreBroughtIn() {
        const auto engine = load(randomModel(), {{KnobId::ExpertCacheSize, 999},
                                                 {KnobId::ContextLength, 1 << 20},
                                                 {KnobId::ComputeThreads, 5000}});
        QCOMPARE(engine->knobState(KnobId::ExpertCacheSize).requested, int64_t(999));
        QCOMPARE(engine->knobState(KnobId::ExpertCacheSize).effective, int64_t(16));
        QVERIFY(!engine->knobState(KnobId::ExpertCacheSize).reason.empty());
        QCOMPARE(engine->contextLength(), int64_t(2048));
        QCOMPARE(engine->knobState(KnobId::ComputeThreads).effective,
                 engine->knobLimits(KnobId::ComputeThreads).max);
    }
    void limitsFollowTheModel() {
        const auto info = openContainer(randomModel());
        QVERIFY(info.ok());
        const KnobLimits size = knobLimitsFor(KnobId::ExpertCacheSize, *info);
        QCOMPARE(size.min, int64_t(1));
        QCOMPARE(size.max, int64_t(16));
        QCOMPARE(size.defaultValue, int64_t(16));  // a small model fits completely
        const KnobLimits context = knobLimitsFor(KnobId::ContextLength, *info);
        QCOMPARE(context.min, int64_t(16));
        QCOMPARE(context.max, int64_t(2048));
        for (const KnobRow& row : knobTable()) {
            const KnobLimits l = knobLimitsFor(row.id, *info);
            QVERIFY2(l.min <= l.defaultValue && l.defaultValue <= l.max, row.name);
        }
    }
    void logitsChecksItsTokens() {
        const auto engine = load(randomModel(), {{KnobId::ContextLength, 64}});
        QCOMPARE(engine->logits({}).status().code(), Code::InvalidArgument);
        QCOMPARE(engine->logits({1, 300}).status().code(), Code::InvalidArgument);
        QCOMPARE(engine->logits(somePrompt(65, 300)).status().code(), Code::InvalidArgument);
        QVERIFY(engine->logits(somePrompt(64, 300)).ok());
    }
    void memoryIsReported() {
        const auto engine = load(randomModel(), {{KnobId::ExpertCacheSize, 3}});
        test::generate(*engine, somePrompt(100, 300), 3);
        const EngineMemory m = engine->memory();
        QVERIFY(m.parts.dense > 0 && m.parts.kvCache > 0 && m.parts.recording > 0);
        QVERIFY(m.parts.expertCache > 0);
        QVERIFY(m.parts.expertCache <= 3 * 4 * engine->info().expertRecordBytes() * 2);
        QVERIFY(m.processRss > 0);
    }
    void chatIsRenderedAndEncoded() {
        const auto engine = load(goldenModel("qwen3moe"));
        const auto ids = engine->encodeChat({{{"role", "user"}, {"content", "hello"}}});
        QVERIFY2(ids.ok(), ids.status().text().c_str());
        QVERIFY(engine->tokenizer()->decode(*ids).find("hello") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestEngineLoad)
#include "test_engine_load.moc"
