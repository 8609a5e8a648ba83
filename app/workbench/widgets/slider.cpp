// SPDX-License-Identifier: GPL-3.0-or-later
// Slider: the track, its handle and scale.
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr double kTrackY = 11, kInset = 7;

}  // namespace

Slider::Slider(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(32);
    setMouseTracking(true);
}

void Slider::setRange(const SliderRange& range) {
    m_range = range;
    m_value = std::clamp(m_value, range.min, std::max(range.min, range.max));
    update();
}

void Slider::setValue(int64_t value) {
    value = std::clamp(value, m_range.min, std::max(m_range.min, m_range.max));
    if (value == m_value) return;
    m_value = value;
    update();
}

void Slider::setEffective(std::optional<int64_t> value) {
    if (value == m_effective) return;
    m_effective = value;
    update();
}

void Slider::setHistory(const QVector<int64_t>& values, const QStringList& texts) {
    if (values == m_history && texts == m_historyTexts) return;
    m_history = values;
    m_historyTexts = texts;
    update();
}

double Slider::share(int64_t value) const {
    const double span = double(m_range.max - m_range.min);
    if (span <= 0) return 0;
    const double v = double(value - m_range.min);
    if (!m_range.logarithmic) return v / span;
    // log(1 + v / c): c keeps the first steps distinguishable if the range begins at 0.
    const double c =
        m_range.min > 0 ? double(m_range.min) : double(std::max<int64_t>(1, m_range.step));
    return std::log1p(v / c) / std::log1p(span / c);
}

double Slider::xOf(int64_t value) const {
    return kInset + share(value) * (width() - 2 * kInset);
}

int64_t Slider::valueAt(double x) const {
    const double q = std::clamp((x - kInset) / std::max(1.0, width() - 2 * kInset), 0.0, 1.0);
    const double span = double(m_range.max - m_range.min);
    double v = q * span;
    if (m_range.logarithmic) {
        const double c =
            m_range.min > 0 ? double(m_range.min) : double(std::max<int64_t>(1, m_range.step));
        v = c * std::expm1(q * std::log1p(span / c));
    }
    const int64_t step = std::max<int64_t>(1, m_range.step);
    const int64_t value = m_range.min + std::llround(v / double(step)) * step;
    return std::clamp(value, m_range.min, m_range.max);
}

void Slider::change(int64_t value, bool final) {
    value = std::clamp(value, m_range.min, m_range.max);
    if (value == m_value && !final) return;
    m_value = value;
    update();
    emit edited(value, final);
}

void Slider::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    m_dragging = true;
    change(valueAt(event->position().x()), false);
}

void Slider::mouseMoveEvent(QMouseEvent* event) {
    if (m_dragging) change(valueAt(event->position().x()), false);
}

void Slider::mouseReleaseEvent(QMouseEvent* event) {
    if (!m_dragging || event->button() != Qt::LeftButton) return;
    m_dragging = false;
    change(valueAt(event->position().x()), true);
}

void Slider::wheelEvent(QWheelEvent* event) {
    if (!hasFocus() || event->angleDelta().y() == 0) return event->ignore();
    const int64_t step = std::max<int64_t>(1, m_range.step);
    change(m_value + (event->angleDelta().y() > 0 ? step : -step), true);
}

void Slider::keyPressEvent(QKeyEvent* event) {
    const int64_t step =
        std::max<int64_t>(1, m_range.step) * (event->modifiers() & Qt::ShiftModifier ? 10 : 1);
    switch (event->key()) {
        case Qt::Key_Left:
        case Qt::Key_Down:
            return change(m_value - step, true);
        case Qt::Key_Right:
        case Qt::Key_Up:
            return change(m_value + step, true);
        case Qt::Key_PageDown:
            return change(m_value - 10 * step, true);
        case Qt::Key_PageUp:
            return change(m_value + 10 * step, true);
        case Qt::Key_Home:
            return change(m_range.min, true);
        case Qt::Key_End:
            return change(m_range.max, true);
        case Qt::Key_0:
            if ((event->modifiers() & Qt::ControlModifier) && m_range.defaultValue)
                return change(*m_range.defaultValue, true);
            break;
        default:
            break;
    }
    QWidget::keyPressEvent(event);
}

