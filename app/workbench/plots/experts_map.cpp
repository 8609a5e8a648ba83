// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/experts_map.h"

#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QLinearGradient>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kHeader = 28;

}  // namespace

ExpertsMap::ExpertsMap(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::TabFocus);
    setAccessibleName("Experts map: layer by expert");
}

void ExpertsMap::setModel(const ModelFacts* model) {
    m_loaded = model != nullptr;
    m_layers = model ? int(model->moeLayers) : 0;
    m_experts = model ? int(model->experts) : 0;
    m_layerIndex = model ? model->layerIndex : std::vector<int>();
    m_hoverLayer = m_pinLayer = m_hoverExpert = m_pinExpert = -1;
    m_snapshot.reset();  // of the former model
    update();
}

void ExpertsMap::setSnapshot(std::shared_ptr<const Snapshot> snapshot) {
    const bool same = m_snapshot && snapshot && m_snapshot->residency == snapshot->residency &&
                      m_snapshot->heat == snapshot->heat &&
                      m_snapshot->residencyUnknown == snapshot->residencyUnknown &&
                      !snapshot->recorded;
    m_snapshot = std::move(snapshot);
    if (isVisible() && !same) update();
}

QRect ExpertsMap::mapRect() const {
    return {kPlotLeft, kHeader + 2, width() - kPlotLeft - kPlotRight,
            std::max(8, height() - kHeader - 8)};
}

QRect ExpertsMap::cellRect(int layer, int expert) const {
    const QRect map = mapRect();
    const auto at = [](int i, int n, int length) {
        return int(std::lround(double(i) * length / n));
    };
    const int gap = map.height() >= 4.5 * m_layers ? 1 : 0;
    const int column = map.width() >= 3 * m_experts ? 1 : 0;
    const int x0 = at(expert, m_experts, map.width()), x1 = at(expert + 1, m_experts, map.width());
    const int y0 = at(layer, m_layers, map.height()), y1 = at(layer + 1, m_layers, map.height());
    return {map.left() + x0, map.top() + y0, std::max(1, x1 - x0 - column),
            std::max(1, y1 - y0 - gap)};
}

QColor ExpertsMap::cellColor(size_t index) const {
    if (!m_snapshot || index >= m_snapshot->residency.size()) return tone(Tone::Cell);
    switch (m_snapshot->residency[index]) {
        case Residency::OnDisk:
            return tone(Tone::Cell);
        case Residency::Reading:
            return tone(Tone::S2);
        case Residency::Resident:
            break;
    }
    const double heat = index < m_snapshot->heat.size() ? m_snapshot->heat[index] : 0;
    // The part of the colour scale that differs from the background of a cell in both themes.
    return Theme::get().sequential(Theme::get().dark() ? 0.36 + 0.5 * heat : 0.22 + 0.6 * heat);
}

