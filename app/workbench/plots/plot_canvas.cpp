// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_canvas.h"

#include <QContextMenuEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_layers.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/theme/theme.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kExportColumns = 2000;  // pixel columns of a picture

}  // namespace

PlotCanvas::PlotCanvas(const PlotSpec& spec, ViewState* view, QWidget* parent)
    : QCustomPlot(parent), m_spec(spec), m_view(view), m_hidden(spec.series.size(), false) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(spec.title + ", " + spec.unit() + ", plot");
    setAccessibleDescription(spec.definition);
    setNoAntialiasingOnDrag(true);
    setPlottingHint(QCP::phCacheLabels);
    setMinimumHeight(40);
    QCPAxisRect* rect = axisRect();
    rect->setAutoMargins(QCP::msNone);
    rect->setMinimumSize(20, 10);
    rect->setBackground(Qt::NoBrush);
    for (QCPAxis* axis : rect->axes()) {
        axis->setVisible(false);
        axis->grid()->setVisible(false);
    }
    rect->setMargins(QMargins(kPlotLeft, kPlotTop, kPlotRight, kPlotBottom));
    for (size_t i = 0; i < spec.series.size(); ++i) {
        QCPGraph* graph = addGraph();
        graph->setAdaptiveSampling(false);  // the data is thinned already
        if (spec.series[i].steps) graph->setLineStyle(QCPGraph::lsStepLeft);
        m_graphs.push_back(graph);
    }
    if (spec.pool == PlotSpec::Pool::Itl) {
        m_sparse = addGraph();
        m_sparse->setAdaptiveSampling(false);
    }
    new BackLayer(this, "grid");
    new FrontLayer(this, "axes");
    new OverlayLayer(this, "overlay");
    recolor();
}

const SeriesData* PlotCanvas::data(int index) const {
    if (!m_snapshot) return nullptr;
    return &m_snapshot->series[size_t(m_spec.series[size_t(index)].id)];
}

void PlotCanvas::setSnapshot(std::shared_ptr<const Snapshot> snapshot) {
    m_snapshot = std::move(snapshot);
    refresh();
}

void PlotCanvas::setSeriesHidden(int index, bool hidden) {
    m_hidden[size_t(index)] = hidden;
    m_graphs[size_t(index)]->setVisible(!hidden);
    if (index == 0 && m_sparse) m_sparse->setVisible(!hidden);
    recolor();
    refresh();
}

bool PlotCanvas::sparseAt(double t) const {
    if (!m_sparse || !m_snapshot) return false;
    if (m_snapshot->itlCount.t.empty()) return false;
    // NaN, that is no value nearby, is not grey.
    return valueAt(m_snapshot->itlCount, t, cursorReach()) < double(kEnoughForP99);
}

void PlotCanvas::setExport(bool on) {
    if (on == m_export) return;
    m_export = on;
    axisRect()->setMargins(
        QMargins(kPlotLeft, kPlotTop, kPlotRight, on ? kPlotBottomAxis : kPlotBottom));
    m_hovered = -1;
    recolor();
    updateData();
}

void PlotCanvas::recolor() {
    setBackground(QBrush(tone(Tone::Plot)));
    for (size_t i = 0; i < m_graphs.size(); ++i) {
        QColor color = tone(seriesTone(m_spec.series[i].color));
        if (m_hovered >= 0 && m_hovered != int(i)) color = withAlpha(color, 0.45);
        QPen pen(color, m_hovered == int(i) ? 2 : 1);
        pen.setCosmetic(true);
        pen.setJoinStyle(Qt::RoundJoin);
        m_graphs[i]->setPen(pen);
        m_graphs[i]->setBrush(Qt::NoBrush);
        m_graphs[i]->setChannelFillGraph(nullptr);
        m_graphs[i]->setAntialiased(true);
        m_graphs[i]->setAntialiasedFill(false);
    }
    if (m_sparse) {
        QPen pen(withAlpha(tone(Tone::Text3), m_hovered > 0 ? 0.45 : 1), m_hovered == 0 ? 2 : 1);
        pen.setCosmetic(true);
        pen.setDashPattern({3, 3});
        m_sparse->setPen(pen);
        m_sparse->setBrush(Qt::NoBrush);
        m_sparse->setChannelFillGraph(nullptr);
        m_sparse->setAntialiased(true);
        m_sparse->setAntialiasedFill(false);
    }
    if (m_graphs.size() > 2 || m_graphs.empty() || m_hidden[0]) return;
    const bool between = m_spec.fill == PlotSpec::Fill::Between && m_graphs.size() == 2;
    QColor fill = tone(seriesTone(m_spec.series[0].color));
    if (m_spec.fill != PlotSpec::Fill::None) m_graphs[0]->setBrush(withAlpha(fill, 0.10));
    if (between && !m_hidden[1]) m_graphs[0]->setChannelFillGraph(m_graphs[1]);
    if (between && m_hidden[1]) m_graphs[0]->setBrush(Qt::NoBrush);
    if (m_sparse && between && !m_hidden[1]) {
        m_sparse->setBrush(withAlpha(tone(Tone::Text3), 0.10));
        m_sparse->setChannelFillGraph(m_graphs[1]);
    }
}

