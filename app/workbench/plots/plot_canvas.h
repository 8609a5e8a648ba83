// SPDX-License-Identifier: GPL-3.0-or-later
// The drawing area of one plot: a QCustomPlot without its own axes. Grid, axis figures, limit,
// markers and cursor are layers of ours, so that they look alike on every plot and in exports.
// Mouse: wheel zooms in time, drag pans, Shift+drag selects a range, double click resets.
#pragma once

#include <qcustomplot.h>

#include <memory>

#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/plots/view_state.h"

namespace colibri::ui {

class PlotCanvas : public QCustomPlot {
    Q_OBJECT

public:
    PlotCanvas(const PlotSpec& spec, ViewState* view, QWidget* parent = nullptr);

    void setSnapshot(std::shared_ptr<const Snapshot> snapshot);  // redraws
    void setSeriesHidden(int index, bool hidden);
    bool seriesHidden(int index) const { return m_hidden[size_t(index)]; }
    // A bound drawn across the plot: `hard` in error, else dotted. NaN: none.
    void setBound(double value, const QString& label, bool hard);
    void setEmptyReason(const QString& reason) { m_emptyReason = reason; }
    void recolor();        // the theme changed
    void refresh();        // range or data changed
    void refreshCursor();  // the overlay layer alone

    // For the painting layers.
    const PlotSpec& spec() const { return m_spec; }
    ViewState* view() const { return m_view; }
    const Snapshot* snapshot() const { return m_snapshot.get(); }
    const SeriesData* data(int index) const;
    double x(double t) const { return xAxis->coordToPixel(t); }
    double y(double v) const { return yAxis->coordToPixel(v); }
    QRectF area() const { return axisRect()->rect(); }
    int hovered() const { return m_hovered; }
    // P99 of fewer than kEnoughForP99 gaps is drawn grey and dashed, where and when it is so.
    bool sparseAt(double t) const;
    // What values are multiplied by, and their unit: that of the table, or the smaller one.
    double factor() const { return m_factor; }
    QString unit() const { return m_factor == 1 ? m_spec.unit() : m_spec.smallUnit; }
    double bound() const { return m_bound * m_factor; }
    const QString& boundLabel() const { return m_boundLabel; }
    bool boundHard() const { return m_boundHard; }
    const QString& emptyReason() const { return m_emptyReason; }
    bool hasVisibleData() const { return m_hasData; }
    bool drawingExport() const { return m_export; }
    void setExport(bool on);  // as it is drawn in a file: with a time axis, no cursor
    // Of the limit's label, which is dragged; empty: the limit is not in view.
    QRectF sloLabel() const;
    QString sloText() const;

    // Where the plate over an empty plot leads to, "" = nowhere.
    void setEmptyLink(const QString& text) { m_emptyLink = text; }
    const QString& emptyLink() const { return m_emptyLink; }
    QRectF emptyPlate() const;
    QRectF emptyLinkRect() const;

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
    bool crossed(const QRectF& box) const;
    void updateHover(const QPointF& at);
    void updateData();
    void setSparse(const QVector<double>& keys, const QVector<double>& values);

    PlotSpec m_spec;
    ViewState* m_view;
    std::shared_ptr<const Snapshot> m_snapshot;
    std::vector<QCPGraph*> m_graphs;
    QCPGraph* m_sparse = nullptr;  // stretches of the first series with few samples
    std::vector<bool> m_hidden;
    QString m_emptyReason, m_emptyLink;
    double m_top = 0;  // of the y axis
    double m_bound = std::numeric_limits<double>::quiet_NaN();
    QString m_boundLabel;
    bool m_boundHard = false;
    double m_factor = 1;
    bool m_hasData = false, m_export = false;
    int m_hovered = -1;
    Drag m_drag = Drag::None;
    QPointF m_dragFrom;
    double m_dragLower = 0;

    friend class OverlayLayer;
    QRectF m_box;  // range being selected
};

}  // namespace colibri::ui
