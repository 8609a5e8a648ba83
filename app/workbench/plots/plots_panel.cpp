// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plots_panel.h"

#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>
#include <cmath>
#include <utility>

#include "app/workbench/plots/figure_cards.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/session/ask_file.h"
#include "app/workbench/session/save_file.h"
#include "app/workbench/session/settings.h"

namespace colibri::ui {
namespace {

// A hairline between two columns.
class ColumnLine : public QWidget {
public:
    ColumnLine() { setFixedWidth(1); }
protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(rect(), tone(Tone::Line1));
    }
};

constexpr double kIdleRedraw = 0.25;      // seconds, while nothing runs
constexpr int kBars = 64, kLane = 48;     // heights: top bar and status bar, marker lane
constexpr int kLeastCanvas = 56;          // of a live plot; its header comes on top
constexpr int kMapHeight = 156, kLargeMapHeight = 388;

// By arrangement. The narrow pane has a tab of its own for the map.
const char* const kArrangementNames[] = {"pane", "column", "columns"};
const QSet<QString> kDefaultPlots[] = {
    {"hit", "itl"},
    {"hit", "load", "itl", "sm", "experts"},
    {"hit", "load", "itl", "rate", "disk", "memory", "sm", "experts"},
};

QString shownKey(int arrangement) { return QString("plots/") + kArrangementNames[arrangement]; }

}  // namespace

