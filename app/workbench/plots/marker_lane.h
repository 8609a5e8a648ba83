// SPDX-License-Identifier: GPL-3.0-or-later
// The marker lane above the plots: turns as bars, knob changes and notes as flags with their
// measured effect, changes by the engine itself as small tags over the bars. It has the time range
// and the margins of the plots. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/paint.h"
#include "profiler/metrics/snapshot.h"

namespace colibri::ui {

// The effect of a knob change as text and colours; the interval is separate.
struct EffectLook {
    QString text, interval;  // "+18.2 % tok/s", "95 %: 15.1..21.4"
    Tone ink = Tone::Text2, ground = Tone::Bg3, border = Tone::Line2;
    bool figure = false;  // text is a figure, in mono
};
EffectLook effectLook(const Marker& marker);

class MarkerLane : public QWidget {
    Q_OBJECT

public:
    explicit MarkerLane(ViewState* view, QWidget* parent = nullptr);
    void setSnapshot(std::shared_ptr<const Snapshot> snapshot, bool moved = true);
    void setShort(bool on);  // shows effects without their interval
    // What is currently drawn, for tests and accessibility. Lengths are px.
    struct Flag {
        double x;
        QString name, effect;
        QRectF rect;
        EffectLook look;
        QString detail;
        bool automatic = false;  // a change by the engine itself, drawn as a small tag
    };
    std::vector<Flag> flags() const;
    std::optional<std::pair<double, double>> lastTurn() const;  // begin and end, s
    void paint(QPainter& p, bool cursor) const;                 // also used for exports

signals:
    void turnClicked(double from, double to);

protected:
    void paintEvent(QPaintEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    bool event(QEvent*) override;

private:
    struct Turn {
        double from, to;
        QString name;
    };
    std::vector<Turn> turns() const;
    double x(double t) const;
    std::vector<Flag> layOutFlags(std::vector<Flag> users) const;
    std::vector<Flag> layOutAutomatic(std::vector<Flag> automatic) const;
    void paintTurns(QPainter& p) const;

    ViewState* m_view;
    std::shared_ptr<const Snapshot> m_snapshot;
    bool m_short = false;
};

}  // namespace colibri::ui
