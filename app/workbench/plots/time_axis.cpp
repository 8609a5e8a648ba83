// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/time_axis.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {
namespace {

constexpr double kClearOfCursor = 44;  // px without times on either side of the cursor

}  // namespace

void drawTimeAxis(QPainter& p, const ViewState& view, double left, double right, double top,
                  double cursor) {
    const auto x = [&](double t) {
        return std::round(left + (t - view.lower()) / view.span() * (right - left));
    };
    const double step = timeStep(view.span(), right - left);
    const int decimals = step < 1 ? 1 : 0;
    for (const double t : ticksIn(std::max(0.0, view.lower()), view.upper(), step)) {
        p.fillRect(QRectF(x(t), top, 1, 4), tone(Tone::Line2));
        if (std::abs(x(t) - x(cursor)) < kClearOfCursor) continue;
        const QString text = clockText(t, decimals);
        const double w = textWidth(type::monoSmall(), text);
        const double most = right + kPlotRight - 3 - w;
        drawText(p, QRectF(std::clamp(x(t) - w / 2, 0.0, most), top + 2, w, 16), Qt::AlignCenter,
                 text, type::monoSmall(), tone(Tone::Text3));
    }
    if (!std::isfinite(cursor) || cursor < view.lower() || cursor > view.upper()) return;
    const QString text = clockText(cursor, 1);
    const double w = std::max(50.0, textWidth(type::monoSmall(), text) + 4);
    const double at = std::clamp(x(cursor) - w / 2, 0.0, right + kPlotRight - w);
    const QRectF plate(std::round(at), top + 2, w, 16);
    fillBox(p, plate, tone(Tone::Accent), Qt::transparent, 2);
    drawText(p, plate, Qt::AlignCenter, text, type::monoSmall(), tone(Tone::OnAccent));
}

TimeAxis::TimeAxis(ViewState* view, QWidget* parent) : QWidget(parent), m_view(view) {
    setFixedHeight(kTimeAxisHeight);
    setAccessibleName("Time since the session began");
    connect(view, &ViewState::rangeChanged, this, qOverload<>(&QWidget::update));
    connect(view, &ViewState::cursorChanged, this, qOverload<>(&QWidget::update));
}

void TimeAxis::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    drawTimeAxis(p, *m_view, kPlotLeft, width() - kPlotRight, 0, m_view->cursor());
}

}  // namespace colibri::ui
