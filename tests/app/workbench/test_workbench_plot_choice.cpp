// SPDX-License-Identifier: GPL-3.0-or-later
// The choice of plots, and what those of prefetch, reads and queue tell beside their lines.
#include <QMenu>
#include <cmath>

#include "plots_rig.h"

using namespace colibri;
using namespace colibri::ui;

class PaintCounter : public QObject {
public:
    QHash<QObject*, int> paints;
    bool eventFilter(QObject* object, QEvent* event) override {
        if (event->type() == QEvent::Paint) ++paints[object];
        return false;
    }
};

class TestPlotChoice : public PlotsRig {
    Q_OBJECT


private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }

    void cleanup() { drop(); }

    // What one arrangement shows is chosen in its menu and found again; the others keep theirs.
    void plotsAreChosenInTheMenuAndRemembered() {
        show();
        QMenu menu;
        m_panel->fillPlotsMenu(&menu);
        QStringList shown, hidden;
        QAction* queue = nullptr;
        for (QAction* action : menu.actions()) {
            if (!action->isCheckable()) continue;
            (action->isChecked() ? shown : hidden) << action->text();
            if (action->text() == "Queue") queue = action;
        }
        QCOMPARE(shown, (QStringList{"Hit rate", "Expert load", "ITL", "SM utilisation", "Experts map"}));
        QCOMPARE(hidden, (QStringList{"Decode rate", "Read", "Memory", "Stall", "KV cache", "Queue",
                                      "Prefetch"}));
        QVERIFY(queue);
        queue->trigger();
        QVERIFY(m_panel->plot("queue")->isVisible());
        QVERIFY(canvas("queue")->axisVisible());
        m_panel->setDensity(PlotsPanel::Density::Large, 1440);
        QVERIFY(!m_panel->plotShown("queue"));
        PlotsPanel again(m_view.get());
        again.setDensity(PlotsPanel::Density::Normal, 900);
        QVERIFY(again.plotShown("queue") && again.plotShown("hit"));
        again.resetShown();
        QVERIFY(!PlotsPanel(m_view.get()).plotShown("queue"));
    }

    // The map leaves first; then the plots scroll, and the lane keeps their width.
    void plotsThatDoNotFitScroll() {
        show();
        QVERIFY(m_panel->experts()->isVisible());
        for (const PlotSpec& spec : plotSpecs()) m_panel->setPlotShown(spec.key, true);
        tick();
        QCoreApplication::processEvents();
        QVERIFY(!m_panel->experts()->isVisible());
        for (const PlotSpec& spec : plotSpecs()) {
            if (spec.key == "sm") continue;
            QVERIFY2(m_panel->plot(spec.key)->height() >= 96, qPrintable(spec.key));
        }
        QCOMPARE(m_panel->lane()->width(), m_panel->plot("hit")->width());
    }

    // ---- plots of prefetch, queue, reads, stall

    void prefetchTellsWhatBecameOfItsReads() {
        show();
        m_panel->setPlotShown("prefetch", true);
        tick();
        const auto content = [&] { return m_panel->plot("prefetch")->header()->content(); };
        QCOMPARE(content().definition,
                 QString("read ahead, by outcome, 2 s, by next_router"));
        QCOMPARE(content().entries.size(), size_t(4));
        QCOMPARE(content().tags[0].text, QString("65 % useful"));   // 1 of 1 + 0.21 + 0.34
        const auto issued = &m_source->snapshot()->series[size_t(SeriesId::PrefetchIssued)];
        QCOMPARE(content().entries[3].last, QString::number(issued->y.back(), 'f', 1));
        m_source->limitEffective(KnobId::PrefetchSource, 0, "backed off: 72 % late or wasted in the last 256");
        m_source->editable();
        tick();
        QCOMPARE(content().tags[0].text, QString("backed off"));
        QVERIFY(content().definition.endsWith("next_router, 72 % late or wasted in the last 256"));
        m_source->setKnob(KnobId::PrefetchSource, 0);
        m_source->editable();
        tick();
        QCOMPARE(content().tags[0].text, QString("off"));
        QCOMPARE(canvas("prefetch")->emptyReason(), QString("prefetch is off"));
    }

    void readsStandAgainstTheMeasuredRoof() {
        show();
        m_panel->setPlotShown("disk", true);
        tick();
        const auto definition = [&] { return m_panel->plot("disk")->header()->content().definition; };
        QCOMPARE(canvas("disk")->bound(), 6.8);
        QVERIFY(!canvas("disk")->boundHard());
        QCOMPARE(canvas("disk")->boundLabel(), QString("measured roof 6.80 GB/s"));
        QCOMPARE(spansText(m_panel->figures()->cards()[3].detail), QString("of 6.80 GB/s"));
        m_source->setKnob(KnobId::LinkLimit, 2500);
        m_source->editable();
        tick();
        QCOMPARE(canvas("disk")->bound(), 2.5);
        QVERIFY(definition().endsWith(", roof 6.80 GB/s"));
        m_source->machine = {.reason = "not measured"};
        m_source->setKnob(KnobId::LinkLimit, 0);
        m_source->editable();
        tick();
        QVERIFY(std::isnan(canvas("disk")->bound()));
        QVERIFY(definition().endsWith("roof n/a: not measured"));
    }

    void queueIsDrawnInSteps() {
        show();
        m_panel->setPlotShown("queue", true);
        tick();
        QCOMPARE(canvas("queue")->graph(0)->lineStyle(), QCPGraph::lsStepLeft);
        QCOMPARE(canvas("queue")->graph(1)->lineStyle(), QCPGraph::lsLine);
        QCOMPARE(m_panel->plot("queue")->header()->content().entries[0].max, QString("2"));
        QCOMPARE(canvas("queue")->yAxis->range().upper, 4.0);      // whole requests at the ticks
    }

    // One repaint for one piece of news, whether or not anything runs.
    void aTickRepaintsAPlotOnce() {
        show();
        for (const int active : {0, 1}) {
            m_source->active = active;
            m_source->editable();
            tick();
            QTest::qWait(50);                // what showing the window has set off
            m_source->editable();
            PaintCounter counter;
            for (const char* key : {"hit", "load", "itl"}) {
                canvas(key)->installEventFilter(&counter);
                m_panel->plot(key)->header()->installEventFilter(&counter);
            }
            tick();
            QCoreApplication::processEvents();
            for (const char* key : {"hit", "load", "itl"}) {
                QCOMPARE(counter.paints[canvas(key)], 1);
                QCOMPARE(counter.paints[m_panel->plot(key)->header()], 1);
            }
        }
    }
};

QTEST_MAIN(TestPlotChoice)
#include "test_workbench_plot_choice.moc"
