// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_layers.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/time_axis.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

void vertical(QPainter* p, double x, double top, double bottom, const QColor& color) {
    p->fillRect(QRectF(std::round(x), top, 1, bottom - top), color);
}

void horizontal(QPainter* p, double left, double right, double y, const QColor& color) {
    p->fillRect(QRectF(left, std::round(y), right - left, 1), color);
}

void dashed(QPainter* p, const QPointF& from, const QPointF& to, const QColor& color, double on,
            double off) {
    QPen pen(color, 1, Qt::CustomDashLine, Qt::FlatCap);
    pen.setDashPattern({on, off});
    p->setRenderHint(QPainter::Antialiasing, false);
    p->setPen(pen);
    p->drawLine(from, to);
}

// Text on a plate, so that lines behind it do not cross it.
void plateText(QPainter* p, const QRectF& area, double right, double baseline, const QString& text,
               const QColor& ink, const QColor& ground) {
    const double w = textWidth(type::caption(), text);
    QRectF plate(right - w - 3, baseline - 11, w + 6, 15);
    plate.moveTop(std::clamp(plate.top(), area.top() - 6, area.bottom() - 15));
    p->fillRect(plate, ground);
    drawText(*p, plate, Qt::AlignCenter, text, type::caption(), ink);
}

QString tickText(double v, double step) {
    int decimals = 0;
    for (double s = step; decimals < 3 && std::abs(s - std::round(s)) > 1e-6; s *= 10) ++decimals;
    return str(formatFixed(v, decimals));
}

}  // namespace

BackLayer::BackLayer(PlotCanvas* canvas, const QString& layer)
    : QCPLayerable(canvas, layer), m_canvas(canvas) {}