void PlotCanvas::updateData() {
    const double lower = m_view->lower(), upper = m_view->upper();
    const int columns = m_export ? kExportColumns : std::max(8, width() - kPlotLeft - kPlotRight);
    double max = 0;
    m_hasData = false;
    m_factor = 1;
    if (!m_spec.smallUnit.isEmpty() && m_snapshot) {
        double most = 0;
        for (size_t i = 0; i < m_graphs.size(); ++i) {
            const double value = visibleStats(*data(int(i)), lower, upper).max;
            if (std::isfinite(value)) most = std::max(most, value);
        }
        if (most < 1) m_factor = 1000;
    }
    QVector<double> keys, values;
    for (size_t i = 0; i < m_graphs.size(); ++i) {
        const SeriesData* series = data(int(i));
        if (!series) {
            m_graphs[i]->data()->clear();
            if (i == 0 && m_sparse) m_sparse->data()->clear();
            continue;
        }
        decimate(*series, lower, upper, columns, &keys, &values);
        for (double& v : values) v *= m_factor;
        if (i == 0 && m_sparse)
            setSparse(keys, values);
        else
            m_graphs[i]->setData(keys, values, true);
        for (const double v : values) {
            if (!std::isfinite(v)) continue;
            m_hasData = true;
            if (!m_hidden[i]) max = std::max(max, v);
        }
    }
    // The axis grows at once and shrinks late: a steady axis is easier to read.
    double want = std::isfinite(m_spec.fixedMax) ? m_spec.fixedMax : max * 1.05;
    if (!std::isfinite(m_spec.fixedMax)) {
        if (!(want > 0)) want = m_spec.slo ? m_view->sloMs() * 1.5 : 1;
        // A bound that is not far above the data is kept in view.
        const double limit = bound().value;
        if (limit > want && limit < 4 * want) want = limit * 1.1;
        want = std::max(want, m_spec.leastMax);
        const double step = niceStep(want), full = std::ceil(want / step) * step;
        if (full <= want * 1.12) want = full;
        if (want <= m_top && want > 0.55 * m_top) want = m_top;
    }
    m_top = want;
    yAxis->setRange(0, m_top);
    xAxis->setRange(lower, upper);
}

// Draws the first series as two graphs: where n is enough, and where it is not. Both have the
// points at which one ends and the other begins.
void PlotCanvas::setSparse(const QVector<double>& keys, const QVector<double>& values) {
    QVector<double> sure(values.size(), std::nan("")), few(values.size(), std::nan(""));
    bool before = false;
    for (qsizetype i = 0; i < keys.size(); ++i) {
        const bool now = sparseAt(keys[i]);
        (now ? few : sure)[i] = values[i];
        if (i > 0 && now != before) (now ? sure : few)[i] = values[i];
        before = now;
    }
    m_graphs[0]->setData(keys, sure, true);
    m_sparse->setData(keys, few, true);
}

void PlotCanvas::refresh() {
    updateData();
    replot(QCustomPlot::rpQueuedReplot);
}

void PlotCanvas::refreshCursor() {
    layer("overlay")->replot();
}

PlotCanvas::Labels PlotCanvas::labels() const {
    return {sloLabel(), sloText(), emptyPlate(), emptyLink()};
}

