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
        QCOMPARE(shown,
                 (QStringList{"Hit rate", "Expert load", "ITL", "SM utilisation", "Experts map"}));
        QCOMPARE(hidden, (QStringList{"Decode rate", "Read", "Memory", "Stall", "KV cache", "Queue",
                                      "Prefetch"}));
        QVERIFY(queue);
        queue->trigger();
        QVERIFY(m_panel->plot("queue")->isVisible());
        m_panel->setWindowClass(WindowClass::Large);
        QVERIFY(!m_panel->plotShown("queue"));
        PlotsPanel again(m_view.get());
        again.setWindowClass(WindowClass::Normal);
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
            QVERIFY2(canvas(qPrintable(spec.key))->height() >= 96, qPrintable(spec.key));
        }
        QCOMPARE(m_panel->lane()->width(), m_panel->plot("hit")->width());
        QCOMPARE(m_panel->timeAxis()->width(), m_panel->plot("hit")->width());
    }

    // Four live plots at 1440x900: what is n/a and the map make room; the axis of time stays in
    // view.
    void fourPlotsAreEachTallEnoughToBeRead() {
        show();
        QVERIFY(m_panel->plot("sm")->isVisible() && m_panel->experts()->isVisible());
        m_panel->setPlotShown("prefetch", true);
        tick();
        QCoreApplication::processEvents();
        QVERIFY(!m_panel->experts()->isVisible());
        QVERIFY(!m_panel->plot("sm")->isVisible());
        for (const char* key : {"hit", "load", "itl", "prefetch"}) {
            QVERIFY2(canvas(key)->height() >= 96, key);
            const QRect seen = canvas(key)->visibleRegion().boundingRect();
            QVERIFY2(seen.height() == canvas(key)->height(), key);  // nothing to scroll for
        }
        for (const char* key : {"rate", "disk", "memory", "queue", "stall"})
            m_panel->setPlotShown(key, true);
        tick();
        QCoreApplication::processEvents();
        const QRect axis(m_panel->timeAxis()->mapTo(m_panel.get(), QPoint()),
                         m_panel->timeAxis()->size());
        QVERIFY(m_panel->timeAxis()->isVisible() && m_panel->rect().contains(axis));
        m_panel->setPlotShown("experts", true);
        QMenu menu;
        m_panel->fillPlotsMenu(&menu);
        QStringList titles;
        for (QAction* action : menu.actions()) titles << action->text();
        QVERIFY2(titles.contains("Experts map (no room: hide a plot)"),
                 qPrintable(titles.join('|')));
    }

    // From 1280 to 1439 px the panel has room for four cards and the short legend.
    void narrowPanelsHaveFourCards() {
        show();
        QCOMPARE(m_panel->figures()->mostShown(), 5);
        m_panel->resize(456, 656);
        QCoreApplication::processEvents();
        QCOMPARE(m_panel->figures()->mostShown(), 4);
        const QVector<FigureCard>& cards = m_panel->figures()->cards();
        const double room = 456.0 / 4 - 15;
        for (int i = 0; i < 4; ++i)
            QVERIFY2(spansWidth(cards[i].detail) <= room, qPrintable(spansText(cards[i].detail)));
    }

    // A model without experts shows what tells of it, and one line for the rest.
    void aDenseModelHasNoPlotsOfExperts() {
        show();
        m_source->setDense();
        m_panel->setSource(m_source.get());
        tick();
        QCoreApplication::processEvents();
        for (const char* key : {"hit", "load", "prefetch", "stall", "disk"})
            QVERIFY2(!m_panel->plot(key)->isVisible(), key);
        for (const char* key : {"rate", "itl", "memory"})
            QVERIFY2(m_panel->plot(key)->isVisible(), key);
        QVERIFY(!m_panel->experts()->isVisible());
        QStringList labels, titles;
        for (const FigureCard& card : m_panel->figures()->cards()) labels << card.label;
        QCOMPARE(labels, (QStringList{"Decode", "ITL P99", "Memory"}));
        QMenu menu;
        m_panel->fillPlotsMenu(&menu);
        for (QAction* action : menu.actions()) titles << action->text();
        QVERIFY(!titles.contains("Hit rate") && !titles.contains("Experts map"));
        int lines = 0;
        for (QWidget* widget : m_panel->findChildren<QWidget*>())
            lines +=
                widget->isVisible() && widget->accessibleName().startsWith("This model is dense");
        QCOMPARE(lines, 1);
    }

    // ---- plots of prefetch, queue, reads, stall

    void prefetchShowsTheOutcomesOfItsReads() {
        show();
        m_panel->setPlotShown("prefetch", true);
        tick();
        const auto content = [&] { return m_panel->plot("prefetch")->header()->content(); };
        QCOMPARE(content().definition, QString("read ahead, by outcome, 2 s, by next_router"));
        QCOMPARE(content().entries.size(), size_t(4));
        QCOMPARE(content().tags[0].text, QString("65 % useful"));  // 1 of 1 + 0.21 + 0.34
        const auto issued = &m_source->snapshot()->series[size_t(SeriesId::PrefetchIssued)];
        QCOMPARE(content().entries[3].last, QString::number(issued->y.back(), 'f', 1));
        m_source->limitEffective(KnobId::PrefetchSource, 0,
                                 "backed off: 72 % late or wasted in the last 256");
        m_source->editable();
        tick();
        QCOMPARE(content().tags[0].text, QString("backed off"));
        QVERIFY(content().definition.endsWith("next_router, 72 % late or wasted in the last 256"));
        m_source->setKnob(KnobId::PrefetchSource, 0);
        m_source->editable();
        tick();
        QCOMPARE(content().tags[0].text, QString("off"));
        QCOMPARE(canvas("prefetch")->emptyNotice().reason, QString("prefetch is off"));
    }

    void readsAreComparedWithTheMeasuredLimit() {
        show();
        m_panel->setPlotShown("disk", true);
        tick();
        const auto definition = [&] {
            return m_panel->plot("disk")->header()->content().definition;
        };
        QCOMPARE(canvas("disk")->bound().value, 6.8);
        QVERIFY(!canvas("disk")->bound().hard);
        QCOMPARE(canvas("disk")->bound().label, QString("measured limit 6.80 GB/s"));
        QCOMPARE(spansText(m_panel->figures()->cards()[3].detail), QString("of 6.80 GB/s"));
        m_source->setKnob(KnobId::LinkLimit, 2500);
        m_source->editable();
        tick();
        QCOMPARE(canvas("disk")->bound().value, 2.5);
        QVERIFY(definition().endsWith(", limit 6.80 GB/s"));
        m_source->machine = {.reason = "not measured"};
        m_source->setKnob(KnobId::LinkLimit, 0);
        m_source->editable();
        tick();
        QVERIFY(std::isnan(canvas("disk")->bound().value));
        QVERIFY(definition().endsWith("limit n/a: not measured"));
    }

    void queueIsDrawnInSteps() {
        show();
        m_panel->setPlotShown("queue", true);
        tick();
        QCOMPARE(canvas("queue")->graph(0)->lineStyle(), QCPGraph::lsStepLeft);
        QCOMPARE(canvas("queue")->graph(1)->lineStyle(), QCPGraph::lsLine);
        QCOMPARE(m_panel->plot("queue")->header()->content().entries[0].max, QString("2"));
        QCOMPARE(canvas("queue")->yAxis->range().upper, 4.0);  // whole requests at the ticks
    }

    // Paused, or idle with nothing new in view: no widget of the panel is painted again.
    void nothingIsRepaintedWhenNothingChanged() {
        show();
        for (const bool paused : {false, true}) {
            m_source->setNow(64);  // between two turns
            m_source->editable()->lastActivity = 62.3;
            m_view->setPaused(false);
            m_view->advance(64, 62.3);
            for (int i = 0; i < 10; ++i) {  // what the end of the turn has set off
                m_source->editable()->lastActivity = 62.3;
                m_view->advance(m_source->snapshot()->now, 62.3);
                if (i == 8) m_view->setPaused(paused);
                m_panel->tick(m_source->snapshot());
                m_panel->showFigures(m_source->snapshot());
                QTest::qWait(10);
            }
            PaintCounter counter;
            for (QWidget* widget : m_panel->findChildren<QWidget*>())
                widget->installEventFilter(&counter);
            for (int i = 0; i < 10; ++i) {
                m_source->editable()->lastActivity = 62.3;
                m_view->advance(m_source->snapshot()->now, 62.3);
                m_panel->tick(m_source->snapshot());
                m_panel->showFigures(m_source->snapshot());
                QCoreApplication::processEvents();
            }
            int paints = 0;
            QString who;
            for (auto it = counter.paints.begin(); it != counter.paints.end(); ++it) {
                const QString name = it.key()->metaObject()->className();
                // "paused, 00:21 newer" in the heads, and what lies under them, goes on.
                const bool drawn = name.endsWith("PlotCanvas") || name.endsWith("MarkerLane") ||
                                   name.endsWith("TimeAxis") || name.endsWith("FiguresRow") ||
                                   name.endsWith("ExpertsMap");
                if (paused && !drawn) continue;
                paints += it.value();
                who += QString(it.key()->metaObject()->className()) + " ";
            }
            QVERIFY2(paints == 0, qPrintable(who));
        }
    }

    // One repaint for one piece of news.
    void aTickRepaintsAPlotOnce() {
        show();
        m_source->active = 1;
        tick();
        QTest::qWait(50);  // what showing the window has set off
        auto snapshot = m_source->editable();
        for (SeriesData& data : snapshot->series) {
            if (data.t.empty()) continue;
            data.t.push_back(snapshot->now);
            data.y.push_back(data.y.back() + 3);
        }
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
};

QTEST_MAIN(TestPlotChoice)
#include "test_workbench_plot_choice.moc"
