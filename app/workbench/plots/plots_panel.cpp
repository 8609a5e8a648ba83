// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plots_panel.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>
#include <cmath>
#include <utility>

#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/figure_cards.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"

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

// A line that replaces the plots of experts and the map for a dense model.
class DenseNote : public QWidget {
public:
    DenseNote() {
        setFixedHeight(28);
        setAccessibleName(kText);
    }
    static constexpr const char* kText =
        "This model is dense: it has no experts, so their plots and map do not apply.";

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(rect(), tone(Tone::Bg1));
        drawElided(p, QRectF(12, 0, width() - 24, height()), Qt::AlignVCenter, kText,
                   type::caption(), tone(Tone::Text3));
    }
};

constexpr double kIdleRedraw = 0.25;  // seconds, while nothing runs
constexpr int kMapHeight = 156, kLargeMapHeight = 388;
constexpr int kLeastMapHeight = 104;  // of a recorded session, whose player takes room
constexpr int kFiveCards = 600, kFullLegend = 560;  // px of width that they need

// For each arrangement. The pane of a small window has a tab of its own for the map.
const char* const kArrangementNames[] = {"pane",       "column",       "columns",
                                         "pane-dense", "column-dense", "columns-dense"};
const QSet<QString> kDefaultPlots[] = {
    {"hit", "itl"},
    {"hit", "load", "itl", "sm", "experts"},
    {"hit", "load", "itl", "rate", "disk", "memory", "sm", "experts"},
    {"rate", "itl"},
    {"rate", "itl", "memory", "sm"},
    {"rate", "itl", "queue", "memory", "sm"},
};

QString shownKey(int arrangement) {
    return QString("plots/") + kArrangementNames[arrangement];
}

}  // namespace

PlotsPanel::PlotsPanel(ViewState* view, QWidget* parent)
    : QWidget(parent),
      m_view(view),
      m_figures(new FiguresRow),
      m_verdict(new VerdictChip(this)),
      m_denseNote(new DenseNote),
      m_experts(new ExpertsMap),
      m_choose(new IconButton("chart", "Choose plots")),
      m_layout(new QVBoxLayout(this)) {
    loadShown();
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(0);
    m_figures->setParent(this);
    m_experts->setParent(this);
    m_experts->hide();
    m_denseNote->setParent(this);
    m_denseNote->hide();
    m_choose->setParent(m_figures);
    m_choose->setIconSize(14);
    connect(m_experts, &ExpertsMap::menuRequested, this, &PlotsPanel::showMapMenu);
    connect(m_choose, &QAbstractButton::clicked, this, [this] {
        QMenu menu;
        fillPlotsMenu(&menu);
        menu.exec(m_choose->mapToGlobal(QPoint(0, m_choose->height())));
    });
    addLanes();
    addPlots();
    connectView();
    arrange();
}

// The plots that the user chose before, for each arrangement.
void PlotsPanel::loadShown() {
    for (int i = 0; i < kArrangements; ++i) {
        const QVariant stored = settings().value(shownKey(i));
        const QStringList keys = stored.toStringList();
        m_shown[size_t(i)] =
            stored.isValid() ? QSet<QString>(keys.begin(), keys.end()) : kDefaultPlots[i];
    }
}

// A marker lane and a time axis for each column.
void PlotsPanel::addLanes() {
    for (int i = 0; i < 2; ++i) {
        auto* lane = new MarkerLane(m_view, this);
        connect(lane, &MarkerLane::turnClicked, this, &PlotsPanel::turnClicked);
        m_lanes.push_back(lane);
        m_axes.push_back(new TimeAxis(m_view, this));
    }
}

void PlotsPanel::addPlots() {
    for (const PlotSpec& spec : plotSpecs()) {
        auto* plot = new TimePlot(spec, m_view, this);
        connect(plot, &TimePlot::menuRequested, this, &PlotsPanel::showMenu);
        connect(plot->canvas(), &PlotCanvas::emptyLinkClicked, this, &PlotsPanel::showLastTurn);
        // A plot whose availability changed is arranged again, after all plots were updated.
        connect(
            plot, &TimePlot::availabilityChanged, this,
            [this] {
                m_moved = true;
                arrange();
            },
            Qt::QueuedConnection);
        m_plots.push_back(plot);
    }
}

void PlotsPanel::connectView() {
    connect(m_view, &ViewState::rangeChanged, this, [this] {
        if (!m_view->following()) redraw();  // else tick() knows when to redraw
    });
    connect(m_view, &ViewState::modeChanged, this, &PlotsPanel::redraw);
    connect(m_view, &ViewState::sloChanged, this, &PlotsPanel::redraw);
    connect(m_view, &ViewState::cursorChanged, this, [this] {
        for (TimePlot* plot : m_plots) plot->refreshCursor();
        for (MarkerLane* lane : m_lanes) lane->update();
    });
}

