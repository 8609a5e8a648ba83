// SPDX-License-Identifier: GPL-3.0-or-later
// "The first five minutes" of README.md, step by step as it is written there, on the demo model.
#include <QPlainTextEdit>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/widgets/data_table.h"
#include "app/workbench/window/main_window.h"
#include "window_test.h"

using namespace colibri;
using namespace colibri::ui;

class TestWorkbenchReadme : public QObject {
    Q_OBJECT

    static constexpr int kLongMs = 240'000;  // on a busy machine; a story takes half a minute

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<MainWindow> m_window;

    ChatPanel* chat() { return m_window->chatPage()->chat(); }
    PlotsPanel* plots() { return m_window->chatPage()->plots(); }
    KnobsPanel* knobs() { return m_window->chatPage()->knobs(); }
    QPlainTextEdit* editor() { return chat()->composer()->editor(); }
    int tokens() {
        const Conversation& c = chat()->conversation();
        return c.path().isEmpty() ? 0 : int(c.turns[c.path().last()].tokens.size());
    }
    void ask(const QString& text) {
        editor()->setFocus();
        QTest::keyClicks(editor(), text);
        QTest::keyClick(editor(), Qt::Key_Return);
        QVERIFY(chat()->generating());
    }
    bool wait(const std::function<bool()>& done) { return QTest::qWaitFor(done, kLongMs); }
    void moveTo(KnobId id, int64_t from, int64_t to) {
        Slider* slider = knobs()->control(id)->sliderRow()->slider();
        drag(slider, QPoint(int(slider->xOf(from)), 11), QPoint(int(slider->xOf(to)), 11));
    }
    void type(KnobId id, const QString& text) {
        NumberField* field = knobs()->control(id)->sliderRow()->field();
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, text);
        QTest::keyClick(field, Qt::Key_Return);
    }
    double newestHitRate() {
        const auto& y = m_host->snapshot()->series[size_t(SeriesId::HitRate)].y;
        return y.empty() ? std::nan("") : y.back();
    }
    std::optional<MarkerLane::Flag> flag(const std::function<bool(const MarkerLane::Flag&)>& is) {
        for (const MarkerLane::Flag& flag : plots()->lane()->flags())
            if (is(flag)) return flag;
        return std::nullopt;
    }

