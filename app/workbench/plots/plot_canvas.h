// SPDX-License-Identifier: GPL-3.0-or-later
// The drawing area of one plot: a QCustomPlot without its axes. Own layers (plot_layers.h) draw
// grid, axis figures, limits, markers and cursor, the same way in every plot and in exports. Times
// are seconds of the session. GUI thread only.
// Mouse: the wheel zooms in time, drag pans, Shift+drag selects a range, double click resets.
#pragma once

#include <qcustomplot.h>

#include <algorithm>
#include <memory>

#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/plots/view_state.h"

namespace colibri::ui {

class PlotCanvas : public QCustomPlot {
    Q_OBJECT

public:
    // The text in a plot without data.
    struct EmptyNotice {
        QString reason = "nothing was recorded in this range";
        QString link = {};  // a link after the reason; "": none
    };
    // Where labels are, in px; an empty rectangle: not shown.
    struct Labels {
        QRectF slo;  // of the ITL limit; can be dragged
        QString sloText;
        QRectF emptyPlate, emptyLink;  // of the EmptyNotice
    };

    PlotCanvas(const PlotSpec& spec, ViewState* view, QWidget* parent = nullptr);

    void setSnapshot(std::shared_ptr<const Snapshot> snapshot);  // redraws
    void setSeriesHidden(int index, bool hidden);
    bool seriesHidden(int index) const { return m_hidden[size_t(index)]; }
    // In the unit of the table; bound() has the unit that is shown.
    void setBound(const PlotBound& bound) { m_bound = bound; }
    PlotBound bound() const { return {m_bound.value * m_factor, m_bound.label, m_bound.hard}; }
    void setEmptyNotice(const EmptyNotice& notice) { m_empty = notice; }
    const EmptyNotice& emptyNotice() const { return m_empty; }
    void setExport(bool on);  // draws as for a file: with a time axis, without cursor
    void recolor();           // after a change of theme
    void refresh();           // after a change of range or data
    void refreshCursor();     // redraws the overlay layer only

    // For the layers.
    const PlotSpec& spec() const { return m_spec; }
    ViewState* view() const { return m_view; }
    const Snapshot* snapshot() const { return m_snapshot.get(); }
    const SeriesData* data(int index) const;
    double x(double t) const { return xAxis->coordToPixel(t); }  // px
    double y(double v) const { return yAxis->coordToPixel(v); }  // px
    QRectF area() const { return axisRect()->rect(); }
    int hovered() const { return m_hovered; }  // index of a series, -1: none
    // Whether the P99 at this time has fewer than kEnoughForP99 values: it is grey and dashed.
    // Seconds; a value so near counts as that at the cursor. A pixel of a long range covers more
    // than the time between two points.
    double cursorReach() const { return std::max(1.0, m_view->span() / 500); }
    bool sparseAt(double t) const;
    // Values are multiplied by the factor: 1, or 1000 if the smaller unit is shown.
    double factor() const { return m_factor; }
    QString unit() const { return m_factor == 1 ? m_spec.unit() : m_spec.smallUnit; }
    bool hasVisibleData() const { return m_hasData; }
    bool drawingExport() const { return m_export; }
    Labels labels() const;

signals:
    void emptyLinkClicked();
    void menuRequested(const QPoint& globalPos);

protected:
    void mousePressEvent(QMouseEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mouseReleaseEvent(QMouseEvent*) override;
    void mouseDoubleClickEvent(QMouseEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void contextMenuEvent(QContextMenuEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void focusInEvent(QFocusEvent*) override;
    void focusOutEvent(QFocusEvent*) override;

private:
    enum class Drag { None, Pan, Box, Slo };
    double timeAt(double px) const { return xAxis->pixelToCoord(px); }
    QRectF sloLabel() const;
    QString sloText() const;
    QRectF emptyPlate() const;
    QRectF emptyLink() const;
    bool crossed(const QRectF& box) const;  // whether the first series runs through the box
    void updateHover(const QPointF& at);
    void updateData();
    void setSparse(const QVector<double>& keys, const QVector<double>& values);

    PlotSpec m_spec;
    ViewState* m_view;
    std::shared_ptr<const Snapshot> m_snapshot;
    std::vector<QCPGraph*> m_graphs;
    QCPGraph* m_sparse = nullptr;  // parts of the first series with few values
    std::vector<bool> m_hidden;
    EmptyNotice m_empty;
    double m_top = 0;  // of the y axis
    PlotBound m_bound;
    double m_factor = 1;
    bool m_hasData = false, m_export = false;
    int m_hovered = -1;
    Drag m_drag = Drag::None;
    QPointF m_dragFrom;
    double m_dragLower = 0;

    friend class OverlayLayer;
    QRectF m_box;  // of the range that is being selected
};

}  // namespace colibri::ui