void PlotsPanel::redraw() {
    m_moved = true;
    tick(m_snapshot);
}

void PlotsPanel::setSource(SessionSource* source) {
    m_source = source;
    for (TimePlot* plot : m_plots) plot->setSource(source);
    m_experts->setModel(source ? source->model() : nullptr);
    m_snapshot.reset();
    m_drawnAt = m_readActivity = -1;
    m_moved = true;
    const bool dense = source && source->model() && source->model()->isDense();
    const auto first = source ? source->snapshot() : nullptr;
    m_recorded = first && first->recorded;
    if (std::exchange(m_dense, dense) != dense)
        arrange();
    else
        fit();
}

void PlotsPanel::setVerdicts(const std::vector<Verdict>& verdicts) {
    m_verdict->setVerdicts(verdicts);
    fit();
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

void PlotsPanel::setWindowClass(WindowClass windowClass) {
    if (windowClass == m_windowClass && m_body) return;
    m_windowClass = windowClass;
    arrange();
}

int PlotsPanel::arrangement() const {
    const int size = m_windowClass == WindowClass::Small   ? 0
                     : m_windowClass == WindowClass::Large ? 2
                                                           : 1;
    return size + (m_dense ? kArrangements / 2 : 0);
}

void PlotsPanel::setPlotShown(const QString& key, bool on) {
    QSet<QString>& shown = m_shown[size_t(arrangement())];
    if (on)
        shown.insert(key);
    else
        shown.remove(key);
    remember();
}

void PlotsPanel::resetShown() {
    for (int i = 0; i < kArrangements; ++i) m_shown[size_t(i)] = kDefaultPlots[i];
    remember();
}

void PlotsPanel::remember() {
    for (int i = 0; i < kArrangements; ++i) {
        const QSet<QString>& shown = m_shown[size_t(i)];
        if (shown == kDefaultPlots[i])
            settings().remove(shownKey(i));
        else
            settings().setValue(shownKey(i), QStringList(shown.begin(), shown.end()));
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
    for (const PlotSpec& spec : plotSpecs())
        if (plotApplies(spec)) add(spec.key, spec.title);
    const bool noRoom = plotShown("experts") && isVisible() && !m_experts->isVisible();
    if (m_windowClass != WindowClass::Small && !m_dense)
        add("experts", noRoom ? "Experts map (no room: hide a plot)" : "Experts map");
    menu->addSeparator();
    menu->addAction("Default plots", this, &PlotsPanel::resetShown);
}

PlotHeader::Legend PlotsPanel::legend() const {
    return m_windowClass == WindowClass::Small ? PlotHeader::Legend::Line
           : m_windowClass == WindowClass::Compact || width() < kFullLegend
               ? PlotHeader::Legend::Short
               : PlotHeader::Legend::Full;
}

void PlotsPanel::arrange() {
    const bool small = m_windowClass == WindowClass::Small;
    for (QWidget* lane : m_lanes) lane->setParent(this), lane->hide();
    for (QWidget* axis : m_axes) axis->setParent(this), axis->hide();
    for (TimePlot* plot : m_plots) plot->setParent(this), plot->hide();
    if (!small) {  // a small window has the map in a tab of its own
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
    m_layout->addWidget(m_verdict);
    m_layout->addWidget(m_body, 1);
    m_needed = addColumns(m_body);
    m_body->show();
    m_layout->addWidget(m_denseNote);
    m_denseNote->setVisible(m_dense);
    for (TimePlot* plot : m_plots)
        if (plot->unavailable()) m_layout->addWidget(plot);
    if (!small) m_layout->addWidget(m_experts);
    fit();
    m_moved = true;
    tick(m_snapshot);
}

// Fills `body` with marker lanes, the live plots in one or two columns, which scroll if they do not
// fit, and time axes. Returns the height in px that the plots need.
int PlotsPanel::addColumns(QWidget* body) {
    const bool small = m_windowClass == WindowClass::Small;
    const int columns = m_windowClass == WindowClass::Large ? 2 : 1;
    auto* rows = new QVBoxLayout(body);
    auto* lanes = new QHBoxLayout;
    auto* axes = new QHBoxLayout;
    auto* scroll = new QScrollArea;
    auto* content = new QWidget;
    auto* line = new QHBoxLayout(content);
    rows->addLayout(lanes);
    rows->addWidget(scroll, 1);
    rows->addLayout(axes);
    for (QLayout* layout : std::initializer_list<QLayout*>{rows, lanes, line, axes}) {
        layout->setContentsMargins(0, 0, 0, 0);
        layout->setSpacing(0);
    }
    int needed = 0;
    for (int c = 0; c < columns; ++c) {
        if (c > 0)
            for (QHBoxLayout* layout : {lanes, line, axes}) layout->addWidget(new ColumnLine);
        m_lanes[size_t(c)]->setShort(small);
        lanes->addWidget(m_lanes[size_t(c)], 1);
        m_lanes[size_t(c)]->show();
        axes->addWidget(m_axes[size_t(c)], 1);
        m_axes[size_t(c)]->show();
        auto* column = new QVBoxLayout;
        column->setSpacing(0);
        int height = 0;
        for (TimePlot* plot : m_plots) {
            const PlotSpec& spec = plot->spec();
            if (!chosen().contains(spec.key) || !plotApplies(spec) || plot->unavailable()) continue;
            if (columns > 1 && int(spec.secondColumn) != c) continue;
            plot->setLegend(legend());
            plot->setMinimumHeight(plot->header()->preferredHeight() + kLeastCanvas + 1);
            height += plot->minimumHeight();
            column->addWidget(plot, 1);
            plot->show();
        }
        if (height == 0) column->addStretch();
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
    // Lane and axis have the width of the plots, so that equal times are aligned.
    QScrollBar* bar = scroll->verticalScrollBar();
    connect(bar, &QScrollBar::rangeChanged, lanes, [lanes, axes, bar](int, int most) {
        for (QHBoxLayout* layout : {lanes, axes})
            layout->setContentsMargins(0, 0, most > 0 ? bar->sizeHint().width() : 0, 0);
    });
    return needed;
}

// Distributes the height that the live plots leave. If there is not enough, the map shrinks and is
// hidden first, then the unavailable plots, then the details of the cards.
void PlotsPanel::fit() {
    const bool small = m_windowClass == WindowClass::Small;
    std::vector<TimePlot*> missing;
    for (TimePlot* plot : m_plots)
        if (plot->unavailable() && chosen().contains(plot->spec().key) && plotApplies(plot->spec()))
            missing.push_back(plot);
    int room = height() - m_lanes[0]->height() - kTimeAxisHeight - m_needed -
               (m_dense ? m_denseNote->height() : 0);
    if (!m_verdict->verdicts().empty()) {
        m_verdict->setFixedHeight(m_verdict->heightFor(width()));
        room -= m_verdict->height();
    }
    const bool details = !small && room >= FiguresRow::kTall;
    const int most = small                                                           ? 3
                     : m_windowClass == WindowClass::Compact || width() < kFiveCards ? 4
                                                                                     : 5;
    m_figures->setLimits(most, details);
    room -= m_figures->height();
    const int missingHeight = int(missing.size()) * kUnavailableHeight;
    const bool map = !small && chosen().contains("experts") && !m_dense;
    const int leastMap = m_recorded ? kLeastMapHeight : kMapHeight;
    // The map of a recorded session goes before plots that it cannot have.
    const bool showMissing = room >= missingHeight + (map && m_recorded ? leastMap : 0);
    for (TimePlot* plot : missing) {
        plot->setLegend(legend());
        plot->setVisible(showMissing);
    }
    if (showMissing) room -= missingHeight;
    if (small) return;
    const int large = m_windowClass == WindowClass::Large ? kLargeMapHeight : kMapHeight;
    m_experts->setFixedHeight(room >= large ? large
                                            : std::min(kMapHeight, std::max(leastMap, room)));
    m_experts->setVisible(map && room >= leastMap);
}

void PlotsPanel::showLastTurn() {
    if (const auto turn = m_lanes[0]->lastTurn()) emit turnClicked(turn->first, turn->second);
}

// Whether the plots look different than when they were drawn: a request runs, the range moved, or
// something in it was recorded since.
bool PlotsPanel::visiblyChanged(const Snapshot& snapshot) const {
    // All of a recorded session is drawn: the time of its snapshot changes nothing.
    if (snapshot.recorded) return m_moved || snapshot.detail != m_drawnDetail;
    return m_moved || snapshot.running > 0 || snapshot.lastActivity != m_drawnActivity ||
           m_view->upper() != m_drawnUpper || m_drawnAt < std::min(m_view->upper(), snapshot.now);
}

void PlotsPanel::tick(const std::shared_ptr<const Snapshot>& newest) {
    // While paused, the old snapshot stays; only the tag with the time since the pause changes.
    const bool frozen = m_view->paused() && newest && m_snapshot;
    const bool fresh = newest != m_snapshot;
    if (!frozen) m_snapshot = newest;
    // A small window shows the map in a tab of its own, instead of this panel.
    if (!isVisible() && m_experts->isVisible()) m_experts->setSnapshot(m_snapshot);
    if (!isVisible() || window()->isMinimized()) return;
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
    const bool due = m_moved || (fresh && (since >= pace || newest->recorded));
    if (!due) return;
    if (frozen && !m_moved) {  // only the tag with the time since the pause changes
        if (since < 1) return;
        m_drawnAt = newest->now;
        for (TimePlot* plot : m_plots) plot->refreshLegend();
        return;
    }
    if (m_experts->isVisible()) m_experts->setSnapshot(m_snapshot);
    if (!visiblyChanged(*newest)) return;
    const bool moved = std::exchange(m_moved, false);
    m_drawnAt = newest->now;
    m_drawnUpper = m_view->upper();
    m_drawnActivity = newest->lastActivity;
    m_drawnDetail = newest->detail;
    const QString link = newest->turns > 0 ? QString("Show the last turn") : QString();
    for (TimePlot* plot : m_plots) {
        plot->setEmptyLink(link);
        // A hidden plot may be unavailable: its source can become available.
        if (plot->isVisible() || !plot->spec().needs.isEmpty())
            plot->setSnapshot(m_snapshot, moved);
    }
    for (MarkerLane* lane : m_lanes)
        if (lane->isVisible()) lane->setSnapshot(m_snapshot, moved);
}

void PlotsPanel::showFigures(const std::shared_ptr<const Snapshot>& snapshot) {
    m_figures->setCards(snapshot && m_source ? figureCards(*snapshot, *m_source, m_view->sloMs())
                                             : emptyFigureCards());
    // The legends show the same snapshot; while paused, the one of the pause.
    if (!snapshot || !isVisible() || window()->isMinimized()) return;
    const bool same = snapshot->running == 0 && snapshot->lastActivity == m_readActivity &&
                      snapshot->now > m_view->upper();
    if (same || (m_view->paused() && m_readActivity >= 0)) return;
    m_readActivity = snapshot->lastActivity;
    for (TimePlot* plot : m_plots)
        if (plot->isVisible())
            plot->readFigures(m_view->paused() && m_snapshot ? m_snapshot : snapshot);
}

void PlotsPanel::showMenu(TimePlot* plot, const QPoint& at) {
    QMenu menu;
    menu.addAction("Copy image", this,
                   [plot] { QGuiApplication::clipboard()->setImage(plot->image()); })
        ->setEnabled(plot->hasData());
    menu.addAction("Copy values", this,
                   [plot] { QGuiApplication::clipboard()->setText(plot->csv()); })
        ->setEnabled(plot->hasData());
    menu.addSeparator();
    menu.addAction("Export CSV...", this, [=, this] { exportPlot(plot, "csv"); });
    menu.addAction("Export PNG...", this, [=, this] { exportPlot(plot, "png"); });
    menu.addAction("Export SVG...", this, [=, this] { exportPlot(plot, "svg"); });
    menu.addSeparator();
    const auto& series = plot->spec().series;
    for (int i = 0; i < int(series.size()); ++i) {
        QAction* action = menu.addAction("Show " + series[size_t(i)].name());
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

void PlotsPanel::showMapMenu(const QPoint& at) {
    QMenu menu;
    menu.addAction("Copy image", this,
                   [this] { QGuiApplication::clipboard()->setImage(m_experts->grab().toImage()); });
    menu.addAction("Copy values", this,
                   [this] { QGuiApplication::clipboard()->setText(m_experts->csv()); });
    menu.addSeparator();
    if (m_windowClass != WindowClass::Small)
        menu.addAction("Hide map", this, [this] { setPlotShown("experts", false); });
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
        path = askSaveFile(this, "Export " + plot->spec().title, plot->fileName() + "." + format,
                           format.toUpper() + " (*." + format + ")");
        if (path.isEmpty()) return;
        if (!path.endsWith("." + format)) path += "." + format;
    }
    const Status status =
        format == "csv" ? saveFile(path, plot->csv().toUtf8()) : plot->saveImage(path);
    if (status.ok())
        emit exported(path);
    else
        emit exportFailed(str(status.text()));
}

void PlotsPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    m_choose->move(width() - m_choose->width() - 4, 4);
    for (TimePlot* plot : m_plots) plot->setLegend(legend());
    fit();
}

void PlotsPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Plot));
}

}  // namespace colibri::ui
