// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plots_panel.h"

#include <QFileDialog>
#include <QGridLayout>
#include <QMenu>
#include <QVBoxLayout>
#include <cmath>

#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/session/save_file.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

// Hairlines between the columns and rows of a two-column body.
class ColumnLine : public QWidget {
public:
    ColumnLine() { setFixedWidth(1); }
protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(rect(), tone(Tone::Line1));
    }
};

constexpr double kComparedSeconds = 120;  // figures stand beside those before a change
constexpr double kIdleRedraw = 0.25;      // seconds, while nothing runs

QString number(double v, int decimals) { return QString::fromStdString(formatFixed(v, decimals)); }

}  // namespace

const Marker* recentChange(const Snapshot& snapshot) {
    for (size_t i = snapshot.markers.size(); i-- > 0;) {
        const Marker& marker = snapshot.markers[i];
        if (marker.kind == Marker::Kind::Knob)
            return snapshot.now - marker.t <= kComparedSeconds ? &marker : nullptr;
    }
    return nullptr;
}

double valueBefore(const Snapshot& snapshot, SeriesId id, double t) {
    return visibleStats(snapshot.series[size_t(id)], t - 10, t).last;
}

PlotsPanel::PlotsPanel(ViewState* view, QWidget* parent)
    : QWidget(parent), m_view(view), m_figures(new FiguresRow), m_experts(new ExpertsMap),
      m_layout(new QVBoxLayout(this)), m_shown({"hit", "load", "itl", "sm", "experts", "rate", "disk",
                                                "memory"}) {
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    m_figures->setParent(this);
    m_experts->setParent(this);
    m_experts->hide();
    for (int i = 0; i < 2; ++i) {
        auto* lane = new MarkerLane(view, this);
        connect(lane, &MarkerLane::turnClicked, this, &PlotsPanel::turnClicked);
        m_lanes.push_back(lane);
    }
    for (const PlotSpec& spec : plotSpecs()) {
        auto* plot = new TimePlot(spec, view, this);
        connect(plot, &TimePlot::menuRequested, this, &PlotsPanel::showMenu);
        // A source that came or went changes what is shown; not while the plots are being updated.
        connect(plot, &TimePlot::availabilityChanged, this, [this] { m_moved = true; arrange(); },
                Qt::QueuedConnection);
        m_plots.push_back(plot);
    }
    connect(view, &ViewState::rangeChanged, this, [this] {
        if (m_view->following()) return;     // moves with the clock: tick() knows when to redraw
        m_moved = true;
        tick(m_snapshot);
    });
    connect(view, &ViewState::modeChanged, this, [this] {
        m_moved = true;
        tick(m_snapshot);
    });
    connect(view, &ViewState::sloChanged, this, [this] {
        m_moved = true;
        tick(m_snapshot);
    });
    connect(view, &ViewState::cursorChanged, this, [this] {
        for (TimePlot* plot : m_plots) plot->refreshCursor();
        for (MarkerLane* lane : m_lanes) lane->update();
    });
    arrange();
}

void PlotsPanel::setSource(SessionSource* source) {
    m_source = source;
    for (TimePlot* plot : m_plots) plot->setSource(source);
    m_experts->setModel(source ? source->model() : nullptr);
    m_snapshot.reset();
    m_drawnAt = m_pooledAt = m_figuresAt = -1;
    m_moved = true;
}

void PlotsPanel::setDiagnose(std::function<void()> diagnose) {
    for (TimePlot* plot : m_plots) plot->setDiagnose(diagnose);
}

TimePlot* PlotsPanel::plot(const QString& key) const {
    for (TimePlot* plot : m_plots)
        if (plot->spec().key == key) return plot;
    return nullptr;
}

TimePlot* PlotsPanel::focusedPlot() const {
    for (TimePlot* plot : m_plots)
        if (plot->isVisible() && plot->canvas()->hasFocus()) return plot;
    for (TimePlot* plot : m_plots)
        if (plot->isVisible() && !plot->unavailable()) return plot;
    return nullptr;
}

void PlotsPanel::setDensity(Density density, int windowHeight) {
    if (density == m_density && windowHeight == m_windowHeight && m_body) return;
    m_density = density;
    m_windowHeight = windowHeight;
    arrange();
}

void PlotsPanel::setShownPlots(const QSet<QString>& keys) {
    m_shown = keys;
    arrange();
    emit shownChanged();
}

void PlotsPanel::setPlotShown(const QString& key, bool on) {
    if (on) m_shown.insert(key);
    else m_shown.remove(key);
    arrange();
    emit shownChanged();
}