void BackLayer::draw(QCPPainter* p) {
    const QRectF area = m_canvas->area();
    const ViewState* view = m_canvas->view();
    const double bottom = area.bottom();
    for (const double t :
         ticksIn(std::max(0.0, view->lower()), view->upper(), timeStep(view->span(), area.width())))
        vertical(p, m_canvas->x(t), area.top(), bottom, tone(Tone::Line1));

    const double max = m_canvas->yAxis->range().upper;
    const double step = niceStep(max);
    std::vector<double> ticks = ticksIn(0, max, step);
    const bool sparse = area.height() < 70;
    for (size_t i = 0; i < ticks.size(); ++i) {
        if (sparse && i % 2) continue;
        const double y = std::round(m_canvas->y(ticks[i]));
        horizontal(p, area.left(), area.right() + 1, y, tone(Tone::Line1));
        if (!m_canvas->hasVisibleData()) continue;
        drawText(*p, QRectF(0, y - 8, area.left() - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                 tickText(ticks[i], step), type::monoSmall(), tone(Tone::Text3));
    }
    horizontal(p, area.left(), area.right() + 1, m_canvas->y(0), tone(Tone::Line2));

    const Snapshot* snapshot = m_canvas->snapshot();
    if (!snapshot) return;
    if (m_canvas->spec().slo) {
        const double slo = view->sloMs();
        if (slo < max) {
            const double y = std::round(m_canvas->y(slo)) + 0.5;
            dashed(p, {area.left(), y}, {area.right() + 1, y}, tone(Tone::Error), 6, 3);
        }
        if (const SeriesData* series = m_canvas->data(0)) {
            for (const Stretch& s : overLimit(*series, slo, view->lower(), view->upper())) {
                const double from = std::max(area.left(), m_canvas->x(s.from));
                const double to = std::min(area.right() + 1, m_canvas->x(s.to));
                p->fillRect(QRectF(from, m_canvas->y(0) - 3, std::max(1.0, to - from), 3),
                            tone(Tone::Error));
            }
        }
    }
    if (const PlotBound bound = m_canvas->bound(); bound.value < max) {
        const double y = std::round(m_canvas->y(bound.value)) + 0.5;
        if (bound.hard)
            dashed(p, {area.left(), y}, {area.right() + 1, y}, tone(Tone::Error), 6, 3);
        else
            dashed(p, {area.left(), y}, {area.right() + 1, y}, tone(Tone::Text3), 2, 3);
    }
    for (const Marker& marker : snapshot->markers) {
        if (marker.kind == Marker::Kind::TurnStart || marker.kind == Marker::Kind::TurnEnd)
            continue;
        if (marker.t < view->lower() || marker.t > view->upper()) continue;
        const double x = std::round(m_canvas->x(marker.t)) + 0.5;
        if (marker.automatic)
            dashed(p, {x, 0}, {x, bottom}, tone(Tone::Line2), 1, 3);
        else
            dashed(p, {x, 0}, {x, bottom}, tone(Tone::Text3), 2, 2);
    }
}

FrontLayer::FrontLayer(PlotCanvas* canvas, const QString& layer)
    : QCPLayerable(canvas, layer), m_canvas(canvas) {}

void FrontLayer::draw(QCPPainter* p) {
    const QRectF area = m_canvas->area();
    const ViewState* view = m_canvas->view();
    const PlotCanvas::Labels labels = m_canvas->labels();
    if (m_canvas->snapshot() && !labels.slo.isEmpty()) {
        // Nearly opaque, so that neither its line nor the curve crosses the text.
        p->fillRect(labels.slo, withAlpha(tone(Tone::Plot), 0.85));
        drawText(*p, labels.slo, Qt::AlignCenter, labels.sloText, type::caption(),
                 tone(Tone::Error));
    }
    const PlotBound bound = m_canvas->bound();
    if (m_canvas->hasVisibleData() && bound.value < m_canvas->yAxis->range().upper)
        plateText(p, area, area.right() - 6, std::round(m_canvas->y(bound.value)) - 4, bound.label,
                  tone(bound.hard ? Tone::Error : Tone::Text3), tone(Tone::Plot));
    if (!m_canvas->hasVisibleData()) {
        const PlotCanvas::EmptyNotice& notice = m_canvas->emptyNotice();
        p->fillRect(labels.emptyPlate, tone(Tone::Plot));
        drawText(*p, labels.emptyPlate.adjusted(8, 0, 0, 0), Qt::AlignVCenter,
                 "No data: " + notice.reason, type::caption(), tone(Tone::Text2));
        if (!labels.emptyLink.isEmpty())
            drawText(*p, labels.emptyLink, Qt::AlignVCenter, notice.link, type::caption(),
                     tone(Tone::Accent));
    }
    // The end of the data while paused, or the right edge if the end is further right.
    if (view->paused() && !m_canvas->drawingExport() && view->shownEnd() >= view->lower())
        vertical(p, std::min(area.right(), m_canvas->x(view->shownEnd())), 0, area.bottom(),
                 tone(Tone::Warn));
}

OverlayLayer::OverlayLayer(PlotCanvas* canvas, const QString& layer)
    : QCPLayerable(canvas, layer), m_canvas(canvas) {}

void OverlayLayer::drawCursor(QCPPainter* p) {
    const QRectF area = m_canvas->area();
    const ViewState* view = m_canvas->view();
    const double t = view->cursor();
    if (t < view->lower() || t > view->upper()) return;
    const double x = std::round(m_canvas->x(t));
    vertical(p, x, 0, m_canvas->height(), tone(Tone::Accent));
    const int count = int(m_canvas->spec().series.size());
    p->setRenderHint(QPainter::Antialiasing, true);
    for (int i = count - 1; i >= 0; --i) {
        const SeriesData* series = m_canvas->data(i);
        if (!series || m_canvas->seriesHidden(i)) continue;
        const double v = valueAt(*series, t, m_canvas->cursorReach()) * m_canvas->factor();
        if (!std::isfinite(v)) continue;
        const int color = m_canvas->spec().series[size_t(i)].color;
        p->setPen(QPen(tone(Tone::Plot), 1.5));
        p->setBrush(i == 0 && m_canvas->sparseAt(t) ? tone(Tone::Text3) : tone(seriesTone(color)));
        p->drawEllipse(QPointF(x + 0.5, m_canvas->y(v)), 3, 3);
    }
    p->setRenderHint(QPainter::Antialiasing, false);
    const int hovered = m_canvas->hovered();
    if (hovered >= 0 && m_canvas->data(hovered)) {
        const PlotSeries& series = m_canvas->spec().series[size_t(hovered)];
        const double v =
            valueAt(*m_canvas->data(hovered), t, m_canvas->cursorReach()) * m_canvas->factor();
        const QString text =
            QString("%1 %2 %3, %4")
                .arg(series.name(), str(formatFixed(v, series.decimals < 0 ? 1 : series.decimals)),
                     m_canvas->unit(), clockText(t, 1));
        const double w = textWidth(type::monoSmall(), text) + 10;
        const double left = x - 10 - w > area.left() ? x - 10 - w : x + 10;
        const QRectF plate(left, std::clamp(m_canvas->y(v) - 25, 1.0, area.bottom() - 18), w, 17);
        fillBox(*p, plate, tone(Tone::Bg3), tone(Tone::Line2), 2);
        drawText(*p, plate, Qt::AlignCenter, text, type::monoSmall(), tone(Tone::Text1));
    }
}

// What comes after the playhead of a recorded session is drawn fainter, and the playhead stays
// visible while the cursor is elsewhere.
void OverlayLayer::drawPlayhead(QCPPainter* p) {
    const QRectF area = m_canvas->area();
    const ViewState* view = m_canvas->view();
    const double x = std::round(m_canvas->x(view->playhead()));
    const double left = std::max(area.left(), x + 1);
    p->setRenderHint(QPainter::Antialiasing, false);
    if (left < area.right() + 1)
        p->fillRect(QRectF(left, area.top(), area.right() + 1 - left, area.height()),
                    withAlpha(tone(Tone::Plot), 0.5));
    if (const PlotCanvas::Labels labels = m_canvas->labels();
        m_canvas->snapshot() && labels.slo.right() > left)
        drawText(*p, labels.slo, Qt::AlignCenter, labels.sloText, type::caption(),
                 tone(Tone::Error));
    if (x >= area.left() && x <= area.right() && view->cursor() != view->playhead())
        vertical(p, x, 0, m_canvas->height(), withAlpha(tone(Tone::Accent), 0.6));
}

void OverlayLayer::draw(QCPPainter* p) {
    if (m_canvas->drawingExport()) {
        const QRectF area = m_canvas->area();
        return drawTimeAxis(*p, *m_canvas->view(), area.left(), area.right() + 1,
                            std::round(m_canvas->y(0)) + 1, std::nan(""));
    }
    if (m_canvas->view()->hasPlayhead()) drawPlayhead(p);
    if (!m_canvas->m_box.isNull()) {
        const QRectF box = m_canvas->m_box;
        p->fillRect(box, withAlpha(tone(Tone::Accent), 0.08));
        vertical(p, box.left(), box.top(), box.bottom(), tone(Tone::Accent));
        vertical(p, box.right(), box.top(), box.bottom(), tone(Tone::Accent));
    }
    if (m_canvas->view()->hasCursor()) drawCursor(p);
    if (m_canvas->hasFocus()) {
        focusRing(*p, QRectF(m_canvas->rect()), 0);
    }
}

}  // namespace colibri::ui
