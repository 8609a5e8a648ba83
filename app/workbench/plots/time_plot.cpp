// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/time_plot.h"

#include <QContextMenuEvent>
#include <QEvent>
#include <QVBoxLayout>
#include <cmath>

#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/tooltip.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

// In a column of figures an unknown value is short, and a large one keeps to its column; the
// tooltip of the tag says why it is unknown.
QString figure(double v, int decimals) {
    return QString::fromStdString(formatFixed(v, std::abs(v) < 1000 ? decimals : 0));
}

}  // namespace

TimePlot::TimePlot(const PlotSpec& spec, ViewState* view, QWidget* parent)
    : QWidget(parent),
      m_spec(spec),
      m_view(view),
      m_header(new PlotHeader),
      m_canvas(new PlotCanvas(spec, view)),
      m_diagnose(new LinkButton("Diagnose", type::caption())),
      m_pooled(spec.series.size(), std::nan("")) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 1);
    column->setSpacing(0);
    column->addWidget(m_header);
    column->addWidget(m_canvas, 1);
    column->addStretch(0);  // keeps the header on top while the canvas is hidden
    m_diagnose->setParent(m_header);
    m_diagnose->hide();
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(m_canvas, &PlotCanvas::menuRequested, this,
            [this](const QPoint& at) { emit menuRequested(this, at); });
    connect(m_header, &PlotHeader::entryClicked, this, &TimePlot::toggle);
    connect(m_header, &PlotHeader::entryIsolated, this, &TimePlot::isolate);
    updateFacts();
    updateLegend();
}

void TimePlot::setSource(SessionSource* source) {
    m_source = source;
    m_read.reset();
    m_snapshot.reset();  // nothing of the session before
    m_drawn.reset();
    m_samples = 0;
    std::fill(m_pooled.begin(), m_pooled.end(), std::nan(""));
    updateLegend();
}

void TimePlot::setLegend(PlotHeader::Legend legend) {
    m_header->setLegend(legend);
}

void TimePlot::setEmptyLink(const QString& text) {
    const bool free = m_facts.emptyReason.isEmpty();  // else no range has anything to show
    m_canvas->setEmptyLink(free ? text : QString());
}

void TimePlot::refreshLegend() {
    if (isVisible()) updateLegend();
}

void TimePlot::setDiagnose(std::function<void()> diagnose) {
    disconnect(m_diagnose, nullptr, this, nullptr);
    connect(m_diagnose, &QAbstractButton::clicked, this, [diagnose] { diagnose(); });
    m_canDiagnose = bool(diagnose);
    m_diagnose->setVisible(unavailable() && m_canDiagnose);
    updateLegend();
}

void TimePlot::setSnapshot(const std::shared_ptr<const Snapshot>& snapshot, bool moved) {
    m_snapshot = snapshot;
    QString reason;
    if (snapshot) {
        bool any = false;
        for (const PlotSeries& series : m_spec.series) {
            const SeriesData& data = snapshot->series[size_t(series.id)];
            if (data.unavailable.empty())
                any = true;
            else
                reason = QString::fromStdString(data.unavailable);
        }
        if (any) reason.clear();
    } else {
        m_samples = 0;
        std::fill(m_pooled.begin(), m_pooled.end(), std::nan(""));
        if (!m_spec.needs.isEmpty()) reason = "no model is loaded";
    }
    if (reason != m_unavailable) {
        m_unavailable = reason;
        m_canvas->setVisible(reason.isEmpty());
        m_diagnose->setVisible(!reason.isEmpty() && m_canDiagnose);
        setFixedHeight(reason.isEmpty() ? QWIDGETSIZE_MAX : kUnavailableHeight);
        if (reason.isEmpty()) setMinimumHeight(0);
        update();
        emit availabilityChanged();
    }
    if (!isVisible()) return;
    const double bound = m_facts.bound;
    updateFacts();
    const bool bounded = bound == m_facts.bound || (std::isnan(bound) && std::isnan(m_facts.bound));
    const bool same = !moved && bounded && m_drawn && snapshot && drawnAlike(*snapshot);
    if (!unavailable() && !same) {
        m_drawn = snapshot;
        m_canvas->setSnapshot(snapshot);
    }
    if (!snapshot || !m_read)
        readFigures(snapshot);
    else if (moved)
        readFigures(m_read);
}