// Above the line at the right; below it if there is no room; at the left if the curve would cross
// it at the right.
QRectF PlotCanvas::sloLabel() const {
    if (!m_spec.slo || m_view->sloMs() >= yAxis->range().upper) return {};
    const double w = textWidth(type::caption(), sloText()) + 8, h = 15;
    const double line = std::round(y(m_view->sloMs()));
    const double top = line - h - 1 >= area().top() ? line - h - 1 : line + 2;
    const auto at = [&](double left) { return QRectF(left, top, w, h); };
    const QRectF right = at(area().right() - w - 3), left = at(area().left() + 3);
    return crossed(right) && !crossed(left) ? left : right;
}

QString PlotCanvas::sloText() const {
    return QString("SLO %1 ms").arg(str(formatFixed(m_view->sloMs(), 0)));
}

bool PlotCanvas::crossed(const QRectF& box) const {
    if (!data(0) || m_hidden[0]) return false;
    const VisibleStats seen = visibleStats(*data(0), timeAt(box.left()), timeAt(box.right()));
    return std::isfinite(seen.last) && y(seen.max * m_factor) < box.bottom() &&
           y(seen.min * m_factor) > box.top();
}

QRectF PlotCanvas::emptyPlate() const {
    const QString link = m_export ? QString() : m_empty.link;  // a file has no links
    const double gap = link.isEmpty() ? 0 : 10;
    const double w = textWidth(type::caption(), "No data: " + m_empty.reason) + gap +
                     textWidth(type::caption(), link) + 16;
    QRectF plate(area().center().x() - w / 2, area().center().y() - 9, w, 18);
    // Without overlapping the label of the limit.
    if (const QRectF slo = sloLabel(); slo.intersects(plate.adjusted(-4, -4, 4, 4)))
        plate.moveTop(slo.center().y() > area().center().y() ? slo.top() - 22 : slo.bottom() + 4);
    return plate;
}

QRectF PlotCanvas::emptyLink() const {
    if (m_hasData || m_export || m_empty.link.isEmpty()) return {};
    const QRectF plate = emptyPlate();
    const double w = textWidth(type::caption(), m_empty.link);
    return {plate.right() - 8 - w, plate.top(), w, plate.height()};
}

void PlotCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    m_dragFrom = event->position();
    m_dragLower = m_view->lower();
    if (emptyLink().contains(event->position())) return emit emptyLinkClicked();
    if (sloLabel().contains(event->position())) {
        m_drag = Drag::Slo;
    } else if (event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier)) {
        m_drag = Drag::Box;
    } else {
        m_drag = Drag::Pan;
    }
}

void PlotCanvas::mouseMoveEvent(QMouseEvent* event) {
    const QPointF at = event->position();
    switch (m_drag) {
        case Drag::Slo: {
            const double ms = yAxis->pixelToCoord(at.y());
            m_view->setSlo(std::round(std::clamp(ms, 1.0, yAxis->range().upper * 0.98)));
            return;
        }
        case Drag::Box: {
            const double a = std::clamp(m_dragFrom.x(), area().left(), area().right());
            const double b = std::clamp(at.x(), area().left(), area().right());
            m_box = QRectF(std::min(a, b), 0, std::abs(a - b), area().bottom());
            break;
        }
        case Drag::Pan:
            if (std::abs(at.x() - m_dragFrom.x()) >= 3 || !m_view->following()) {
                const double perPixel = m_view->span() / std::max(1.0, area().width());
                const double lower = m_dragLower - (at.x() - m_dragFrom.x()) * perPixel;
                m_view->setRange(lower, lower + m_view->span());
            }
            break;
        case Drag::None:
            setCursor(emptyLink().contains(at)  ? Qt::PointingHandCursor
                      : sloLabel().contains(at) ? Qt::SizeVerCursor
                                                : Qt::ArrowCursor);
            break;
    }
    updateHover(at);
    const bool inside = at.x() >= area().left() && at.x() <= area().right();
    m_view->setCursor(inside ? timeAt(at.x()) : std::numeric_limits<double>::quiet_NaN());
    refreshCursor();
}