void PlotsPanel::arrange() {
    const bool small = m_density == Density::Small, large = m_density == Density::Large;
    const bool low = m_windowHeight < 800;
    const auto legend = small ? PlotHeader::Legend::Line
                        : m_density == Density::Compact ? PlotHeader::Legend::Short
                                                        : PlotHeader::Legend::Full;
    for (QWidget* lane : m_lanes) lane->setParent(this), lane->hide();
    for (TimePlot* plot : m_plots) plot->setParent(this), plot->hide();
    if (!small) {   // in a narrow window the map stands in a tab of its own
        m_experts->setParent(this);
        m_experts->hide();
    } else {
        m_experts->setMinimumHeight(80);
        m_experts->setMaximumHeight(QWIDGETSIZE_MAX);
    }
    while (QLayoutItem* item = m_layout->takeAt(0)) delete item;
    delete m_body;
    m_body = new QWidget;
    auto* grid = new QGridLayout(m_body);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setSpacing(0);
    const int columns = large ? 2 : 1;
    for (int c = 0; c < columns; ++c) {
        auto* column = new QVBoxLayout;
        column->setSpacing(0);
        column->setContentsMargins(0, 0, 0, 0);
        m_lanes[size_t(c)]->setShort(small);
        column->addWidget(m_lanes[size_t(c)]);
        m_lanes[size_t(c)]->show();
        std::vector<TimePlot*> live;
        for (TimePlot* plot : m_plots) {
            const QString key = plot->spec().key;
            if (!m_shown.contains(key) || plot->unavailable() || key == "sm") continue;
            if (small && key != "hit" && key != "itl") continue;
            // One column has room for the three main plots; the others stand in the second.
            if (!large && plot->spec().secondColumn && !m_shown.contains(key + "+")) continue;
            if (large && int(plot->spec().secondColumn) != c) continue;
            live.push_back(plot);
        }
        for (size_t i = 0; i < live.size(); ++i) {
            const bool last = i + 1 == live.size();
            live[i]->setLegend(legend);
            live[i]->canvas()->setAxisVisible(last);
            column->addWidget(live[i], last ? 112 : 100);
            live[i]->show();
        }
        grid->addLayout(column, 0, 2 * c);
        grid->setColumnStretch(2 * c, 1);
        if (c == 0 && columns == 2) grid->addWidget(new ColumnLine, 0, 1);
    }
    m_layout->addWidget(m_figures);
    m_figures->setLimits(small ? 3 : m_density == Density::Compact ? 4 : 5,
                         !small && m_windowHeight >= 640);
    m_layout->addWidget(m_body, 1);
    m_body->show();
    TimePlot* gpu = plot("sm");
    if (!small && !low && m_shown.contains("sm")) {
        gpu->setLegend(legend);
        m_layout->addWidget(gpu, gpu->unavailable() ? 0 : 1);
        gpu->show();
    }
    if (!small && !low && m_shown.contains("experts")) {
        m_experts->setFixedHeight(large ? 388 : 156);
        m_layout->addWidget(m_experts);
        m_experts->show();
    }
    m_moved = true;
    tick(m_snapshot);
}

void PlotsPanel::tick(const std::shared_ptr<const Snapshot>& snapshot) {
    const bool fresh = snapshot != m_snapshot;
    m_snapshot = snapshot;
    if (!isVisible()) return;
    if (!snapshot) {
        if (!fresh && !m_moved) return;
        m_moved = false;
        for (TimePlot* plot : m_plots) plot->setSnapshot(nullptr, false);
        for (MarkerLane* lane : m_lanes) lane->setSnapshot(nullptr);
        m_experts->setSnapshot(nullptr);
        QVector<FigureCard> cards;
        for (const char* label : {"Decode", "ITL P99", "Hit rate", "Read", "Stall"})
            cards << FigureCard{label, "n/a", "", {caption("no model is loaded")}, ""};
        m_figures->setCards(cards);
        m_drawnAt = m_pooledAt = m_figuresAt = -1;
        return;
    }
    // While following, a redraw is due when the range has moved by half a pixel, or every 100 ms;
    // while nothing runs there is little to see.
    const double pixel = m_view->span() / std::max(100, width());
    const double since = std::abs(snapshot->now - m_drawnAt);
    const bool idle = !m_source || m_source->activeRequests() == 0;
    const double pace = idle ? kIdleRedraw : std::min(0.1, std::max(0.03, pixel / 2));
    const bool due = m_moved || (fresh && since >= pace);
    if (!due) return;
    m_moved = false;
    m_drawnAt = snapshot->now;
    const bool pooled = m_drawnLower != m_view->lower() || std::abs(snapshot->now - m_pooledAt) > 0.5;
    if (pooled) {
        m_pooledAt = snapshot->now;
        m_drawnLower = m_view->lower();
    }
    for (TimePlot* plot : m_plots)
        if (plot->isVisible() || plot->spec().key == "sm") plot->setSnapshot(snapshot, pooled);
    for (MarkerLane* lane : m_lanes)
        if (lane->isVisible()) lane->setSnapshot(snapshot);
    if (m_experts->isVisible()) m_experts->setSnapshot(snapshot);
    if (std::abs(snapshot->now - m_figuresAt) >= 0.25) {   // figures that flicker cannot be read
        m_figuresAt = snapshot->now;
        updateFigures(*snapshot);
    }
}

