// SPDX-License-Identifier: GPL-3.0-or-later
// The middle of the chat page: figure cards, marker lane, plots in one or two columns with linked
// time axes, experts map. Its size decides what is shown; hidden plots do no work. If there is not
// enough room, the map is hidden first, then unavailable plots, then the details of the cards. Live
// plots keep a height of kLeastCanvas and scroll below the time axis. GUI thread only.
#pragma once

#include <QSet>
#include <QWidget>
#include <array>
#include <functional>
#include <memory>

#include "app/workbench/backend/snapshot_view.h"
#include "app/workbench/plots/experts_map.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/time_axis.h"
#include "app/workbench/plots/time_plot.h"
#include "app/workbench/plots/verdict_chip.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/figures_row.h"
#include "app/workbench/widgets/window_class.h"

class QMenu;
class QVBoxLayout;

namespace colibri::ui {

class PlotsPanel : public QWidget, public SnapshotView {
    Q_OBJECT

public:
    PlotsPanel(ViewState* view, QWidget* parent = nullptr);
    void setSource(SessionSource* source);
    void setWindowClass(WindowClass windowClass);
    static constexpr int kLeastCanvas = 96;  // px, height of a live plot without its header
    void setDiagnose(std::function<void()> diagnose);
    // Redraws at most as often as the plots move by half a pixel.
    void tick(const std::shared_ptr<const Snapshot>& newest) override;
    // Updates cards and legends, a few times a second so that they can be read. The status bar
    // shows the same snapshot.
    void showFigures(const std::shared_ptr<const Snapshot>& snapshot);

    // Which plots are shown, by key, and "experts" for the map. The choice is saved for each
    // arrangement (small window, one column, two columns), separately for dense models.
    bool plotShown(const QString& key) const { return chosen().contains(key); }
    bool plotApplies(const PlotSpec& spec) const { return !m_dense || !spec.ofExperts; }
    void setPlotShown(const QString& key, bool on);
    void resetShown();                // of all arrangements
    void fillPlotsMenu(QMenu* menu);  // adds a checkable entry for each
    TimePlot* plot(const QString& key) const;
    TimePlot* focusedPlot() const;  // or the first visible one
    ExpertsMap* experts() const { return m_experts; }
    FiguresRow* figures() const { return m_figures; }
    MarkerLane* lane() const { return m_lanes[0]; }
    TimeAxis* timeAxis() const { return m_axes[0]; }
    // What limits a recorded session, below the cards; empty: nothing is shown.
    void setVerdicts(const std::vector<Verdict>& verdicts);
    VerdictChip* verdict() const { return m_verdict; }
    void showLastTurn();  // does nothing if there is none

    // Exports a plot as "csv", "png" or "svg"; an empty path opens a file dialog. The result is
    // reported by exported() or exportFailed().
    void exportPlot(TimePlot* plot, const QString& format, QString path = {});

signals:
    void exported(const QString& path);
    void exportFailed(const QString& reason);  // path and why
    void turnClicked(double from, double to);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    static constexpr int kArrangements = 6;  // three for models with experts, three without
    int arrangement() const;
    const QSet<QString>& chosen() const { return m_shown[size_t(arrangement())]; }
    void remember();
    void arrange();
    int addColumns(QWidget* body);
    void loadShown();
    void addLanes();
    void addPlots();
    void connectView();
    void redraw();  // after a change of range, mode or limit
    void fit();
    PlotHeader::Legend legend() const;
    bool visiblyChanged(const Snapshot& snapshot) const;
    void showMenu(TimePlot* plot, const QPoint& at);
    void showMapMenu(const QPoint& at);

    ViewState* m_view;
    SessionSource* m_source = nullptr;
    WindowClass m_windowClass = WindowClass::Normal;
    bool m_dense = false;
    bool m_recorded = false;  // the source is a session file
    int m_needed = 0;         // height of the live plots
    FiguresRow* m_figures;
    VerdictChip* m_verdict;
    std::vector<MarkerLane*> m_lanes;
    std::vector<TimeAxis*> m_axes;
    QWidget* m_denseNote;
    std::vector<TimePlot*> m_plots;  // in the order of plotSpecs()
    ExpertsMap* m_experts;
    IconButton* m_choose;  // the menu of plots, over the figures
    QVBoxLayout* m_layout;
    QWidget* m_body = nullptr;  // lanes, and the columns in a scroll area
    std::array<QSet<QString>, kArrangements> m_shown;
    std::shared_ptr<const Snapshot> m_snapshot;
    uint64_t m_drawnDetail = 0;
    double m_drawnAt = -1, m_drawnUpper = -1, m_drawnActivity = -1;
    double m_readActivity = -1;  // of the figures that were read last
    bool m_moved = true;
};

}  // namespace colibri::ui
