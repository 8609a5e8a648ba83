// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSvgRenderer>
#include <cmath>

#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "plots_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestPlots : public PlotsRig {
    Q_OBJECT

    QPoint pointAt(PlotCanvas* c, double t, double v) {
        return QPointF(c->x(t), c->y(v)).toPoint();
    }

private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }

    void cleanup() {
        drop();
        Theme::get().setMode(Theme::Mode::Dark);
    }

    // ---- arithmetic

    void decimationKeepsExtremesAndGaps() {
        SeriesData data;
        for (int i = 0; i < 20000; ++i) {
            data.t.push_back(i * 0.01);
            data.y.push_back(i >= 8000 && i < 9000 ? std::nan("")
                                                   : std::sin(i * 0.37) + (i == 12345 ? 50 : 0));
        }
        QVector<double> keys, values;
        decimate(data, 0, 200, 300, &keys, &values);
        QVERIFY2(keys.size() <= 2 * 300 + 4, qPrintable(QString::number(keys.size())));
        QVERIFY(std::is_sorted(keys.begin(), keys.end()));
        int gaps = 0;
        double max = 0;
        for (const double v : values) {
            gaps += std::isnan(v);
            if (std::isfinite(v)) max = std::max(max, v);
        }
        QCOMPARE(gaps, 1);
        QVERIFY(max > 49);
        for (qsizetype i = 0; i < keys.size(); ++i)
            QVERIFY(keys[i] < 80 || keys[i] >= 89.99 || std::isnan(values[i]));
    }

    void decimationOfFewPointsIsTheSeries() {
        SeriesData data{{0, 1, 2, 3}, {5, 6, std::nan(""), 8}, ""};
        QVector<double> keys, values;
        decimate(data, 0, 3, 500, &keys, &values);
        QCOMPARE(keys, (QVector<double>{0, 1, 2, 3}));
        QCOMPARE(values[3], 8.0);
        decimate(SeriesData{}, 0, 3, 500, &keys, &values);
        QVERIFY(keys.isEmpty());
    }

    void statsCoverTheVisibleRangeOnly() {
        const SeriesData data{{0, 1, 2, 3, 4}, {100, 2, std::nan(""), 4, 900}, ""};
        const VisibleStats stats = visibleStats(data, 1, 3);
        QCOMPARE(stats.last, 4.0);
        QCOMPARE(stats.min, 2.0);
        QCOMPARE(stats.max, 4.0);
        QCOMPARE(stats.mean, 3.0);
        QVERIFY(std::isnan(visibleStats(data, 2, 2.5).mean));
        QCOMPARE(valueAt(data, 1.2), 2.0);
        QVERIFY(std::isnan(valueAt(data, 2.0)));
        QVERIFY(std::isnan(valueAt(data, 40)));
    }

    void overLimitGivesStretches() {
        const SeriesData data{{0, 1, 2, 3, 4, 5}, {50, 51, 30, std::nan(""), 60, 60}, ""};
        const auto stretches = overLimit(data, 40, 0, 10);
        QCOMPARE(stretches.size(), size_t(2));
        QCOMPARE(stretches[0].from, 0.0);
        QCOMPARE(stretches[0].to, 2.0);
        QCOMPARE(stretches[1].from, 4.0);
    }

    void ticksAreRoundAndFew() {
        for (const double max : {0.013, 0.5, 1.0, 3.0, 7.1, 16.2, 39.8, 70.0, 100.0, 12345.0}) {
            const double step = niceStep(max);
            const auto ticks = ticksIn(0, max, step);
            QVERIFY2(ticks.size() >= 3 && ticks.size() <= 5,
                     qPrintable(QString("%1: step %2").arg(max).arg(step)));
        }
        QCOMPARE(niceStep(100), 25.0);
        QCOMPARE(niceStep(70), 20.0);
        QCOMPARE(niceStep(16.2), 4.0);
        QCOMPARE(timeStep(90, 535), 15.0);
        QCOMPARE(clockText(58.6, 1), QString("00:58.6"));
        QCOMPARE(clockText(59.97, 1), QString("01:00.0"));
        QCOMPARE(clockText(3725, 0), QString("1:02:05"));
    }

    // ---- the panel

    void figuresAndLegendShowTheSnapshot() {
        show();
        QCOMPARE(m_panel->figures()->cards()[0].value, QString("36.4"));
        QCOMPARE(spansText(m_panel->figures()->cards()[0].detail), QString("+18.0 % at 00:44"));
        QCOMPARE(spansText(m_panel->figures()->cards()[1].detail), QString("SLO 40 ms, met"));
        const PlotHeader::Content& hit = m_panel->plot("hit")->header()->content();
        QCOMPARE(hit.entries[0].last, QString("71.3"));
        QCOMPARE(hit.thirdName, QString("mean"));
        QVERIFY(hit.cursorTime.isEmpty());
        const PlotHeader::Content& itl = m_panel->plot("itl")->header()->content();
        QCOMPARE(itl.thirdName, QString("pooled"));
        QVERIFY(itl.entries[0].maxOver);
        QVERIFY(!itl.entries[1].maxOver);
        QCOMPARE(itl.tags[0].text, QString("P99 within SLO"));
    }

    // What stands beside a figure is dropped when it stops being true.
    void comparisonsGoWithTheChangeTheyCompare() {
        show();
        const auto details = [&] {
            tick();
            const auto& cards = m_panel->figures()->cards();
            return spansText(cards[0].detail) + "|" + spansText(cards[2].detail);
        };
        QVERIFY(details().contains(" at 00:") && details().contains("was"));
        const auto next = [&](double now) {  // each redraw needs a moment that has passed
            m_source->editable()->now = now - 1;
            return m_source->editable();
        };
        next(91)->figures.hitRate = std::nan("");
        m_source->editable()->figures.decodeTokS = std::nan("");
        QVERIFY2(!details().contains(" at 00:") && !details().contains("was"),
                 qPrintable(details()));
        next(92)->figures.hitRate = 50;
        m_source->editable()->figures.decodeTokS = 30;
        QVERIFY(details().contains(" at 00:"));
        next(44 + 121);  // long ago
        QVERIFY2(!details().contains(" at 00:") && !details().contains("was"),
                 qPrintable(details()));
        Marker again{.t = 93,
                     .label = "cache 12 -> 16",
                     .kind = Marker::Kind::Knob,
                     .knob = KnobId::ExpertCacheSize,
                     .from = 12,
                     .to = 16};
        next(94)->markers.push_back(again);
        QVERIFY2(!details().contains(" at 00:"), qPrintable(details()));
    }

    void readRateHasTheUnitOfItsSize() {
        show();
        m_panel->setPlotShown("disk", true);
        tick();
        QCOMPARE(canvas("disk")->unit(), QString("GB/s"));
        for (double& y : m_source->editable()->series[size_t(SeriesId::ReadRate)].y) y = 0.0254;
        m_source->editable()->now += 1;
        tick();
        QCOMPARE(canvas("disk")->unit(), QString("MB/s"));
        QCOMPARE(m_panel->plot("disk")->header()->content().unit, QString("MB/s"));
        QCOMPARE(m_panel->plot("disk")->header()->content().entries[0].last, QString("25.4"));
        QVERIFY(canvas("disk")->yAxis->range().upper > 25);
    }

    void pooledColumnIsThePercentileOfRawValues() {
        show();
        const double p99 = m_source->pooled(SessionSource::Pooled::Itl, 0, 90).quantile(0.99) / 1e6;
        QCOMPARE(m_panel->plot("itl")->header()->content().entries[0].third,
                 QString::number(p99, 'f', 1));
    }

    // After a reply the figures are read: they stay, greyed and named as those of the last turn.
    void theFiguresOfTheLastTurnStay() {
        show();
        m_source->setNow(64);  // between two turns
        auto snapshot = m_source->editable();
        snapshot->figuresAt = snapshot->lastActivity = 62.3;
        snapshot->now = 600;
        QCOMPARE(snapshot->running, 0);
        tick();
        const auto& cards = m_panel->figures()->cards();
        QCOMPARE(cards.size(), 5);
        for (const FigureCard& card : cards) {
            QVERIFY2(card.past, qPrintable(card.label));
            QVERIFY2(card.value != "n/a", qPrintable(card.label));
        }
        QCOMPARE(spansText(cards[0].detail), QString("+18.0 % at 00:44"));
        QVERIFY(!spansText(cards[4].detail).contains("waiting"));
        m_source->editable()->running = 1;  // the next one: live figures
        tick();
        QVERIFY(!m_panel->figures()->cards()[0].past);
    }

    void aHandfulOfGapsHasNoP99() {
        show();
        m_source->editable()->figures.itlCount = 1;
        tick();
        QCOMPARE(m_panel->figures()->cards()[1].value, QString("n/a"));
        QCOMPARE(spansText(m_panel->figures()->cards()[1].detail), QString("n = 1, 20 needed"));
    }

    // The names of a legend stay where they are when the pointer enters a plot.
    void theLegendDoesNotRunAway() {
        show();
        PlotHeader* header = m_panel->plot("hit")->header();
        const auto names = [&] {
            return header->grab(QRect(0, 6, header->width() - 14 - 5 * 46, 60)).toImage();
        };
        const QImage before = names();
        m_view->setCursor(58.6);
        QCoreApplication::processEvents();
        QVERIFY(!header->content().cursorTime.isEmpty());
        QCOMPARE(names(), before);
    }

    // The limit's label is not drawn through by its line, nor does it lie on the curve that it
    // limits.
    void theLimitIsLabelledClearOfLineAndCurve() {
        show();
        PlotCanvas* c = canvas("itl");
        for (const double slo : {20.0, 36.0, 40.0, 50.0, 60.0}) {
            m_view->setSlo(slo);
            tick();
            const QRectF label = c->labels().slo;
            if (label.isEmpty()) continue;
            const double line = c->y(slo);
            QVERIFY2(line <= label.top() || line >= label.bottom(),
                     qPrintable(QString::number(slo)));
            QVERIFY(c->area().contains(label.adjusted(1, 1, -1, -1)));
        }
        m_view->setSlo(40);
    }

    void pointerSetsOneCursorForAllPlots() {
        show();
        PlotCanvas* c = canvas("hit");
        hover(c, pointAt(c, 58.6, 50));
        QVERIFY(std::abs(m_view->cursor() - 58.6) < 0.2);
        const PlotHeader::Content& load = m_panel->plot("load")->header()->content();
        QCOMPARE(load.cursorTime, clockText(m_view->cursor(), 1));
        const double v = valueAt(m_source->snapshot()->series[size_t(SeriesId::ExpertLoadP99)],
                                 m_view->cursor());
        QCOMPARE(load.entries[0].cursor, QString::number(v, 'f', 2));
        QEvent leave(QEvent::Leave);
        QApplication::sendEvent(c, &leave);
        QVERIFY(!m_view->hasCursor());
        QVERIFY(m_panel->plot("load")->header()->content().cursorTime.isEmpty());
    }

    void wheelZoomsAroundThePointer() {
        show();
        PlotCanvas* c = canvas("hit");
        const QPoint at = pointAt(c, 30, 50);
        const double before = c->xAxis->pixelToCoord(at.x());
        wheel(c, at, 2);
        QCoreApplication::processEvents();
        QVERIFY(m_view->span() < 70);
        QVERIFY(!m_view->following());
        QVERIFY(std::abs(c->xAxis->pixelToCoord(at.x()) - before) < 0.5);
        QCOMPARE(canvas("itl")->xAxis->range().lower, m_view->lower());  // linked
    }

    void dragPansAndEndFollowsAgain() {
        show();
        m_view->setRange(20, 50);
        PlotCanvas* c = canvas("load");
        drag(c, c->area().center().toPoint(), c->area().center().toPoint() + QPoint(100, 0));
        QVERIFY(m_view->lower() < 20);
        QCOMPARE(std::round(m_view->span()), 30.0);
        m_view->follow();
        QCOMPARE(m_view->upper(), 90.0);
    }

    void shiftDragSelectsARangeAndDoubleClickResets() {
        show();
        PlotCanvas* c = canvas("itl");
        drag(c, pointAt(c, 30, 20), pointAt(c, 60, 20), Qt::ShiftModifier);
        QVERIFY(std::abs(m_view->lower() - 30) < 0.5);
        QVERIFY(std::abs(m_view->upper() - 60) < 0.5);
        QTest::mouseDClick(c, Qt::LeftButton, {}, c->area().center().toPoint());
        QCOMPARE(m_view->span(), ViewState::kDefaultSpan);
        QVERIFY(m_view->following());
    }

    void keysMoveCursorAndRange() {
        show();
        PlotCanvas* c = canvas("hit");
        c->setFocus();
        QTest::keyClick(c, Qt::Key_Left);
        QVERIFY(m_view->hasCursor());
        const double at = m_view->cursor();
        QTest::keyClick(c, Qt::Key_Right);
        QVERIFY(m_view->cursor() > at);
        QTest::keyClick(c, Qt::Key_W);
        QVERIFY(m_view->span() < 90);
        QTest::keyClick(c, Qt::Key_0);
        QVERIFY(m_view->following());
    }

    void sloIsDraggedByItsLabel() {
        show();
        PlotCanvas* c = canvas("itl");
        const QPoint label(int(c->area().right()) - 30, int(c->y(40)) - 8);
        drag(c, label, QPoint(label.x(), int(c->y(30)) - 8));
        QVERIFY(m_view->sloMs() < 38);
        QVERIFY(m_view->sloMs() > 25);
        QVERIFY(m_view->following());  // a drag of the label is not a pan
    }

    void legendClickHidesASeries() {
        show();
        PlotHeader* header = m_panel->plot("hit")->header();
        const QPoint entry(header->width() - 14 - 4 * 46 - 40, 6 + 15 + 7);
        QTest::mouseClick(header, Qt::LeftButton, {}, entry);
        QVERIFY(canvas("hit")->seriesHidden(0));
        QVERIFY(header->content().entries[0].hidden);
        QTest::mouseClick(header, Qt::LeftButton, {}, entry);
        QVERIFY(!canvas("hit")->seriesHidden(0));
    }

    void tooFewSamplesGreyTheP99() {
        show();
        // Enough gaps up to 60 s, few after it: each stretch is drawn by its own n.
        const SeriesData& p99 = m_source->snapshot()->series[size_t(SeriesId::ItlP99)];
        SeriesData counts;
        for (const double t : p99.t) {
            counts.t.push_back(t);
            counts.y.push_back(t < 60 ? 300 : 84);
        }
        m_source->editable()->itlCount = counts;
        tick();
        QVERIFY(!canvas("itl")->sparseAt(50));
        QVERIFY(canvas("itl")->sparseAt(80));
        QCOMPARE(m_panel->plot("itl")->header()->content().tags[0].text,
                 QString("P99 greyed: n = 84 < 200"));
        const auto finiteIn = [&](int graph, double from, double to) {
            int n = 0;
            for (const QCPGraphData& point : *canvas("itl")->graph(graph)->data())
                n += std::isfinite(point.value) && point.key > from && point.key < to;
            return n;
        };
        QVERIFY(finiteIn(0, 45, 55) > 0);
        QCOMPARE(finiteIn(2, 45, 55), 0);
        QCOMPARE(finiteIn(0, 75, 85), 0);
        QVERIFY(finiteIn(2, 75, 85) > 0);
        // Greyed figures are no verdict.
        m_view->setSlo(1);
        tick();
        const PlotHeader::Entry entry = m_panel->plot("itl")->header()->content().entries[0];
        QVERIFY(entry.grey && !entry.over && !entry.maxOver);
        QVERIFY(!entry.thirdGrey &&
                !entry.thirdOver);  // pooled of the whole range, which is enough
        m_view->setSlo(40);
        QCOMPARE(canvas("itl")->graph(0)->pen().color(), tone(seriesTone(2)));
        QCOMPARE(canvas("itl")->graph(2)->pen().color(), tone(Tone::Text3));
        // Another model begins with nothing.
        m_panel->setSource(m_source.get());
        QVERIFY(m_panel->plot("itl")->header()->content().tags.empty() ||
                !m_panel->plot("itl")->header()->content().tags[0].text.contains("84"));
    }

    void themeRecoloursPlotsAtOnce() {
        show();
        PlotCanvas* c = canvas("hit");
        QCOMPARE(c->graph(0)->pen().color(), QColor("#4fa8f0"));
        const QPoint margin = c->mapTo(m_panel.get(), QPoint(2, c->height() / 2));
        const auto ground = [&] { return m_panel->grab().toImage().pixelColor(margin); };
        QCOMPARE(ground(), QColor("#14181b"));
        Theme::get().setMode(Theme::Mode::Light);
        QCoreApplication::processEvents();
        QCOMPARE(c->graph(0)->pen().color(), QColor("#2a72d4"));
        QCOMPARE(ground(), QColor("#ffffff"));
    }

    void unavailableSourceShrinksToAReason() {
        show();
        TimePlot* sm = m_panel->plot("sm");
        QVERIFY(sm->unavailable());
        QCOMPARE(sm->height(), 72);
        QVERIFY(!sm->canvas()->isVisible());
    }

    void hiddenPlotsDoNoWork() {
        show();
        m_panel->setPlotShown("load", false);
        QVERIFY(!m_panel->plot("load")->isVisible());
        const auto before = canvas("load")->graph(0)->data()->size();
        m_source->setNow(30);
        m_view->reset();
        tick();
        QCOMPARE(canvas("load")->graph(0)->data()->size(), before);
        m_panel->setPlotShown("load", true);
        tick();
        QVERIFY(canvas("load")->graph(0)->data()->size() != before);
    }

    void drawnPointsAreBounded() {
        show();
        auto snapshot = m_source->editable();
        SeriesData& data = snapshot->series[size_t(SeriesId::HitRate)];
        data.t.clear();
        data.y.clear();
        for (int i = 0; i < 360000; ++i) {
            data.t.push_back(i * 0.01);
            data.y.push_back(50 + 40 * std::sin(i * 0.7));
        }
        snapshot->now = 3600;
        m_view->advance(3600);
        m_view->setSpan(3600);
        tick();
        QVERIFY(canvas("hit")->graph(0)->data()->size() <= 2 * canvas("hit")->width());
    }

    // ---- experts

    void expertsMapReadsOutACell() {
        show();
        ExpertsMap* map = m_panel->experts();
        QCOMPARE(map->cellText(7, 33),
                 QString("layer 7, expert 33: loading, recent use %1")
                     .arg(double(m_source->snapshot()->heat[7 * 64 + 33]), 0, 'f', 2));
        QVERIFY(map->cellText(99, 0).isEmpty());
        const QImage image = map->grab().toImage();
        QCOMPARE(image.pixelColor(map->cellRect(7, 33).center()), tone(Tone::S2));
        // Cells cover the map without overlap.
        for (int e = 1; e < 64; ++e)
            QVERIFY(map->cellRect(3, e).left() > map->cellRect(3, e - 1).right());
    }

    // ---- exports

    // Several requests at once: the card says that its figure is that of one of them.
    void theDecodeCardSaysWhenItIsOneOfSeveral() {
        show();
        auto snapshot = m_source->editable();
        for (double& y : snapshot->series[size_t(SeriesId::MeanBatch)].y) y = 4;
        snapshot->figures.allTokS = 145.6;
        tick();
        QCOMPARE(spansText(m_panel->figures()->cards()[0].detail), QString("each; 145.6 in all"));
    }

    void csvHoldsTheVisibleRangeWithUnits() {
        show();
        m_view->setRange(40, 60);
        tick();
        const QStringList lines = m_panel->plot("hit")->csv().split('\n', Qt::SkipEmptyParts);
        QCOMPARE(lines[0], QString("# Hit rate (%): resident at first touch, 10 s window"));
        const int head = int(lines.indexOf("time_s,resident_percent,by_prefetch_percent"));
        QVERIFY(head > 0);
        const QString about = lines.mid(0, head).join('\n');
        QVERIFY2(about.contains("# model: Wren-14B-A1.3B, q4_0"), qPrintable(about));
        QVERIFY2(about.contains("# knobs now: cache size 12"), qPrintable(about));
        QVERIFY2(about.contains("# change at 44.000: cache 8 -> 12"), qPrintable(about));
        QVERIFY2(about.contains(QDate::currentDate().toString(Qt::ISODate)), qPrintable(about));
        QCOMPARE(lines.size(), head + 1 + 201);
        QCOMPARE(lines[head + 1].section(',', 0, 0), QString("40.000"));
        QVERIFY(lines[head + 1].section(',', 1, 1).toDouble() > 50);
        m_view->setRange(24.5, 30.5);  // between two turns: gaps are empty fields
        QVERIFY(m_panel->plot("hit")->csv().contains("27.000,,\n"));
    }

    void imagesAreWritten() {
        show();
        QSignalSpy ok(m_panel.get(), &PlotsPanel::exported);
        QSignalSpy bad(m_panel.get(), &PlotsPanel::exportFailed);
        const QString png = m_sandbox->path("hit.png"), svg = m_sandbox->path("hit.svg");
        m_panel->exportPlot(m_panel->plot("hit"), "png", png);
        m_panel->exportPlot(m_panel->plot("hit"), "svg", svg);
        m_panel->exportPlot(m_panel->plot("hit"), "csv", "/nonexistent/folder/hit.csv");
        QCOMPARE(ok.size(), 2);
        QCOMPARE(bad.size(), 1);
        const QImage image(png);
        QVERIFY(image.width() >= 2000 &&
                image.height() >= 800);  // not as small as the screen's plot
        bool blue = false;
        for (int y = 0; y < image.height() && !blue; ++y)
            for (int x = 0; x < image.width() && !blue; ++x)
                blue = image.pixelColor(x, y).blue() > 200 && image.pixelColor(x, y).red() < 120;
        QVERIFY(blue);  // the curve is in it
        // Its size is that of the picture, whatever the window's; nothing of the pointer is in it.
        m_view->setCursor(50);
        QCOMPARE(m_panel->plot("hit")->image().size(), image.size());
        m_panel->exportPlot(m_panel->plot("hit"), "png", png);
        const QImage pointed(png);
        const QColor accent = tone(Tone::Accent);
        int cursor = 0;
        for (int y = 0; y < pointed.height() / 2; ++y)
            for (int x = 0; x < pointed.width(); ++x) cursor += pointed.pixelColor(x, y) == accent;
        QCOMPARE(cursor, 0);
        QVERIFY(m_view->hasCursor());
        QVERIFY(m_panel->plot("hit")->canvas()->height() < 320);  // the screen's plot is as it was
        QVERIFY(QSvgRenderer(svg).isValid());
        QFile file(svg);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QVERIFY(file.readAll().contains("<path"));
    }

    // ---- sizes

    void narrowAndWideArrangements() {
        show();
        m_panel->setWindowClass(WindowClass::Small);
        QVERIFY(m_panel->plot("hit")->isVisibleTo(m_panel.get()));
        QVERIFY(m_panel->plot("itl")->isVisibleTo(m_panel.get()));
        QVERIFY(!m_panel->plot("load")->isVisibleTo(m_panel.get()));
        QCOMPARE(m_panel->plot("hit")->header()->height(), 28);
        QCOMPARE(m_panel->figures()->height(), 55);
        m_panel->setWindowClass(WindowClass::Large);
        for (const char* key : {"hit", "load", "itl", "rate", "disk", "memory"})
            QVERIFY(m_panel->plot(key)->isVisibleTo(m_panel.get()));
        m_panel->setWindowClass(WindowClass::Normal);
        m_panel->resize(615, 636);
        QCoreApplication::processEvents();
        QVERIFY(!m_panel->experts()->isVisibleTo(m_panel.get()));
        QVERIFY(m_panel->timeAxis()->isVisibleTo(m_panel.get()));
    }
};

QTEST_MAIN(TestPlots)
#include "test_workbench_plots.moc"
