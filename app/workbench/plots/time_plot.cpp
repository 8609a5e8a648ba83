// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/time_plot.h"

#include <QContextMenuEvent>
#include <QEvent>
#include <QVBoxLayout>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/tooltip.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

// A value in the legend. Large ones have no decimals, so that they fit their column.
QString figure(double v, int decimals) {
    return str(formatFixed(v, std::abs(v) < 1000 ? decimals : 0));
}

// The limit on ITL applies to high percentiles only.
bool hasLimit(const PlotSpec& spec, size_t series) {
    return spec.slo && spec.series[series].quantile > 0.9;
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
    column->addStretch(0);  // keeps the header at the top while the canvas is hidden
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
    m_snapshot.reset();
    m_drawn.reset();
    m_visibleCount = 0;
    std::fill(m_pooled.begin(), m_pooled.end(), std::nan(""));
    updateLegend();
}

void TimePlot::setLegend(PlotHeader::Legend legend) {
    m_header->setLegend(legend);
}

void TimePlot::setEmptyLink(const QString& text) {
    m_emptyLink = text;
    updateEmptyNotice();
}

void TimePlot::updateEmptyNotice() {
    PlotCanvas::EmptyNotice notice;
    if (!m_snapshot)
        notice.reason = "no model is loaded";
    else if (!m_facts.emptyReason.isEmpty())
        notice.reason = m_facts.emptyReason;
    // With such a reason no other range has data either.
    if (m_facts.emptyReason.isEmpty()) notice.link = m_emptyLink;
    m_canvas->setEmptyNotice(notice);
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
    if (!snapshot) {
        m_visibleCount = 0;
        std::fill(m_pooled.begin(), m_pooled.end(), std::nan(""));
    }
    setUnavailable(unavailableReason(snapshot.get()));
    if (!isVisible()) return;
    const double bound = m_facts.bound.value;
    updateFacts();
    const double now = m_facts.bound.value;
    const bool sameBound = bound == now || (std::isnan(bound) && std::isnan(now));
    const bool same = !moved && sameBound && m_drawn && snapshot && looksLikeDrawn(*snapshot);
    if (!unavailable() && !same) {
        m_drawn = snapshot;
        m_canvas->setSnapshot(snapshot);
    }
    if (!snapshot || !m_read)
        readFigures(snapshot);
    else if (moved)
        readFigures(m_read);
}

// "" if one of the series is available.
QString TimePlot::unavailableReason(const Snapshot* snapshot) const {
    if (!snapshot) return m_spec.needs.isEmpty() ? QString() : QString("no model is loaded");
    QString reason;
    for (const PlotSeries& series : m_spec.series) {
        const SeriesData& data = snapshot->series[size_t(series.id)];
        if (data.unavailable.empty()) return {};
        reason = str(data.unavailable);
    }
    return reason;
}

void TimePlot::setUnavailable(const QString& reason) {
    if (reason == m_unavailable) return;
    m_unavailable = reason;
    m_canvas->setVisible(reason.isEmpty());
    m_diagnose->setVisible(!reason.isEmpty() && m_canDiagnose);
    setFixedHeight(reason.isEmpty() ? QWIDGETSIZE_MAX : kUnavailableHeight);
    if (reason.isEmpty()) setMinimumHeight(0);
    update();
    emit availabilityChanged();
}

bool TimePlot::looksLikeDrawn(const Snapshot& snapshot) const {
    if (m_drawn->detail != snapshot.detail) return false;
    if (!sameMarkers(m_drawn->markers, snapshot.markers)) return false;
    if (!sameSeries(m_drawn->itlCount, snapshot.itlCount)) return false;
    return std::all_of(m_spec.series.begin(), m_spec.series.end(), [&](const PlotSeries& series) {
        return sameSeries(m_drawn->series[size_t(series.id)], snapshot.series[size_t(series.id)]);
    });
}

