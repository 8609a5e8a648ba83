// SPDX-License-Identifier: GPL-3.0-or-later
// The lane above the plots: turns as bars, knob changes and notes as flags with their measured
// effect; over the bars, quietly, what the engine changed by itself. Shares the plots' time range
// and margins.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/paint.h"
#include "profiler/metrics/snapshot.h"

namespace colibri::ui {

// The second plate of a knob marker: words, colours, and the interval apart.
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
    void setShort(bool on);  // effects without interval
    // What is drawn now, for tests and accessibility.
    struct Flag {
        double x;
        QString name, effect;
        QRectF rect;
        EffectLook look;
        QString detail;
        bool automatic = false;  // the engine's own doing: a quiet tag, "auto"
    };
    std::vector<Flag> flags() const;
    std::optional<std::pair<double, double>> lastTurn() const;  // from, to
    void paint(QPainter& p, bool cursor) const;                 // also into an export

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
    std::vector<Flag> placed(std::vector<Flag> users) const;
    std::vector<Flag> placedAutomatic(std::vector<Flag> automatic) const;
    void paintTurns(QPainter& p) const;

    ViewState* m_view;
    std::shared_ptr<const Snapshot> m_snapshot;
    bool m_short = false;
};

}  // namespace colibri::ui
