// SPDX-License-Identifier: GPL-3.0-or-later
// One live plot: a header with title, tags and legend table, and the canvas below. While its source
// is unavailable, it is a hatched strip with the reason. Times are seconds of the session. GUI
// thread only.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

class LinkButton;
class PlotCanvas;

class PlotHeader : public QWidget {
    Q_OBJECT

public:
    enum class Legend { Full, Short, Line };  // Short: without min and mean; Line: a single row

    struct Entry {
        QString name;
        int color;
        bool hidden = false, over = false;  // over: the last value exceeds the limit
        bool known = false;                 // the range has a value
        QString cursor, last, min, third, max;
        bool grey = false, thirdGrey = false;  // a percentile of too few values
        bool cursorOver = false, minOver = false, thirdOver = false, maxOver = false;
        bool operator==(const Entry&) const = default;
    };
    struct Content {
        QString title, unit, definition, thirdName, cursorTime, right;
        double rightInset = 0;  // room for a link after `right`
        std::vector<TagLook> tags;
        std::vector<Entry> entries;
        bool operator==(const Content&) const = default;
    };

    explicit PlotHeader(QWidget* parent = nullptr);
    void setLegend(Legend legend);
    void setContent(const Content& content);
    const Content& content() const { return m_content; }
    QSize sizeHint() const override { return {200, preferredHeight()}; }
    int preferredHeight() const;
    void render(QPainter& p, double width) const;

signals:
    void entryClicked(int index);
    void entryIsolated(int index);

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void mouseDoubleClickEvent(QMouseEvent*) override;

private:
    QStringList columns() const;
    void renderLine(QPainter& p, double width) const;
    void renderTable(QPainter& p, double width, double* left) const;
    int entryAt(const QPointF& at) const;

    Content m_content;
    Legend m_legend = Legend::Full;
};

class TimePlot : public QWidget {
    Q_OBJECT

public:
    TimePlot(const PlotSpec& spec, ViewState* view, QWidget* parent = nullptr);

    const PlotSpec& spec() const { return m_spec; }
    PlotCanvas* canvas() const { return m_canvas; }
    PlotHeader* header() const { return m_header; }
    bool unavailable() const { return !m_unavailable.isEmpty(); }
    void setSource(SessionSource* source);
    void setLegend(PlotHeader::Legend legend);
    void setDiagnose(std::function<void()> diagnose);  // runs on a click on "Diagnose"
    // New data for the graphs; while hidden only the availability is updated. `moved`: range or
    // settings changed too, so the plot must be drawn even if the data is the same.
    void setSnapshot(const std::shared_ptr<const Snapshot>& snapshot, bool moved);
    // New figures for the legend. A few times a second, from the same snapshot as the cards.
    void readFigures(const std::shared_ptr<const Snapshot>& snapshot);
    void refreshRange();  // the shared range moved
    void refreshCursor();

    void refreshLegend();
    void setEmptyLink(const QString& text);  // a link in the plot while it has no data; "": none

    // Exports of the visible range: with model, session, knobs that are not at their defaults, and
    // knob changes in the range. A picture is kExportWidth px wide, or as wide as the plot.
    static constexpr int kExportWidth = 1000, kExportRect = 320;
    bool hasData() const;  // a value in the visible range
    QString csv() const;
    QImage image() const;                         // with 2 device pixels for each px
    Status saveImage(const QString& path) const;  // .png or .svg
    QString fileName() const;                     // "expert-load"

signals:
    void menuRequested(TimePlot* plot, const QPoint& globalPos);
    void availabilityChanged();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void showEvent(QShowEvent*) override;
    void changeEvent(QEvent*) override;
    void contextMenuEvent(QContextMenuEvent*) override;

private:
    void updateLegend();
    PlotHeader::Content legend(bool withCursor) const;
    PlotHeader::Entry entry(size_t index, bool withCursor) const;
    void markOverLimit(PlotHeader::Entry* entry, const VisibleStats& stats, double third) const;
    QString unavailableReason(const Snapshot* snapshot) const;
    void setUnavailable(const QString& reason);
    QStringList provenance() const;  // lines of an export: model, session, time, knobs
    QSize exportSize() const;
    bool render(QPaintDevice* device) const;
    double visibleCount() const;
    void updatePooled();
    bool looksLikeDrawn(const Snapshot& snapshot) const;
    void updateFacts();
    void updateEmptyNotice();
    void toggle(int index);
    void isolate(int index);

    PlotSpec m_spec;
    ViewState* m_view;
    SessionSource* m_source = nullptr;
    PlotHeader* m_header;
    PlotCanvas* m_canvas;
    LinkButton* m_diagnose;
    std::shared_ptr<const Snapshot> m_snapshot;
    std::shared_ptr<const Snapshot> m_drawn;  // last one drawn by the canvas
    std::shared_ptr<const Snapshot> m_read;   // of the figures in the legend
    std::vector<double> m_pooled;             // for each series, ms; NaN: not known
    PlotFacts m_facts;
    QString m_unavailable, m_emptyLink;
    bool m_canDiagnose = false;
    uint64_t m_pooledCount = 0;  // number of values in m_pooled
    double m_visibleCount = 0;   // number of values of the newest visible P99
};

}  // namespace colibri::ui
