// SPDX-License-Identifier: GPL-3.0-or-later
// router_mode and prefetch_source router_table: what they change and what they never change, and
// changes of the table's file.
#include <QTest>
#include <numeric>

#include "engine/model/router_table.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace fs = std::filesystem;

class TestRouterModes : public QObject {
    Q_OBJECT

    fs::path m_model;
    const std::vector<int32_t> m_prompt = somePrompt(40, 300);
    static constexpr int64_t kTable = int64_t(RouterMode::Table);

    // Every token uses the experts first, first + 1, ... in every layer.
    static void writeTable(const fs::path& path, const ModelConfig& c, int first) {
        const fs::path fresh = path.string() + ".new";
        Result<RouterTableWriter> writer = RouterTableWriter::create(fresh, c);
        std::vector<uint16_t> entry(size_t(c.topK));
        std::iota(entry.begin(), entry.end(), uint16_t(first));
        for (int64_t i = 0; i < c.vocabSize * c.moeLayerCount(); ++i) {
            if (!writer->append(entry).ok()) qFatal("append");
        }
        if (!writer->finish().ok()) qFatal("finish");
        fs::rename(fresh, path);
    }
    // A copy of the random model with a table.
    fs::path withTable(const char* name, int first) const {
        const fs::path copy = scratchFolder() / name;
        fs::copy(m_model, copy, fs::copy_options::recursive);
        writeTable(copy / kRouterTableFile, openContainer(copy)->config, first);
        return copy;
    }
    static std::unique_ptr<Engine> loadReloading(const fs::path& model, bool reload) {
        EngineOptions options;
        options.model = model;
        options.reloadRouterTable = reload;
        options.knobs = knobValues({{KnobId::RouterMode, kTable}});
        auto engine = Engine::load(options, {}, nullptr);
        if (!engine.ok()) qFatal("%s", engine.status().text().c_str());
        return std::move(*engine);
    }
    static std::vector<int> expertsOf(Engine& engine) {
        return engine.logits({1})->routing[0].experts[0];
    }

private slots:
    void initTestCase() { m_model = randomModel(); }

    void withoutATableBothSayWhy() {
        const auto engine =
            load(m_model, {{KnobId::RouterMode, kTable},
                           {KnobId::PrefetchSource, int64_t(PrefetchSource::RouterTable)}});
        for (const KnobId id : {KnobId::RouterMode, KnobId::PrefetchSource}) {
            const KnobState s = engine->knobState(id);
            QCOMPARE(s.requested, int64_t(1));
            QCOMPARE(s.effective, int64_t(0));
            QVERIFY(s.reason.find("no router table") != std::string::npos);
            // The same reason before the knob is set.
            QCOMPARE(engine->knobProblem(id, 1), s.reason);
            QCOMPARE(knobProblemFor(id, 1, engine->info()), s.reason);
            QCOMPARE(engine->knobProblem(id, 0), std::string());
        }
        QVERIFY(!engine->routerStats().table);
    }

    void exactModeIsTheGateAndMeasuresAgreement() {
        const auto plain = load(m_model);
        const std::vector<int32_t> expected = generate(*plain, m_prompt, 30);
        const auto engine = load(withTable("measured", 0));
        QCOMPARE(generate(*engine, m_prompt, 30), expected);
        const RouterStats s = engine->routerStats();
        QVERIFY(s.table);
        QCOMPARE(engine->knobProblem(KnobId::RouterMode, kTable), std::string());
        QCOMPARE(knobProblemFor(KnobId::RouterMode, kTable, engine->info()), std::string());
        // 69 rows, 4 layers, top-4.
        QCOMPARE(s.compared, uint64_t(69 * 4 * 4));
        QVERIFY(s.agreed > 0 && s.agreed < s.compared);
        QVERIFY(s.notice.empty());
    }

    void tableModeTakesTheTablesExperts() {
        const fs::path model = withTable("table", 5);
        const auto engine = load(model, {{KnobId::RouterMode, kTable}});
        const auto exact = load(m_model);
        const auto got = engine->logits(m_prompt), gate = exact->logits(m_prompt);
        for (size_t l = 0; l < got->routing.size(); ++l) {
            for (size_t r = 0; r < m_prompt.size(); ++r) {
                QCOMPARE(got->routing[l].experts[r], (std::vector<int>{5, 6, 7, 8}));
            }
        }
        // The first layer's gate has the same input, so the sum of the weights is equal.
        const auto total = [](const std::vector<float>& w) {
            return std::accumulate(w.begin(), w.end(), 0.0);
        };
        for (size_t r = 0; r < m_prompt.size(); ++r) {
            QVERIFY(std::abs(total(got->routing[0].weights[r]) -
                             total(gate->routing[0].weights[r])) < 1e-5);
        }
        QVERIFY(engine->routerStats().agreement() < 1);
        QCOMPARE(engine->knobState(KnobId::RouterMode).effective, kTable);
    }

