// SPDX-License-Identifier: GPL-3.0-or-later
// The time axis below a column of plots. It stays in view while they scroll; exports draw it into
// the picture.
#pragma once

#include <QWidget>

#include "app/workbench/plots/view_state.h"

class QPainter;

namespace colibri::ui {

constexpr int kTimeAxisHeight = 20;

// Draws ticks and times from `top` down, for an axis rectangle from `left` to `right`, all in px.
// Times that would touch the plate of `cursor` are left out; NaN: no cursor.
void drawTimeAxis(QPainter& p, const ViewState& view, double left, double right, double top,
                  double cursor);

class TimeAxis : public QWidget {
    Q_OBJECT

public:
    explicit TimeAxis(ViewState* view, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseDoubleClickEvent(QMouseEvent*) override { m_view->reset(); }

private:
    ViewState* m_view;
};

}  // namespace colibri::ui