PlotsPanel::PlotsPanel(ViewState* view, QWidget* parent)
    : QWidget(parent), m_view(view), m_figures(new FiguresRow), m_experts(new ExpertsMap),
      m_choose(new IconButton("chart", "Choose plots")), m_layout(new QVBoxLayout(this)) {
    for (int i = 0; i < kArrangements; ++i) {
        const QVariant stored = settings().value(shownKey(i));
        const QStringList keys = stored.toStringList();
        m_shown[size_t(i)] = stored.isValid() ? QSet<QString>(keys.begin(), keys.end())
                                              : kDefaultPlots[i];
    }
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    m_figures->setParent(this);
    m_experts->setParent(this);
    m_experts->hide();
    m_choose->setParent(m_figures);
    m_choose->setIconSize(14);
    connect(m_choose, &QAbstractButton::clicked, this, [this] {
        QMenu menu;
        fillPlotsMenu(&menu);
        menu.exec(m_choose->mapToGlobal(QPoint(0, m_choose->height())));
    });
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
    m_drawnAt = -1;
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

int PlotsPanel::arrangement() const {
    return m_density == Density::Small ? 0 : m_density == Density::Large ? 2 : 1;
}

void PlotsPanel::setPlotShown(const QString& key, bool on) {
    QSet<QString>& shown = m_shown[size_t(arrangement())];
    if (on) shown.insert(key);
    else shown.remove(key);
    remember();
}

void PlotsPanel::resetShown() {
    for (int i = 0; i < kArrangements; ++i) m_shown[size_t(i)] = kDefaultPlots[i];
    remember();
}

void PlotsPanel::remember() {
    for (int i = 0; i < kArrangements; ++i) {
        const QSet<QString>& shown = m_shown[size_t(i)];
        if (shown == kDefaultPlots[i]) settings().remove(shownKey(i));
        else settings().setValue(shownKey(i), QStringList(shown.begin(), shown.end()));
    }
    arrange();
}

void PlotsPanel::fillPlotsMenu(QMenu* menu) {
    const auto add = [&](const QString& key, const QString& title) {
        QAction* action = menu->addAction(title);
        action->setCheckable(true);
        action->setChecked(plotShown(key));
        connect(action, &QAction::toggled, this, [this, key](bool on) { setPlotShown(key, on); });
    };
    for (const PlotSpec& spec : plotSpecs()) add(spec.key, spec.title);
    if (arrangement() > 0) add("experts", "Experts map");
    menu->addSeparator();
    menu->addAction("Default plots", this, &PlotsPanel::resetShown);
}

void PlotsPanel::arrange() {
    const bool small = m_density == Density::Small;
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
    m_layout->addWidget(m_figures);
    m_figures->setLimits(small ? 3 : m_density == Density::Compact ? 4 : 5,
                         !small && m_windowHeight >= 640);
    m_layout->addWidget(m_body, 1);
    const int needed = addColumns(m_body, legend);
    m_body->show();
    placeBelow(m_windowHeight - kBars - m_figures->height() - kLane - needed, legend);
    m_moved = true;
    tick(m_snapshot);
}

// Marker lanes, and under them the live plots in one or two columns, which scroll where they do not
// fit. Returns the height that the plots need.
int PlotsPanel::addColumns(QWidget* body, PlotHeader::Legend legend) {
    const bool small = m_density == Density::Small;
    const int columns = m_density == Density::Large ? 2 : 1;
    auto* rows = new QVBoxLayout(body);
    auto* lanes = new QHBoxLayout;
    auto* scroll = new QScrollArea;
    auto* content = new QWidget;
    auto* line = new QHBoxLayout(content);
    rows->addLayout(lanes);
    rows->addWidget(scroll, 1);
    for (QLayout* layout : std::initializer_list<QLayout*>{rows, lanes, line}) {
        layout->setContentsMargins(0, 0, 0, 0);
        layout->setSpacing(0);
    }
    int needed = 0;
    for (int c = 0; c < columns; ++c) {
        if (c > 0) {
            lanes->addWidget(new ColumnLine);
            line->addWidget(new ColumnLine);
        }
        m_lanes[size_t(c)]->setShort(small);
        lanes->addWidget(m_lanes[size_t(c)], 1);
        m_lanes[size_t(c)]->show();
        std::vector<TimePlot*> live;
        for (TimePlot* plot : m_plots) {
            const PlotSpec& spec = plot->spec();
            if (!chosen().contains(spec.key) || plot->unavailable() || spec.key == "sm") continue;
            if (columns > 1 && int(spec.secondColumn) != c) continue;
            live.push_back(plot);
        }
        auto* column = new QVBoxLayout;
        column->setSpacing(0);
        int height = 0;
        for (size_t i = 0; i < live.size(); ++i) {
            const bool last = i + 1 == live.size();
            live[i]->setLegend(legend);
            live[i]->canvas()->setAxisVisible(last);
            const int least = live[i]->header()->preferredHeight() + kLeastCanvas +
                              (last ? kPlotBottomAxis - kPlotBottom : 0);
            live[i]->setMinimumHeight(least);
            height += least;
            column->addWidget(live[i], last ? 112 : 100);
            live[i]->show();
        }
        if (live.empty()) column->addStretch();
        line->addLayout(column, 1);
        needed = std::max(needed, height);
    }
    scroll->setWidget(content);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    content->setAutoFillBackground(false);
    scroll->viewport()->setAutoFillBackground(false);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    // The lane keeps the width of the plots, so that lines of equal time align.
    QScrollBar* bar = scroll->verticalScrollBar();
    connect(bar, &QScrollBar::rangeChanged, lanes, [lanes, bar](int, int most) {
        lanes->setContentsMargins(0, 0, most > 0 ? bar->sizeHint().width() : 0, 0);
    });
    return needed;
}

// What leaves `room` below the plots is for: the GPU's plot, and the experts map, which is the
// first to shrink and to go.
void PlotsPanel::placeBelow(int room, PlotHeader::Legend legend) {
    const bool small = m_density == Density::Small, low = m_windowHeight < 800;
    TimePlot* gpu = plot("sm");
    if (chosen().contains("sm") && (small || !low)) {
        gpu->setLegend(legend);
        m_layout->addWidget(gpu, gpu->unavailable() ? 0 : 1);
        gpu->show();
        room -= std::max(gpu->minimumHeight(), kUnavailableHeight);
    }
    if (small || low || !chosen().contains("experts")) return;
    const int most = m_density == Density::Large ? kLargeMapHeight : kMapHeight;
    if (room < kMapHeight) return;
    m_experts->setFixedHeight(room < most ? kMapHeight : most);
    m_layout->addWidget(m_experts);
    m_experts->show();
}

void PlotsPanel::tick(const std::shared_ptr<const Snapshot>& newest) {
    // While paused, what was there then stays; only the note of what is newer goes on.
    const bool frozen = m_view->paused() && newest && m_snapshot;
    const bool fresh = newest != m_snapshot;
    if (!frozen) m_snapshot = newest;
    if (!isVisible()) return;
    if (!newest) {
        if (!fresh && !m_moved) return;
        m_moved = false;
        for (TimePlot* plot : m_plots) plot->setSnapshot(nullptr, false);
        for (MarkerLane* lane : m_lanes) lane->setSnapshot(nullptr);
        m_experts->setSnapshot(nullptr);
        m_drawnAt = -1;
        return;
    }
    // While following, a redraw is due when the range has moved by half a pixel, or every 100 ms;
    // while nothing runs there is little to see.
    const double pixel = m_view->span() / std::max(100, width());
    const double since = std::abs(newest->now - m_drawnAt);
    const bool idle = frozen || !m_source || m_source->activeRequests() == 0;
    const double pace = idle ? kIdleRedraw : std::min(0.1, std::max(0.03, pixel / 2));
    const bool due = m_moved || (fresh && since >= pace);
    if (!due) return;
    const bool moved = std::exchange(m_moved, false);
    m_drawnAt = newest->now;
    for (TimePlot* plot : m_plots)
        if (plot->isVisible() || plot->spec().key == "sm") plot->setSnapshot(m_snapshot, moved);
    for (MarkerLane* lane : m_lanes)
        if (lane->isVisible()) lane->setSnapshot(m_snapshot);
    if (m_experts->isVisible()) m_experts->setSnapshot(m_snapshot);
}

void PlotsPanel::showFigures(const std::shared_ptr<const Snapshot>& snapshot) {
    m_figures->setCards(snapshot && m_source
                            ? figureCards(*snapshot, *m_source, m_view->sloMs())
                            : emptyFigureCards());
    // The legends read the same snapshot; while paused, that of its moment.
    if (!snapshot) return;
    for (TimePlot* plot : m_plots)
        if (plot->isVisible()) plot->readFigures(m_view->paused() && m_snapshot ? m_snapshot : snapshot);
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
    menu.addAction("Hide plot", this, [=, this] { setPlotShown(plot->spec().key, false); });
    fillPlotsMenu(menu.addMenu("Plots"));
    menu.exec(at);
}

void PlotsPanel::exportPlot(TimePlot* plot, const QString& format, QString path) {
    if (!plot) return;
    if (!plot->hasData()) {
        emit exportFailed(plot->spec().title + " has no data between " +
                          clockText(m_view->lower(), 0) + " and " + clockText(m_view->upper(), 0) +
                          ". Move the range to where something was recorded.");
        return;
    }
    if (path.isEmpty()) {
        path = askSaveFile(this, "Export " + plot->spec().title, plot->spec().key + "." + format,
                           format.toUpper() + " (*." + format + ")");
        if (path.isEmpty()) return;
        if (!path.endsWith("." + format)) path += "." + format;
    }
    const Status status = format == "csv" ? saveFile(path, plot->csv().toUtf8())
                                          : plot->saveImage(path);
    if (status.ok()) emit exported(path);
    else emit exportFailed(QString::fromStdString(status.text()));
}

void PlotsPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    m_choose->move(width() - m_choose->width() - 4, 4);
}

void PlotsPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
}

}  // namespace colibri::ui