void ExpertsMap::paintHeader(QPainter& p) {
    p.fillRect(QRectF(0, 0, width(), kHeader), tone(Tone::Bg1));
    drawText(p, QRectF(12, 6, 100, 18), Qt::AlignVCenter, "Experts", type::bodyBold(),
             tone(Tone::Text1));
    double x = 12 + textWidth(type::bodyBold(), "Experts") + 6;
    if (m_layers == 0) return;
    const QString shape =
        QString("%1 layer%2 × %3").arg(m_layers).arg(m_layers == 1 ? "" : "s").arg(m_experts);
    drawText(p, QRectF(x, 6, 200, 18), Qt::AlignVCenter, shape, type::body(), tone(Tone::Text3));
    x += textWidth(type::body(), shape) + 12;
    if (m_snapshot && m_snapshot->recorded) {
        const QString at = "at " + clockText(m_snapshot->now, 1);
        drawText(p, QRectF(x, 6, 90, 18), Qt::AlignVCenter, at, type::monoSmall(),
                 tone(Tone::Text3));
        x += textWidth(type::monoSmall(), at) + 12;
        if (!m_snapshot->residencyUnknown.empty()) return;
    }

    size_t resident = 0;
    if (m_snapshot)
        resident = size_t(std::count(m_snapshot->residency.begin(), m_snapshot->residency.end(),
                                     Residency::Resident));
    QString count = str(formatCount(int64_t(resident)) + " of " +
                        formatCount(int64_t(m_layers) * m_experts) + " in memory");
    double right = width() - kPlotRight;
    const auto put = [&](const QString& text, const QFont& font, Tone ink, double swatch) {
        right -= textWidth(font, text);
        drawText(p, QRectF(right, 6, 400, 18), Qt::AlignVCenter, text, font, tone(ink));
        if (swatch > 0) right -= swatch + 5;
        return QRectF(right, 11, swatch, 8);
    };
    const int layer = m_hoverLayer >= 0 ? m_hoverLayer : m_pinLayer;
    const int expert = m_hoverLayer >= 0 ? m_hoverExpert : m_pinExpert;
    if (layer >= 0) {  // the readout replaces the legend, so there is no tooltip
        const QString text = cellText(layer, expert);
        drawElided(p, QRectF(x, 6, right - x, 18), Qt::AlignVCenter | Qt::AlignRight, text,
                   type::monoSmall(), tone(Tone::Text1));
        return;
    }
    put(count, type::monoSmall(), Tone::Text2, 0);
    right -= 12;
    if (right - x < 230) return;
    QRectF box = put("on disk", type::caption(), Tone::Text2, 8);
    fillBox(p, box, tone(Tone::Cell), tone(Tone::Line2), 1);
    right -= 12;
    box = put("loading", type::caption(), Tone::Text2, 8);
    fillBox(p, box, tone(Tone::S2), Qt::transparent, 1);
    right -= 12;
    box = put("resident, by use", type::caption(), Tone::Text2, 28);
    QLinearGradient ramp(box.topLeft(), box.topRight());
    for (int i = 0; i <= 4; ++i) {
        const double v = i / 4.0;
        ramp.setColorAt(
            v, Theme::get().sequential(Theme::get().dark() ? 0.36 + 0.5 * v : 0.22 + 0.6 * v));
    }
    p.fillRect(box, ramp);
}

void ExpertsMap::paintCells(QPainter& p) {
    const QRect map = mapRect();
    for (int l = 0; l < m_layers; ++l)
        for (int e = 0; e < m_experts; ++e)
            p.fillRect(cellRect(l, e), cellColor(size_t(l) * size_t(m_experts) + size_t(e)));
    const double row = double(map.height()) / m_layers;
    const int intervals = std::max(2, map.height() / 48);
    const int step = std::max(1, (m_layers + intervals - 1) / intervals);
    std::vector<int> labelled{m_layers - 1};
    for (int l = 0; l < m_layers - 1; l += step)
        if (row * (m_layers - 1 - l) > 14) labelled.push_back(l);
    for (const int l : labelled) {
        const double y = map.top() + row * l + row / 2;
        const int label = size_t(l) < m_layerIndex.size() ? m_layerIndex[size_t(l)] : l;
        drawText(p, QRectF(0, y - 8, kPlotLeft - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                 QString::number(label), type::monoSmall(), tone(Tone::Text3));
    }
    p.setBrush(Qt::NoBrush);
    if (m_pinLayer >= 0) {
        const QRectF cell = cellRect(m_pinLayer, m_pinExpert);
        p.setPen(tone(Tone::Text1));
        p.drawRect(cell.adjusted(-0.5, -0.5, 0.5, 0.5));
    }
    if (m_hoverLayer >= 0) {
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(QPen(tone(Tone::Text1), 1.5));
        p.drawRect(
            QRectF(cellRect(m_hoverLayer, m_hoverExpert)).adjusted(-0.75, -0.75, 0.75, 0.75));
    }
}

void ExpertsMap::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
    paintHeader(p);
    if (m_snapshot && !m_snapshot->residencyUnknown.empty()) {
        drawHatch(p, mapRect());
        const QString reason = "n/a: " + str(m_snapshot->residencyUnknown);
        const QSizeF size(textWidth(type::caption(), reason) + 16, 20);
        const QRectF plate(QPointF(mapRect().center()) - QPointF(size.width() / 2, 10), size);
        p.fillRect(plate, tone(Tone::Plot));
        drawText(p, plate, Qt::AlignCenter, reason, type::caption(), tone(Tone::Text2));
    } else if (m_layers > 0 && m_experts > 0) {
        paintCells(p);
    } else {
        drawText(p, mapRect(), Qt::AlignCenter,
                 m_loaded ? "This model is dense: it has no experts" : "No data: no model loaded",
                 type::caption(), tone(Tone::Text2));
    }
    if (hasFocus()) focusRing(p, rect(), 0);
}