    void aTableThatIsTheGateChangesNothing() {
        // The gate's choice for a first token, as a table for that token.
        const auto exact = load(m_model);
        const auto gate = exact->logits({7});
        const ModelConfig c = exact->info().config;
        const fs::path model = scratchFolder() / "own";
        fs::copy(m_model, model, fs::copy_options::recursive);
        Result<RouterTableWriter> writer = RouterTableWriter::create(model / kRouterTableFile, c);
        for (int64_t l = 0; l < c.numLayers; ++l) {
            const std::vector<int>& chosen = gate->routing[size_t(l)].experts[0];
            const std::vector<uint16_t> entry(chosen.begin(), chosen.end());
            for (int64_t t = 0; t < c.vocabSize; ++t) QVERIFY(writer->append(entry).ok());
        }
        QVERIFY(writer->finish().ok());
        const auto engine = load(model, {{KnobId::RouterMode, kTable}});
        QCOMPARE(engine->logits({7})->routing[0].experts, gate->routing[0].experts);
        QCOMPARE(engine->routerStats().agreement(), 1.0);
    }

    void backInExactModeTheTextIsExactAgain() {
        const auto engine = load(withTable("switched", 3), {{KnobId::ExpertCacheSize, 3}});
        const std::vector<int32_t> expected = generate(*engine, m_prompt, 20);
        QCOMPARE(engine->applyKnob(KnobId::RouterMode, kTable).effective, kTable);
        QVERIFY(generate(*engine, m_prompt, 20) != expected);
        // Keys and values of the approximate turn are not reused.
        engine->applyKnob(KnobId::RouterMode, int64_t(RouterMode::Exact));
        QCOMPARE(generate(*engine, m_prompt, 20), expected);
    }

    void hintsFromTheTableChangeNoText() {
        const auto plain = load(m_model);
        const std::vector<int32_t> expected = generate(*plain, m_prompt, 30);
        for (const int64_t depth : {1, 4}) {
            const auto engine =
                load(withTable(depth == 1 ? "hints1" : "hints4", 2),
                     {{KnobId::PrefetchSource, int64_t(PrefetchSource::RouterTable)},
                      {KnobId::PrefetchDepth, depth},
                      {KnobId::ExpertCacheSize, 6}});
            const KnobState s = engine->knobState(KnobId::PrefetchSource);
            QCOMPARE(s.effective, int64_t(PrefetchSource::RouterTable));
            QVERIFY(s.reason.empty());
            QCOMPARE(generate(*engine, m_prompt, 30), expected);
        }
    }

    void aBrokenTableStopsTheLoad() {
        const fs::path model = withTable("broken", 0);
        fs::resize_file(model / kRouterTableFile, 100);
        const Status s = Engine::load({model, {}, {}}, {}, nullptr).status();
        QCOMPARE(s.code(), Code::BadInput);
        QVERIFY(s.message().find(kRouterTableFile) != std::string::npos);
    }

    void aReplacedFileIsReportedAndNotRead() {
        const fs::path model = withTable("watched", 1);
        const auto engine = loadReloading(model, false);
        writeTable(model / kRouterTableFile, engine->info().config, 9);
        QTRY_VERIFY_WITH_TIMEOUT(!engine->routerStats().notice.empty(), 30000);
        QVERIFY(engine->routerStats().notice.find("has changed") != std::string::npos);
        QCOMPARE(engine->routerStats().reloads, uint64_t(0));
        QCOMPARE(expertsOf(*engine), (std::vector<int>{1, 2, 3, 4}));
    }

    void aReplacedFileIsReadWhenAsked() {
        const fs::path model = withTable("reloaded", 1);
        const auto engine = loadReloading(model, true);
        QCOMPARE(expertsOf(*engine), (std::vector<int>{1, 2, 3, 4}));
        writeTable(model / kRouterTableFile, engine->info().config, 9);
        QTRY_COMPARE_WITH_TIMEOUT(expertsOf(*engine), (std::vector<int>{9, 10, 11, 12}), 30000);
        QCOMPARE(engine->routerStats().reloads, uint64_t(1));
        QVERIFY(engine->routerStats().notice.empty());
        // A damaged table leaves the last valid one in use.
        fs::resize_file(model / kRouterTableFile, 99);
        QTRY_VERIFY_WITH_TIMEOUT(!engine->routerStats().notice.empty(), 30000);
        QCOMPARE(expertsOf(*engine), (std::vector<int>{9, 10, 11, 12}));
    }
};

QTEST_GUILESS_MAIN(TestRouterModes)
#include "test_router_modes.moc"
