// SPDX-License-Identifier: GPL-3.0-or-later
// The residency of every expert: a cell for each layer and expert, coloured by recent use while
// resident. GUI thread only.
#pragma once

#include <QImage>
#include <QWidget>
#include <memory>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

class ExpertsMap : public QWidget {
    Q_OBJECT

public:
    explicit ExpertsMap(QWidget* parent = nullptr);
    void setModel(const ModelFacts* model);
    void setSnapshot(std::shared_ptr<const Snapshot> snapshot);
    // The text of the readout for a cell; "": outside the map.
    QString cellText(int layer, int expert) const;
    QString csv() const;  // one line for each expert: layer, expert, residency, recent use
signals:
    void menuRequested(const QPoint& globalPos);

public:
    int layers() const { return m_layers; }
    int experts() const { return m_experts; }
    QRect cellRect(int layer, int expert) const;

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void focusInEvent(QFocusEvent*) override;
    void focusOutEvent(QFocusEvent*) override;
    void contextMenuEvent(QContextMenuEvent*) override;

private:
    QRect mapRect() const;
    void paintHeader(QPainter& p);
    void paintCells(QPainter& p);
    QColor cellColor(size_t index) const;
    void pointAt(int layer, int expert);

    std::shared_ptr<const Snapshot> m_snapshot;
    std::vector<int> m_layerIndex;
    int m_layers = 0, m_experts = 0;
    bool m_loaded = false;  // a model is loaded
    int m_hoverLayer = -1, m_hoverExpert = -1;
    int m_pinLayer = -1, m_pinExpert = -1;
};

}  // namespace colibri::ui
