// SPDX-License-Identifier: GPL-3.0-or-later
// The visible range of the plots: inside the session, frozen by a pause, and what is exported of
// it.
#include "app/workbench/platform/ask_file.h"
#include "app/workbench/plots/plot_data.h"
#include "plots_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestRange : public PlotsRig {
    Q_OBJECT

private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }
    void cleanup() { drop(); }

    void pauseKeepsTheRangeAndSaysWhatIsNewer() {
        show();
        m_source->setNow(60);
        m_view->reset();
        m_view->setSpan(30);
        tick();
        m_view->setPaused(true);
        const double lower = m_view->lower();
        m_source->setNow(81);
        tick();
        QCOMPARE(m_view->lower(), lower);
        const auto& tags = m_panel->plot("hit")->header()->content().tags;
        QVERIFY(!tags.empty());
        m_source->editable();
        tick();
        m_view->follow();
        QVERIFY(m_view->lower() > lower);
    }

    // A session shorter than the range: the right edge of the plots is a time to come.
    void pauseFreezesAShortSessionToo() {
        show();
        m_source->setNow(30);
        m_view->reset();
        tick();
        m_view->setPaused(true);
        tick();
        const auto drawn = [this] {
            const auto data = canvas("hit")->graph(0)->data();
            return data->isEmpty() ? 0.0 : (data->constEnd() - 1)->key;
        };
        const double before = drawn();
        const QString last = m_panel->plot("hit")->header()->content().entries[0].last;
        const QString pooled = m_panel->plot("itl")->header()->content().entries[0].third;
        QVERIFY(before > 20 && before <= 30);
        m_source->setNow(50);
        tick();
        QCOMPARE(drawn(), before);
        QCOMPARE(m_panel->plot("hit")->header()->content().entries[0].last, last);
        QCOMPARE(m_panel->plot("itl")->header()->content().entries[0].third, pooled);
        QCOMPARE(m_view->shownEnd(), 30.0);
        QCOMPARE(m_panel->plot("hit")->header()->content().tags.back().text,
                 QString("paused, 00:20 newer recorded"));
        m_view->setPaused(false);
        tick();
        QVERIFY(drawn() > 40);
    }
    // No time before zero and none to come, however the range is moved.
    void theRangeStaysInsideTheSession() {
        ViewState view;
        view.advance(144);
        view.setRange(20, 110);
        view.pan(500);
        QCOMPARE(view.upper(), 144.0);
        view.pan(-500);
        QCOMPARE(view.lower(), 0.0);
        view.setSpan(300);  // of a session of 2:24
        QCOMPARE(view.lower(), 0.0);
        view.setRange(100, 110);
        view.zoom(100, 105);
        QCOMPARE(view.lower(), 0.0);
        QVERIFY(view.upper() <= 144);
        view.showWhole();
        QVERIFY(view.following());
        QCOMPARE(view.upper(), 144.0);
        view.advance(200);
        QCOMPARE(view.lower(), 0.0);
        QCOMPARE(view.upper(), 200.0);
        view.setSpan(30);
        QCOMPARE(view.lower(), 170.0);
    }

    // Following stops a little after the last thing that happened, so that it can be read.
    void idleTimeDoesNotScrollTheLastTurnAway() {
        ViewState view;
        view.advance(100, 100);
        QCOMPARE(view.upper(), 100.0);
        view.advance(160, 101);
        QCOMPARE(view.upper(), 103.0);
        view.advance(900, 101);
        QCOMPARE(view.upper(), 103.0);
        QVERIFY(view.following());
        view.setSpan(30);
        QCOMPARE(view.upper(), 103.0);
        view.setRange(700, 800);  // what is recorded meanwhile can be looked at
        QCOMPARE(view.upper(), 800.0);
        view.follow();
        QCOMPARE(view.upper(), 103.0);
        view.advance(901, 901);  // the next turn begins
        QCOMPARE(view.upper(), 901.0);
    }

    // From an empty range there is a way back to what was measured.
    void anEmptyPlotLeadsToTheLastTurn() {
        show();
        m_source->editable();
        m_view->setRange(25, 30);  // between two turns
        tick();
        PlotCanvas* c = canvas("hit");
        QCOMPARE(c->emptyNotice().link, QString("Show the last turn"));
        QSignalSpy wanted(m_panel.get(), &PlotsPanel::turnClicked);
        QTest::mouseClick(c, Qt::LeftButton, {}, c->labels().emptyLink.center().toPoint());
        QCOMPARE(wanted.size(), 1);
        QCOMPARE(wanted[0][0].toDouble(), 68.0);
        m_view->setRange(20, 30);  // there is something to see
        tick();
        QVERIFY(c->labels().emptyLink.isEmpty());
    }

    void anEmptyRangeIsNotExported() {
        show();
        QString why;
        int exported = 0;
        connect(m_panel.get(), &PlotsPanel::exportFailed, this,
                [&](const QString& text) { why = text; });
        connect(m_panel.get(), &PlotsPanel::exported, this, [&] { ++exported; });
        m_view->setRange(26, 29);  // between two turns
        tick();
        const QString path = m_sandbox->path("empty.csv");
        m_panel->exportPlot(m_panel->plot("hit"), "csv", path);
        QVERIFY2(why.contains("no data between 00:26 and 00:29"), qPrintable(why));
        QVERIFY(!QFile::exists(path));
        m_view->setRange(20, 29);
        tick();
        m_panel->exportPlot(m_panel->plot("hit"), "csv", path);
        QCOMPARE(exported, 1);
    }
    void dialogsBeginInTheLastFolder() {
        settings().remove("last_folder");
        // The first one begins among the user's files, not where the program was started.
        QVERIFY(QDir::isAbsolutePath(inLastFolder("hit.csv")));
        QVERIFY(inLastFolder("hit.csv").endsWith("/hit.csv"));
        QVERIFY(QFileInfo(inLastFolder("hit.csv")).path() != QDir::currentPath());
        QDir().mkpath(m_sandbox->path("exports"));
        rememberFolder(m_sandbox->path("exports/a.csv"));
        QCOMPARE(inLastFolder("hit.csv"), m_sandbox->path("exports/hit.csv"));
        rememberFolder({});  // nothing was chosen
        QCOMPARE(inLastFolder("hit.csv"), m_sandbox->path("exports/hit.csv"));
        QDir(m_sandbox->path("exports")).removeRecursively();
        QVERIFY(!inLastFolder("hit.csv").startsWith(m_sandbox->path("exports")));
    }
};

QTEST_MAIN(TestRange)
#include "test_workbench_range.moc"