void PlotCanvas::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    if (m_drag == Drag::Box && m_box.width() >= 4)
        m_view->setRange(timeAt(m_box.left()), timeAt(m_box.right()));
    // A click without a drag moves the playhead of a recorded session.
    if (m_drag == Drag::Pan && (event->position() - m_dragFrom).manhattanLength() < 3)
        m_view->seek(timeAt(event->position().x()));
    m_drag = Drag::None;
    m_box = {};
    refreshCursor();
}

void PlotCanvas::mouseDoubleClickEvent(QMouseEvent*) {
    m_view->reset();
}

void PlotCanvas::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    if (event->modifiers() & Qt::ShiftModifier || std::abs(delta.x()) > std::abs(delta.y())) {
        const int d = delta.x() ? delta.x() : delta.y();
        m_view->pan(-m_view->span() * d / 1200.0);
    } else if (delta.y()) {
        m_view->zoom(std::pow(0.85, delta.y() / 120.0), timeAt(event->position().x()));
    }
    event->accept();
}

void PlotCanvas::updateHover(const QPointF& at) {
    int hovered = -1;
    double best = 6;
    for (size_t i = 0; i < m_graphs.size(); ++i) {
        const SeriesData* series = data(int(i));
        if (!series || m_hidden[i]) continue;
        const double v = valueAt(*series, timeAt(at.x()), cursorReach()) * m_factor;
        const double d = std::isfinite(v) ? std::abs(y(v) - at.y()) : 1e9;
        if (d < best) {
            best = d;
            hovered = int(i);
        }
    }
    if (hovered == m_hovered) return;
    m_hovered = hovered;
    recolor();
    replot(QCustomPlot::rpQueuedReplot);
}

void PlotCanvas::leaveEvent(QEvent*) {
    m_view->setCursor(std::numeric_limits<double>::quiet_NaN());
    if (m_hovered >= 0) {
        m_hovered = -1;
        recolor();
        replot(QCustomPlot::rpQueuedReplot);
    }
}

void PlotCanvas::keyPressEvent(QKeyEvent* event) {
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    const double step = m_view->span() / std::max(1.0, area().width());
    const auto move = [&](double by) {
        const double at =
            m_view->hasCursor() ? m_view->cursor() : m_view->lower() + m_view->span() / 2;
        m_view->setCursor(std::clamp(at + by, m_view->lower(), m_view->upper()));
    };
    switch (event->key()) {
        case Qt::Key_Left:
            shift ? m_view->pan(-m_view->span() / 10) : move(-4 * step);
            return;
        case Qt::Key_Right:
            shift ? m_view->pan(m_view->span() / 10) : move(4 * step);
            return;
        case Qt::Key_A:
            m_view->pan(-m_view->span() / 10);
            return;
        case Qt::Key_D:
            m_view->pan(m_view->span() / 10);
            return;
        case Qt::Key_Plus:
        case Qt::Key_Equal:
        case Qt::Key_W:
            m_view->zoom(0.8, m_view->hasCursor() ? m_view->cursor() : m_view->upper());
            return;
        case Qt::Key_Minus:
        case Qt::Key_S:
            m_view->zoom(1.25, m_view->hasCursor() ? m_view->cursor() : m_view->upper());
            return;
        case Qt::Key_0:
            m_view->reset();
            return;
        case Qt::Key_Menu:
            emit menuRequested(mapToGlobal(rect().center()));
            return;
        default:
            break;
    }
    QCustomPlot::keyPressEvent(event);
}

void PlotCanvas::contextMenuEvent(QContextMenuEvent* event) {
    leaveEvent(nullptr);  // the menu takes the pointer
    emit menuRequested(event->globalPos());
}

void PlotCanvas::resizeEvent(QResizeEvent* event) {
    QCustomPlot::resizeEvent(event);
    if (m_snapshot) refresh();
}

void PlotCanvas::focusInEvent(QFocusEvent* event) {
    QCustomPlot::focusInEvent(event);
    refreshCursor();
}

void PlotCanvas::focusOutEvent(QFocusEvent* event) {
    QCustomPlot::focusOutEvent(event);
    // A window that is left or being closed keeps its cursor: the panel may be half destroyed.
    const bool left = event->reason() != Qt::ActiveWindowFocusReason;
    if (left && !underMouse()) m_view->setCursor(std::numeric_limits<double>::quiet_NaN());
    refreshCursor();
}

}  // namespace colibri::ui