QString ExpertsMap::cellText(int layer, int expert) const {
    if (layer < 0 || layer >= m_layers || expert < 0 || expert >= m_experts) return {};
    const size_t index = size_t(layer) * size_t(m_experts) + size_t(expert);
    const int shown = size_t(layer) < m_layerIndex.size() ? m_layerIndex[size_t(layer)] : layer;
    QString text = QString("layer %1, expert %2: ").arg(shown).arg(expert);
    if (!m_snapshot || index >= m_snapshot->residency.size()) return text + "no data";
    static const char* const kWhere[] = {"on disk", "loading", "resident"};
    text += kWhere[int(m_snapshot->residency[index])];
    if (index < m_snapshot->heat.size())
        text += QString(", recent use %1").arg(m_snapshot->heat[index], 0, 'f', 2);
    return text;
}

void ExpertsMap::pointAt(int layer, int expert) {
    if (layer == m_hoverLayer && expert == m_hoverExpert) return;
    m_hoverLayer = layer;
    m_hoverExpert = expert;
    if (hasFocus()) setAccessibleDescription(cellText(layer, expert));
    update();
}

void ExpertsMap::mouseMoveEvent(QMouseEvent* event) {
    const QRect map = mapRect();
    const QPoint at = event->position().toPoint();
    if (!map.contains(at) || m_layers == 0) return pointAt(-1, -1);
    pointAt(std::min(m_layers - 1, (at.y() - map.top()) * m_layers / map.height()),
            std::min(m_experts - 1, (at.x() - map.left()) * m_experts / map.width()));
}

void ExpertsMap::mousePressEvent(QMouseEvent* event) {
    if (event && event->button() != Qt::LeftButton) return;
    const bool same = m_pinLayer == m_hoverLayer && m_pinExpert == m_hoverExpert;
    m_pinLayer = same ? -1 : m_hoverLayer;
    m_pinExpert = same ? -1 : m_hoverExpert;
    update();
}

QString ExpertsMap::csv() const {
    QString out = "layer,expert,where,recent_use\n";
    if (!m_snapshot) return out;
    static const char* const kWhere[] = {"on disk", "loading", "resident"};
    for (int l = 0; l < m_layers; ++l) {
        const int layer = size_t(l) < m_layerIndex.size() ? m_layerIndex[size_t(l)] : l;
        for (int e = 0; e < m_experts; ++e) {
            const size_t index = size_t(l) * size_t(m_experts) + size_t(e);
            if (index >= m_snapshot->residency.size()) return out;
            const float heat = index < m_snapshot->heat.size() ? m_snapshot->heat[index] : 0;
            out += QString("%1,%2,%3,%4\n")
                       .arg(layer)
                       .arg(e)
                       .arg(kWhere[int(m_snapshot->residency[index])])
                       .arg(double(heat), 0, 'f', 3);
        }
    }
    return out;
}

void ExpertsMap::contextMenuEvent(QContextMenuEvent* event) {
    emit menuRequested(event->globalPos());
}

void ExpertsMap::leaveEvent(QEvent*) {
    pointAt(-1, -1);
}

void ExpertsMap::focusOutEvent(QFocusEvent*) {
    if (!underMouse()) pointAt(-1, -1);
    update();
}

void ExpertsMap::focusInEvent(QFocusEvent*) {
    if (m_hoverLayer < 0 && m_layers > 0) pointAt(0, 0);
    update();
}

void ExpertsMap::keyPressEvent(QKeyEvent* event) {
    const int l = std::max(0, m_hoverLayer), e = std::max(0, m_hoverExpert);
    switch (event->key()) {
        case Qt::Key_Left:
            return pointAt(l, std::max(0, e - 1));
        case Qt::Key_Right:
            return pointAt(l, std::min(m_experts - 1, e + 1));
        case Qt::Key_Up:
            return pointAt(std::max(0, l - 1), e);
        case Qt::Key_Down:
            return pointAt(std::min(m_layers - 1, l + 1), e);
        case Qt::Key_Space:
            return mousePressEvent(nullptr);
        default:
            QWidget::keyPressEvent(event);
    }
}

}  // namespace colibri::ui
