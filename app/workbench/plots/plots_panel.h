// SPDX-License-Identifier: GPL-3.0-or-later
// The middle of the chat page: figures, marker lane, plots in one or two columns with linked time
// axes, experts map. Decides by its size what is shown; hidden plots do no work. Where room is
// short the map goes first, then plots that are n/a, then the line under the figures; live plots
// keep kLeastCanvas and scroll, with the axis of time in view.
#pragma once

#include <QSet>
#include <QWidget>
#include <array>
#include <functional>
#include <memory>

#include "app/workbench/plots/experts_map.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/time_axis.h"
#include "app/workbench/plots/time_plot.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/figures_row.h"
#include "app/workbench/widgets/window_class.h"

class QMenu;
class QVBoxLayout;

namespace colibri::ui {

class PlotsPanel : public QWidget {
    Q_OBJECT

public:
    PlotsPanel(ViewState* view, QWidget* parent = nullptr);
    void setSource(SessionSource* source);
    void setWindowClass(WindowClass windowClass);
    static constexpr int kLeastCanvas = 96;  // height of a live plot below its header
    void setDiagnose(std::function<void()> diagnose);
    // Called by the window's timer; redraws at most as often as something moves by a pixel.
    void tick(const std::shared_ptr<const Snapshot>& newest);
    // The newest, or that of the moment of the pause.
    const std::shared_ptr<const Snapshot>& shownSnapshot() const { return m_snapshot; }
    // The figures, as often as they can be read; the window gives the status bar the same.
    // Cards and legends: figures that are read, a few times a second, and both of one snapshot.
    void showFigures(const std::shared_ptr<const Snapshot>& snapshot);

    // Which plots are shown, by key, and "experts": chosen and remembered for each arrangement
    // (a narrow pane, one column, two columns).
    // A model without experts has choices of its own, without what tells of experts.
    bool plotShown(const QString& key) const { return chosen().contains(key); }
    bool plotApplies(const PlotSpec& spec) const { return !m_dense || !spec.ofExperts; }
    void setPlotShown(const QString& key, bool on);
    void resetShown();                // of all arrangements
    void fillPlotsMenu(QMenu* menu);  // a checkable entry for each
    TimePlot* plot(const QString& key) const;
    TimePlot* focusedPlot() const;  // else the first shown
    ExpertsMap* experts() const { return m_experts; }
    FiguresRow* figures() const { return m_figures; }
    MarkerLane* lane() const { return m_lanes[0]; }
    TimeAxis* timeAxis() const { return m_axes[0]; }
    void showLastTurn();  // does nothing before the first

    // Exports; an empty path asks for one. Errors are shown as messages by the window.
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
    void fit();
    PlotHeader::Legend legend() const;
    bool visiblyChanged(const Snapshot& snapshot) const;
    void showMenu(TimePlot* plot, const QPoint& at);
    void showMapMenu(const QPoint& at);

    ViewState* m_view;
    SessionSource* m_source = nullptr;
    WindowClass m_windowClass = WindowClass::Normal;
    bool m_dense = false;
    int m_needed = 0;  // height of the live plots
    FiguresRow* m_figures;
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
    double m_drawnAt = -1, m_drawnUpper = -1, m_drawnActivity = -1;
    double m_readActivity = -1;  // of the figures that were read last
    bool m_moved = true;
};

}  // namespace colibri::ui