bool TimePlot::drawnAlike(const Snapshot& snapshot) const {
    if (!sameMarkers(m_drawn->markers, snapshot.markers)) return false;
    if (!sameSeries(m_drawn->itlCount, snapshot.itlCount)) return false;
    return std::all_of(m_spec.series.begin(), m_spec.series.end(), [&](const PlotSeries& series) {
        return sameSeries(m_drawn->series[size_t(series.id)], snapshot.series[size_t(series.id)]);
    });
}

void TimePlot::readFigures(const std::shared_ptr<const Snapshot>& snapshot) {
    m_read = snapshot;
    m_samples = snapshot ? samplesSeen() : 0;
    if (snapshot) updatePooled();
    updateLegend();
}

void TimePlot::refreshRange() {
    if (!isVisible()) return;
    if (!unavailable()) m_canvas->refresh();
    updateLegend();
}

void TimePlot::refreshCursor() {
    if (!isVisible()) return;
    if (unavailable()) {
        update();
    } else {
        m_canvas->refreshCursor();
    }
    updateLegend();
}

// n behind the newest P99 that is seen.
double TimePlot::samplesSeen() const {
    if (m_spec.pool != PlotSpec::Pool::Itl) return 0;
    const SeriesData& counts = m_read->itlCount;
    if (counts.t.empty()) return double(m_read->figures.itlCount);
    const double last = visibleStats(counts, m_view->lower(), m_view->upper()).last;
    return std::isfinite(last) ? last : 0;
}

void TimePlot::updateFacts() {
    const bool known = m_spec.facts && m_source && m_source->model() && m_snapshot;
    m_facts = known ? m_spec.facts(*m_source, *m_snapshot) : PlotFacts();
    m_canvas->setBound(m_facts.bound, m_facts.boundLabel, m_facts.boundHard);
    m_canvas->setEmptyReason(!m_snapshot ? "no model is loaded"
                             : !m_facts.emptyReason.isEmpty()
                                 ? m_facts.emptyReason
                                 : "nothing was recorded in this range");
    QString what = m_spec.seriesDefinitions();
    if (!m_facts.detail.isEmpty()) what += "\n" + m_facts.detail;
    const QString help =
        explained(m_spec.title + ", " + m_spec.unit(), what, metricRow(m_spec.series[0].id).source);
    if (help != m_header->toolTip()) m_header->setToolTip(help);
}

void TimePlot::updatePooled() {
    if (m_spec.pool == PlotSpec::Pool::None || !m_source) return;
    const double end = std::min(m_view->upper(), m_view->shownEnd());
    const Histogram histogram = m_spec.pool == PlotSpec::Pool::Itl
                                    ? m_source->itlBetween(m_view->lower(), end)
                                    : m_source->expertLoadBetween(m_view->lower(), end);
    m_pooledCount = histogram.count();
    for (size_t i = 0; i < m_spec.series.size(); ++i)
        m_pooled[i] = histogram.quantile(m_spec.series[i].quantile) / 1e6;
}

void TimePlot::updateLegend() {
    m_header->setContent(legend(m_view->hasCursor()));
}