bool Slider::event(QEvent* event) {
    if (event->type() ==
        QEvent::ShortcutOverride) {  // keys of the slider that are shortcuts of the window
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Home || key == Qt::Key_End || key == Qt::Key_PageUp ||
            key == Qt::Key_PageDown || key == Qt::Key_0) {
            event->accept();
            return true;
        }
    }
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        for (qsizetype i = 0; i < m_history.size() && i < m_historyTexts.size(); ++i) {
            if (std::abs(xOf(m_history[i]) - help->pos().x()) < 6 && help->pos().y() < 20) {
                QToolTip::showText(help->globalPos(), m_historyTexts[i], this);
                return true;
            }
        }
    }
    return QWidget::event(event);
}

void Slider::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(Qt::NoPen);
    const bool on = isEnabled();
    const double x = xOf(m_value), y = kTrackY;
    p.setBrush(tone(Tone::Bg3));
    p.drawRoundedRect(QRectF(kInset, y - 2, width() - 2 * kInset, 4), 1, 1);
    p.setBrush(tone(on ? Tone::Accent : Tone::Line2));
    p.drawRoundedRect(QRectF(kInset, y - 2, std::max(0.0, x - kInset), 4), 1, 1);
    if (m_range.harmfulBelow && on) {
        const double end = xOf(std::clamp(*m_range.harmfulBelow, m_range.min, m_range.max));
        p.fillRect(QRectF(kInset, y - 2, end - kInset, 4), tone(Tone::Error));
    }
    if (m_range.defaultValue && on) {
        p.fillRect(QRectF(std::round(xOf(*m_range.defaultValue)), y + 4, 1, 5), tone(Tone::Text3));
    }
    for (const int64_t value : m_history) {
        p.setPen(QPen(tone(Tone::Text3), 1.2));
        p.setBrush(tone(Tone::Bg1));
        p.drawEllipse(QPointF(xOf(value), y), 3, 3);
    }
    if (m_effective && *m_effective != m_value && on) {
        const double e = xOf(std::clamp(*m_effective, m_range.min, m_range.max));
        p.setPen(Qt::NoPen);
        p.setBrush(tone(Tone::Warn));
        p.drawPolygon(QPolygonF({{e - 4, y - 8}, {e + 4, y - 8}, {e, y - 3}}));
    }
    p.setPen(QPen(tone(Tone::Bg1), 1.5));
    p.setBrush(tone(on ? Tone::Text1 : Tone::Line2));
    p.drawRoundedRect(QRectF(x - 4.5, y - 8, 9, 16), 2, 2);
    if (hasFocus()) {
        p.setPen(QPen(tone(Tone::Accent), 2));
        p.setBrush(Qt::NoBrush);
        p.drawRoundedRect(QRectF(x - 6, y - 9.5, 12, 19), 3.5, 3.5);
    }
    paintScale(p);
}

void Slider::paintScale(QPainter& p) {
    const auto text = [](const QString& own, int64_t value) {
        return own.isEmpty() ? count(value) : own;
    };
    const QString low = text(m_range.minText, m_range.min),
                  high = text(m_range.maxText, m_range.max);
    const QRectF line(1, 19, width() - 2, 13);
    const QFont mono = type::monoSmall();
    drawText(p, line, Qt::AlignLeft | Qt::AlignVCenter, low, mono, tone(Tone::Text3));
    drawText(p, line, Qt::AlignRight | Qt::AlignVCenter, high, mono, tone(Tone::Text3));
    if (!m_range.defaultValue || !isEnabled()) return;
    const QString label = "default " + text(m_range.defaultText, *m_range.defaultValue);
    const double w = textWidth(type::caption(), label), at = xOf(*m_range.defaultValue);
    const double left = textWidth(mono, low) + 10, right = width() - textWidth(mono, high) - 10;
    double x = at - w / 2;
    if (x < left && at - 4 >= left)
        x = at - 4;  // left of its tick, without overlapping the low end
    if (x < left || x + w > right) return;
    drawText(p, QRectF(x, 19, w, 13), Qt::AlignVCenter, label, type::caption(), tone(Tone::Text3));
}

}  // namespace colibri::ui
