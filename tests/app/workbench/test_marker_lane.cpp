// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "plots_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestMarkerLane : public PlotsRig {
    Q_OBJECT

private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }

    void cleanup() {
        drop();
        Theme::get().setMode(Theme::Mode::Dark);
    }

    // Changes by the engine itself look different, and never hide changes of the user.
    void automaticChangesAreQuietAndGiveWay() {
        show();
        MarkerLane* lane = nullptr;
        for (auto* candidate : m_panel->findChildren<MarkerLane*>())
            if (candidate->isVisible()) lane = candidate;
        const auto users = lane->flags();
        QCOMPARE(users.size(), size_t(2));
        const auto autos = [&] {
            int n = 0;
            for (const auto& flag : lane->flags()) n += flag.automatic;
            return n;
        };
        auto snapshot = m_source->editable();
        const auto add = [&](double t) {
            snapshot->markers.push_back({.t = t,
                                         .label = "Prefetch source next_router \u2192 off",
                                         .kind = Marker::Kind::Knob,
                                         .knob = KnobId::PrefetchSource,
                                         .from = 3,
                                         .to = 0,
                                         .undoTo = 3,
                                         .automatic = true,
                                         .reason = "backed off: 80 % late or wasted"});
        };
        add(44.5);  // at a change of the user: both are seen, in rows of their own
        tick();
        QCOMPARE(autos(), 1);
        for (const auto& flag : lane->flags())
            for (const auto& other : users)
                QVERIFY(!flag.automatic || !flag.rect.intersects(other.rect));
        snapshot = m_source->editable();
        std::erase_if(snapshot->markers, [](const Marker& m) { return m.automatic; });
        add(6), add(6.5);
        tick();
        const auto flags = lane->flags();
        QCOMPARE(autos(), 1);
        QVERIFY(flags.front().automatic);
        QCOMPARE(flags.front().name, QString("auto"));
        QCOMPARE(int(flags.front().detail.count("backed off: 80 % late or wasted")), 2);
        for (size_t i = 0; i < users.size(); ++i) QCOMPARE(flags[i + 1].effect, users[i].effect);
        QCOMPARE(spansText(m_panel->figures()->cards()[0].detail), QString("+18.0 % at 00:44"));
    }

    void flagsNameTheirEffect() {
        show();
        const auto flags = m_panel->lane()->flags();
        QCOMPARE(flags.size(), size_t(2));
        QCOMPARE(flags[0].name, QString("threads 1 → 4"));
        QCOMPARE(flags[0].effect, QString("no effect"));
        QCOMPARE(flags[1].effect, QString("+18.0 % tok/s (95 %: 15.0..21.0)"));
        QVERIFY(flags[0].rect.right() <= flags[1].rect.left());
    }

    void collidingFlagsNeverOverlap() {
        show();
        auto snapshot = m_source->editable();
        const Marker last = snapshot->markers.back();
        for (int i = 0; i < 12; ++i) {
            Marker marker = last;
            marker.kind = Marker::Kind::Knob;
            marker.knob = KnobId::LinkLimit;
            marker.label = "limit " + std::to_string(i) + " -> " + std::to_string(i + 1);
            marker.effect = Marker::Effect::Measuring;
            marker.measured = 10;
            marker.needed = 400;
            marker.t = 50 + i;
            snapshot->markers.push_back(marker);
        }
        tick();
        const auto flags = m_panel->lane()->flags();
        QVERIFY(flags.size() < 14);
        for (size_t i = 1; i < flags.size(); ++i)
            QVERIFY(flags[i - 1].rect.right() <= flags[i].rect.left() + 1);
    }

    // A plate with a number is at the time of its changes, and changes by the engine take no room
    // from them.
    void severalChangesAreDrawnAtTheirTime() {
        show();
        auto snapshot = m_source->editable();
        std::erase_if(snapshot->markers,
                      [](const Marker& m) { return m.kind == Marker::Kind::Knob; });
        const auto change = [&](double t, const char* label, bool automatic) {
            Marker marker{.t = t,
                          .label = label,
                          .kind = Marker::Kind::Knob,
                          .knob = KnobId::ExpertCacheSize,
                          .from = 8,
                          .to = 16};
            marker.automatic = automatic;
            snapshot->markers.push_back(marker);
        };
        change(58, "Cache size 8 -> 16", false);
        change(60, "Link limit 25 -> 400", false);
        change(66, "Link limit 400 -> 12 for a while", false);
        for (const double t : {57.0, 59.0, 61.0, 64.0})
            change(t, "Source next_router -> off", true);
        tick();
        const double w = m_panel->lane()->width() - kPlotLeft - kPlotRight;
        bool counted = false;
        for (const auto& flag : m_panel->lane()->flags()) {
            if (!flag.name.startsWith('+')) continue;
            counted = true;
            const double at = kPlotLeft + (flag.name == "+1" ? 60 : 58) / 90.0 * w;
            QVERIFY2(std::abs(flag.rect.left() - at) <= 26, qPrintable(flag.name));
            QVERIFY(flag.detail.contains("8 → 16") || flag.detail.contains("25 → 400"));
        }
        QVERIFY(counted);
    }

    void effectsSpeakWithSignAndInterval() {
        Marker marker;
        marker.effect = Marker::Effect::Known;
        marker.change = -0.06;
        marker.low = -0.09;
        marker.high = -0.03;
        QCOMPARE(effectLook(marker).text, QString("−6.0 % tok/s"));
        QCOMPARE(effectLook(marker).interval, QString("95 %: −9.0..−3.0"));
        QCOMPARE(effectLook(marker).ink, Tone::Error);
        marker.low = -0.02;
        marker.high = 0.03;
        QCOMPARE(effectLook(marker).text, QString("no effect"));
        QCOMPARE(effectLook(marker).interval, QString("95 %: −2.0..+3.0"));
        marker.change = 10.87;  // a percentage of four digits is hard to read
        marker.low = 9.63;
        marker.high = 12.55;
        QCOMPARE(effectLook(marker).text, QString("11.9 × tok/s"));
        QCOMPARE(effectLook(marker).interval, QString("95 %: 10.6..13.6"));
        marker.effect = Marker::Effect::Measuring;
        marker.measured = 212;
        marker.needed = 400;
        QCOMPARE(effectLook(marker).text, QString("measuring, 212 of 400 tokens"));
    }

    void turnBarShowsItsRange() {
        show();
        QSignalSpy spy(m_panel.get(), &PlotsPanel::turnClicked);
        const double w = m_panel->lane()->width() - kPlotLeft - kPlotRight;
        QTest::mouseClick(m_panel->lane(), Qt::LeftButton, {},
                          QPoint(int(kPlotLeft + 45 / 90.0 * w), 12));
        QCOMPARE(spy.size(), 1);
        QCOMPARE(spy[0][0].toDouble(), 31.0);
    }
};

QTEST_MAIN(TestMarkerLane)
#include "test_marker_lane.moc"