void TimePlot::readFigures(const std::shared_ptr<const Snapshot>& snapshot) {
    m_read = snapshot;
    m_visibleCount = snapshot ? visibleCount() : 0;
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

// The number of values of the newest visible P99.
double TimePlot::visibleCount() const {
    if (m_spec.pool != PlotSpec::Pool::Itl) return 0;
    const SeriesData& counts = m_read->itlCount;
    if (counts.t.empty()) return double(m_read->figures.itlCount);
    const double last = visibleStats(counts, m_view->lower(), m_view->upper()).last;
    return std::isfinite(last) ? last : 0;
}

void TimePlot::updateFacts() {
    const bool known = m_spec.facts && m_source && m_source->model() && m_snapshot;
    m_facts = known ? m_spec.facts(*m_source, *m_snapshot) : PlotFacts();
    m_canvas->setBound(m_facts.bound);
    updateEmptyNotice();
    QString what = m_spec.seriesDefinitions();
    if (!m_facts.detail.isEmpty()) what += "\n" + m_facts.detail;
    const QString help =
        explained(m_spec.title + ", " + m_spec.unit(), what, metricRow(m_spec.series[0].id).source);
    if (help != m_header->toolTip()) m_header->setToolTip(help);
}

void TimePlot::updatePooled() {
    if (m_spec.pool == PlotSpec::Pool::None || !m_source) return;
    const double end = std::min(m_view->upper(), m_view->shownEnd());
    const auto what = m_spec.pool == PlotSpec::Pool::Itl ? SessionSource::Pooled::Itl
                                                         : SessionSource::Pooled::ExpertLoads;
    const Histogram histogram = m_source->pooled(what, m_view->lower(), end);
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
    const bool enough = m_visibleCount >= double(kEnoughForP99);
    content.thirdName = m_spec.pool == PlotSpec::Pool::None ? "mean" : "pooled";
    if (withCursor) content.cursorTime = clockText(m_view->cursor(), 1);
    if (itl && m_visibleCount > 0) content.definition += ", n = " + count(int64_t(m_visibleCount));
    for (size_t i = 0; i < m_spec.series.size(); ++i) {
        const PlotHeader::Entry& added = content.entries.emplace_back(entry(i, withCursor));
        if (hasLimit(m_spec, i) && enough && added.known)
            content.tags.push_back(added.over ? errorTag("P99 over SLO") : okTag("P99 within SLO"));
    }
    if (!m_facts.note.isEmpty()) content.definition += ", " + m_facts.note;
    content.tags.insert(content.tags.end(), m_facts.tags.begin(), m_facts.tags.end());
    if (itl && m_visibleCount > 0 && !enough)
        content.tags.push_back(
            {QString("P99 greyed: n = %1 < %2").arg(int(m_visibleCount)).arg(kEnoughForP99), ""});
    if (m_view->paused()) {
        const double newer = m_view->now() - std::min(m_view->upper(), m_view->shownEnd());
        content.tags.push_back(
            warnTag(newer > 0.5 ? "paused, " + clockText(newer, 0) + " newer recorded" : "paused"));
    }
    return content;
}

// The row of a series in the legend.
PlotHeader::Entry TimePlot::entry(size_t index, bool withCursor) const {
    const PlotSeries& series = m_spec.series[index];
    PlotHeader::Entry entry{series.name(), series.color};
    entry.hidden = m_canvas->seriesHidden(int(index));
    if (!m_read) return entry;
    const SeriesData& data = m_read->series[size_t(series.id)];
    const double factor = m_canvas->factor();
    VisibleStats stats = visibleStats(data, m_view->lower(), m_view->upper());
    for (double* v : {&stats.last, &stats.min, &stats.mean, &stats.max}) *v *= factor;
    const double third = m_spec.pool == PlotSpec::Pool::None ? stats.mean : m_pooled[index];
    // The pooled figure counts every value, the series only windows: show the larger maximum.
    if (third > stats.max) stats.max = third;
    const int decimals = series.decimals >= 0 ? series.decimals : factor > 1 ? 1 : 2;
    entry.known = std::isfinite(stats.last);
    entry.last = figure(stats.last, decimals);
    entry.min = figure(stats.min, decimals);
    entry.third = figure(third, decimals);
    entry.max = figure(stats.max, decimals);
    const double cursor = withCursor
                              ? valueAt(data, m_view->cursor(), m_canvas->cursorReach()) * factor
                              : std::nan("");
    if (withCursor) entry.cursor = figure(cursor, decimals);
    if (hasLimit(m_spec, index)) {
        markOverLimit(&entry, stats, third);
        entry.cursorOver = !m_canvas->sparseAt(m_view->cursor()) && cursor > m_view->sloMs();
    }
    return entry;
}

// A P99 of too few values is grey, and not compared with the limit.
void TimePlot::markOverLimit(PlotHeader::Entry* entry, const VisibleStats& stats,
                             double third) const {
    entry->thirdGrey = m_pooledCount < kEnoughForP99;
    entry->grey = entry->thirdGrey || m_visibleCount < double(kEnoughForP99);
    if (entry->grey) return;
    const double slo = m_view->sloMs();
    entry->over = stats.last > slo;
    entry->minOver = stats.min > slo;
    entry->thirdOver = third > slo;
    entry->maxOver = stats.max > slo;
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
