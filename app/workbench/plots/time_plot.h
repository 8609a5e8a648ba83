// SPDX-License-Identifier: GPL-3.0-or-later
// One live plot: header with title, state and legend table, and the canvas below. While its source
// is not available it shrinks to a hatched strip that says why.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

class LinkButton;
class PlotCanvas;

class PlotHeader : public QWidget {
    Q_OBJECT

public:
    enum class Legend { Full, Short, Line };  // Short: without min and mean; Line: one row

    struct Entry {
        QString name;
        int color;
        bool hidden = false, over = false;  // over: last is beyond the limit
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
    void setDiagnose(std::function<void()> diagnose);  // where "Diagnose" leads
    // New data; does nothing while hidden. `pooled`: also the costly pooled column.
    void setSnapshot(const std::shared_ptr<const Snapshot>& snapshot, bool moved);
    // The legend takes its figures from this one, so that they can be read and agree with the
    // cards.
    void readFigures(const std::shared_ptr<const Snapshot>& snapshot);
    void refreshRange();  // the shared range moved
    void refreshCursor();

    void refreshLegend();
    void setEmptyLink(const QString& text);  // offered while nothing is to be seen

    // Exports, of the visible range: with the model, the session, the knobs that are not at their
    // defaults, and what changed meanwhile. A picture is kExportWidth wide or as wide as the plot.
    static constexpr int kExportWidth = 1000, kExportRect = 320;
    bool hasData() const;  // a value in the visible range
    QString csv() const;
    QImage image() const;                         // 2 pixels a px
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
    QStringList provenance() const;  // lines of an export that say where it comes from
    QSize exportSize() const;
    bool render(QPaintDevice* device) const;
    double samplesSeen() const;
    void updatePooled();
    bool drawnAlike(const Snapshot& snapshot) const;  // as the one that was drawn last
    void updateFacts();
    void toggle(int index);
    void isolate(int index);

    PlotSpec m_spec;
    ViewState* m_view;
    SessionSource* m_source = nullptr;
    PlotHeader* m_header;
    PlotCanvas* m_canvas;
    LinkButton* m_diagnose;
    std::shared_ptr<const Snapshot> m_snapshot;
    std::shared_ptr<const Snapshot> m_drawn;  // by the canvas
    std::shared_ptr<const Snapshot> m_read;   // behind the figures of the legend
    std::vector<double> m_pooled;             // per series, NaN unknown
    PlotFacts m_facts;
    QString m_unavailable;
    bool m_canDiagnose = false;
    uint64_t m_pooledCount = 0;  // values behind m_pooled
    double m_samples = 0;        // n behind the newest P99 that is seen
};

}  // namespace colibri::ui