void PlotsPanel::updateFigures(const Snapshot& snapshot) {
    const Figures& f = snapshot.figures;
    const bool few = f.itlCount < 200;
    QVector<FigureCard> cards;
    FigureCard decode{"Decode", number(f.decodeTokS, 1), "tok/s", {},
                      "Tokens decoded per second, over the last 2 s. A turn's own figure is over "
                      "its whole reply.\nSource: engine events, 2 s window"};
    const Marker* change = recentChange(snapshot);
    const EffectLook effect = change ? effectLook(*change) : EffectLook();
    if (effect.figure && std::isfinite(f.decodeTokS)) {
        decode.detail = {captionMono(effect.text.section(" tok/s", 0, 0), effect.ink),
                         caption(" since " + clockText(change->t, 0))};
    } else if (!std::isfinite(f.itlP50Ms)) {
        decode.detail = {caption("no tokens now")};
    } else {
        decode.detail = {caption("ITL P50 "), captionMono(number(f.itlP50Ms, 1)), caption(" ms")};
    }
    cards << decode;

    FigureCard itl{"ITL P99", number(f.itlP99Ms, 1), "ms", {},
                   "99th percentile of every gap between tokens, pooled.\n"
                   "Source: engine events, 10 s window"};
    const QString slo = number(m_view->sloMs(), 0);
    if (!std::isfinite(f.itlP99Ms)) {
        itl.detail = {caption("SLO " + slo + " ms")};
    } else if (few) {
        itl.detail = {caption(QString("n = %1, under 200").arg(f.itlCount))};
    } else {
        const bool met = f.itlP99Ms <= m_view->sloMs();
        itl.detail = {caption("SLO " + slo + " ms, "),
                      caption(met ? "met" : "over", met ? Tone::Ok : Tone::Error)};
    }
    cards << itl;

    FigureCard hit{"Hit rate", number(f.hitRate, 1), "%", {},
                   "Experts found in memory at first touch, out of all look-ups.\n"
                   "A prefetch that comes late counts as a miss. Over the last 10 s; a turn's own "
                   "figure is over its whole reply.\nSource: engine events, 10 s window"};
    const double before = change && std::isfinite(f.hitRate)
                              ? valueBefore(snapshot, SeriesId::HitRate, change->t) : std::nan("");
    if (std::isfinite(before)) {
        hit.detail = {caption("was " + number(before, 1) + " %")};
    } else if (std::isfinite(f.prefetchHitRate)) {
        hit.detail = {captionMono(number(f.prefetchHitRate, 1)), caption(" % by prefetch")};
    } else {
        hit.detail = {caption("no look-ups now")};
    }
    cards << hit;

    const QString rate = std::isfinite(f.readBytesPerS)
                             ? QString::fromStdString(formatRate(f.readBytesPerS)) : "n/a";
    FigureCard read{"Read", rate.section(' ', 0, 0), rate.section(' ', 1), {},
                    "Bytes of experts read from disk per second, over the last second.\nSource: engine events, 1 s window"};
    const int64_t limit = m_source ? m_source->knobState(KnobId::LinkLimit).effective : 0;
    read.detail = {caption(limit > 0 ? QString("link limit %1 MB/s").arg(limit) : "experts from disk",
                           limit > 0 ? Tone::Warn : Tone::Text3)};
    cards << read;

    cards << FigureCard{"Stall", number(f.stallShare, 0), "%", {caption("waiting for the disk")},
                        "Share of decode time in which compute waited for experts.\n"
                        "Source: engine events, 10 s window"};
    m_figures->setCards(cards);
}

void PlotsPanel::showMenu(TimePlot* plot, const QPoint& at) {
    QMenu menu;
    menu.addAction("Export CSV...", this, [=, this] { exportPlot(plot, "csv"); });
    menu.addAction("Export PNG...", this, [=, this] { exportPlot(plot, "png"); });
    menu.addAction("Export SVG...", this, [=, this] { exportPlot(plot, "svg"); });
    menu.addSeparator();
    const auto& series = plot->spec().series;
    for (int i = 0; i < int(series.size()); ++i) {
        QAction* action = menu.addAction("Show " + series[size_t(i)].name);
        action->setCheckable(true);
        action->setChecked(!plot->canvas()->seriesHidden(i));
        connect(action, &QAction::toggled, plot,
                [plot, i](bool on) { plot->canvas()->setSeriesHidden(i, !on); });
    }
    menu.addSeparator();
    menu.addAction("Reset range", m_view, &ViewState::reset);
    menu.addAction("Hide plot", this, [=, this] {
        setPlotShown(plot->spec().key, false);
        setPlotShown(plot->spec().key + "+", false);
    });
    menu.exec(at);
}

void PlotsPanel::exportPlot(TimePlot* plot, const QString& format, QString path) {
    if (!plot) return;
    if (path.isEmpty()) {
        path = QFileDialog::getSaveFileName(
            this, "Export " + plot->spec().title, plot->spec().key + "." + format,
            format.toUpper() + " (*." + format + ")");
        if (path.isEmpty()) return;
        if (!path.endsWith("." + format)) path += "." + format;
    }
    const Status status = format == "csv" ? saveFile(path, plot->csv().toUtf8())
                                          : plot->saveImage(path);
    if (status.ok()) emit exported(path);
    else emit exportFailed(QString::fromStdString(status.text()));
}

void PlotsPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
}

}  // namespace colibri::ui