PlotHeader::Content TimePlot::legend(bool withCursor) const {
    PlotHeader::Content content;
    content.title = m_spec.title;
    content.unit = m_canvas->unit();
    content.definition = m_spec.definition;
    if (unavailable()) {
        content.right = m_spec.needs;
        if (m_canDiagnose) content.rightInset = m_diagnose->sizeHint().width() + 4;
        return content;
    }
    const bool itl = m_spec.pool == PlotSpec::Pool::Itl;
    content.thirdName = m_spec.pool == PlotSpec::Pool::None ? "mean" : "pooled";
    if (withCursor) content.cursorTime = clockText(m_view->cursor(), 1);
    const double slo = m_spec.slo ? m_view->sloMs() : std::nan("");
    if (itl && m_samples > 0)
        content.definition += ", n = " + QString::fromStdString(formatCount(int64_t(m_samples)));
    for (size_t i = 0; i < m_spec.series.size(); ++i) {
        const PlotSeries& series = m_spec.series[i];
        PlotHeader::Entry entry{series.name(), series.color};
        entry.hidden = m_canvas->seriesHidden(int(i));
        const bool limited = m_spec.slo && series.quantile > 0.9;
        if (m_read) {
            const SeriesData& data = m_read->series[size_t(series.id)];
            const double factor = m_canvas->factor();
            VisibleStats stats = visibleStats(data, m_view->lower(), m_view->upper());
            for (double* v : {&stats.last, &stats.min, &stats.mean, &stats.max}) *v *= factor;
            const double third = m_spec.pool == PlotSpec::Pool::None ? stats.mean : m_pooled[i];
            // The pooled figure counts every value, the line its windows: the largest of either.
            if (third > stats.max) stats.max = third;
            const double cursor =
                withCursor ? valueAt(data, m_view->cursor()) * factor : std::nan("");
            const int decimals = series.decimals >= 0 ? series.decimals : factor > 1 ? 1 : 2;
            entry.last = figure(stats.last, decimals);
            entry.min = figure(stats.min, decimals);
            entry.third = figure(third, decimals);
            entry.max = figure(stats.max, decimals);
            if (withCursor) entry.cursor = figure(cursor, decimals);
            // A P99 of few values is grey, and no verdict.
            const bool enough = m_pooledCount >= kEnoughForP99;
            entry.thirdGrey = limited && !enough;
            entry.grey = limited && (!enough || m_samples < double(kEnoughForP99));
            entry.over = limited && !entry.grey && stats.last > slo;
            entry.minOver = limited && !entry.grey && stats.min > slo;
            entry.thirdOver = limited && !entry.grey && third > slo;
            entry.maxOver = limited && !entry.grey && stats.max > slo;
            entry.cursorOver = limited && !m_canvas->sparseAt(m_view->cursor()) && cursor > slo;
            if (limited && m_samples >= double(kEnoughForP99) && std::isfinite(stats.last))
                content.tags.push_back(entry.over ? errorTag("P99 over SLO")
                                                  : okTag("P99 within SLO"));
        }
        content.entries.push_back(entry);
    }
    if (!m_facts.note.isEmpty()) content.definition += ", " + m_facts.note;
    content.tags.insert(content.tags.end(), m_facts.tags.begin(), m_facts.tags.end());
    if (itl && m_samples > 0 && m_samples < double(kEnoughForP99))
        content.tags.push_back(
            {QString("P99 greyed: n = %1 < %2").arg(int(m_samples)).arg(kEnoughForP99), ""});
    if (m_view->paused()) {
        const double newer = m_view->now() - std::min(m_view->upper(), m_view->shownEnd());
        content.tags.push_back(
            warnTag(newer > 0.5 ? "paused, " + clockText(newer, 0) + " newer recorded" : "paused"));
    }
    return content;
}

void TimePlot::toggle(int index) {
    m_canvas->setSeriesHidden(index, !m_canvas->seriesHidden(index));
    updateLegend();
}

void TimePlot::isolate(int index) {
    bool alone = true;
    for (int i = 0; i < int(m_spec.series.size()); ++i)
        if (i != index && !m_canvas->seriesHidden(i)) alone = false;
    for (int i = 0; i < int(m_spec.series.size()); ++i)
        m_canvas->setSeriesHidden(i, !alone && i != index);
    updateLegend();
}

void TimePlot::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (m_snapshot) setSnapshot(m_snapshot, true);
}

void TimePlot::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::StyleChange) {
        m_canvas->recolor();
        m_canvas->replot(QCustomPlot::rpQueuedReplot);
    }
}

void TimePlot::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    m_diagnose->adjustSize();
    m_diagnose->move(m_header->width() - 14 - m_diagnose->sizeHint().width() + 1, 3);
}

void TimePlot::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    if (!unavailable()) return;
    const double top = m_header->preferredHeight();
    const QRectF box(kPlotLeft, top + 6, width() - kPlotLeft - kPlotRight, height() - 1 - top - 12);
    drawHatch(p, box);
    if (m_view->hasCursor()) {
        const double x =
            box.left() + (m_view->cursor() - m_view->lower()) / m_view->span() * box.width();
        if (x >= box.left() && x <= box.right())
            p.fillRect(QRectF(std::round(x), box.top(), 1, box.height()),
                       withAlpha(tone(Tone::Accent), 0.5));
    }
    const QString text = "n/a: " + m_unavailable;
    const double w = textWidth(type::caption(), text) + 24;
    const QRectF plate(std::round(box.center().x() - w / 2), std::round(box.center().y() - 8), w,
                       16);
    p.fillRect(plate, tone(Tone::Plot));
    drawText(p, plate, Qt::AlignCenter, text, type::caption(), tone(Tone::Text2));
}

void TimePlot::contextMenuEvent(QContextMenuEvent* event) {
    emit menuRequested(this, event->globalPos());
}

bool TimePlot::hasData() const {
    if (!m_snapshot) return false;
    return std::any_of(
        m_spec.series.begin(), m_spec.series.end(), [this](const PlotSeries& series) {
            const SeriesData& data = m_snapshot->series[size_t(series.id)];
            return std::isfinite(visibleStats(data, m_view->lower(), m_view->upper()).last);
        });
}

}  // namespace colibri::ui