private slots:
    void initTestCase() {
        m_sandbox = std::make_unique<Sandbox>();
        m_host = std::make_unique<EngineHost>(m_sandbox->path("data"));
        m_window = std::make_unique<MainWindow>(m_host.get(), m_sandbox->path("chats"));
        m_window->resize(1440, 900);
        m_window->show();
        m_window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
        m_host->load(COLIBRI_SOURCE_DIR "/resources/demo-model/container", demoKnobs());
        QVERIFY(wait([&] { return m_host->state() == SessionSource::State::Ready; }));
        m_window->showPage("chat");
    }
    void cleanupTestCase() {
        m_window.reset();
        m_host.reset();
    }

    void step1TheDemoStartsWithALinkLimit() {
        QCOMPARE(m_host->model()->moeLayers, int64_t(6));
        QCOMPARE(m_host->model()->experts, int64_t(32));
        QCOMPARE(m_host->model()->topK, int64_t(4));
        QCOMPARE(m_host->knobState(KnobId::LinkLimit).effective, int64_t(25));
        m_window->tick();
        QVERIFY(wait([&] { return m_window->status()->cell(StatusBar::LinkBadge)->isVisible(); }));
    }

    void step2And3AMarkerSaysHowMuchFasterALargerCacheIs() {
        ask("Tell me a long story about a fox who finds a key.");
        QVERIFY(wait([&] { return tokens() >= 120 || !chat()->generating(); }));
        QVERIFY2(chat()->generating(), "the story is too short to change a knob in it");
        const double before = newestHitRate();
        moveTo(KnobId::ExpertCacheSize, 8, 16);
        QCOMPARE(m_host->knobState(KnobId::ExpertCacheSize).requested, int64_t(16));
        const auto mine = [](const MarkerLane::Flag& f) { return f.name == "Cache size 8 → 16"; };
        QVERIFY(wait([&] { return flag(mine).has_value(); }));
        QVERIFY(wait([&] { return newestHitRate() > before + 5 || !chat()->generating(); }));
        std::optional<MarkerLane::Flag> said;
        QVERIFY(wait([&] {
            said = flag(mine);
            return (said && said->look.figure) || !chat()->generating();
        }));
        QVERIFY(said);
        QVERIFY2(said->effect.contains("tok/s (95 %: "), qPrintable(said->detail));
        QCOMPARE(said->look.ink, Tone::Ok);  // faster
    }

    void step4TheEngineSaysWhyItBacksOffAndPrefetchIsCounted() {
        QVERIFY(wait([&] { return !chat()->generating(); }));
        QVERIFY(flag([](const MarkerLane::Flag& f) {
            return f.automatic && f.name == "auto" && f.detail.contains("backed off");
        }));
        QTest::keyClick(m_window.get(), Qt::Key_N, Qt::ControlModifier);
        plots()->setPlotShown("prefetch", true);
        type(KnobId::LinkLimit, "100");
        QCOMPARE(m_host->knobState(KnobId::LinkLimit).requested, int64_t(100));
        ask("Tell me a long story about a fox who finds a key.");
        QVERIFY(wait([&] { return !chat()->generating(); }));
        const Conversation& c = chat()->conversation();
        const Turn& reply = c.turns[c.path().last()];
        QVERIFY2(reply.figures.stop != "context", qPrintable(reply.figures.stop));
        QVERIFY(reply.tokens.size() > 100);
        TimePlot* prefetch = plots()->plot("prefetch");
        QVERIFY(prefetch->isVisible() && prefetch->hasData());
        QVERIFY(prefetch->canvas()->height() >= PlotsPanel::kLeastCanvas);
        QVERIFY2(prefetch->header()->toolTip().contains("issued"),
                 qPrintable(prefetch->header()->toolTip()));
    }

    void step5OneCursorRunsThroughAllPlots() {
        PlotCanvas* hit = plots()->plot("hit")->canvas();
        const QPoint centre = hit->area().center().toPoint();
        hover(hit, centre);
        QVERIFY(m_window->view()->hasCursor());
        for (const char* key : {"hit", "load", "itl"})
            QCOMPARE(plots()->plot(key)->header()->content().cursorTime,
                     plots()->plot("hit")->header()->content().cursorTime);
        wheel(hit, centre, 2);
        drag(hit, centre, centre + QPoint(60, 0));
        QVERIFY(!m_window->view()->following());
        editor()->setFocus();  // where the caret is after a message was sent
        QTest::keyClick(editor(), Qt::Key_End);
        QVERIFY(m_window->view()->following());
        drag(hit, centre, centre + QPoint(60, 0));
        QVERIFY(!m_window->view()->following());
        ask("What is an expert?");  // sending follows as well
        QVERIFY(m_window->view()->following());
        QVERIFY(wait([&] { return !chat()->generating(); }));
        const QString csv = m_sandbox->path("hit.csv");
        plots()->exportPlot(plots()->plot("hit"), "csv", csv);
        QVERIFY(QFileInfo(csv).size() > 1000);
    }

    void step6ServeAndLoadTest() {
        m_window->commands()->run("engine.serve");
        m_window->servePanel()->port()->setText("0");
        m_window->servePanel()->setOn(true);
        QVERIFY(wait([&] { return m_window->server()->state() == ModelServer::State::On; }));
        QVERIFY(m_window->servePanel()->example().startsWith("curl"));
        m_window->servePanel()->setOn(false);
        m_window->commands()->run("engine.load");
        LoadTestPanel* load = m_window->loadTestPanel();
        load->requests()->setValue(2);
        load->maxTokens()->setValue(8);
        load->startTest();
        QVERIFY(wait([&] { return !m_window->loadTest()->running(); }));
        QCOMPARE(load->latencies()->rows().size(), 3);
    }

    void step7CommandsAndKeys() {
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(m_window->palette()->isOpen());
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        QTest::keyClick(m_window.get(), Qt::Key_F1);
        QVERIFY(m_window->sheet()->isOpen());
    }
};

QTEST_MAIN(TestWorkbenchReadme)
#include "test_workbench_readme.moc"
