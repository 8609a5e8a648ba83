// SPDX-License-Identifier: GPL-3.0-or-later
// The first page: open a model, try the demo, open a session, diagnose, create a model with random
// weights; the recent list; facts about this machine. GUI thread only.
#pragma once

#include <QAbstractButton>
#include <QWidget>
#include <optional>

#include "app/workbench/backend/machine_facts.h"
#include "app/workbench/backend/recent_list.h"
#include "app/workbench/widgets/controls.h"

class QScrollArea;

namespace colibri::ui {

class RecentTable;

// A large button: icon, title, description, shortcut.
class ActionTile : public QAbstractButton {
    Q_OBJECT

public:
    ActionTile(const QString& icon, const QString& title, const QString& text, const QString& key,
               bool primary, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
    void keyPressEvent(QKeyEvent*) override;

private:
    QString m_icon, m_text, m_key;
    bool m_primary;
};

// Processor, memory, disk, GPU and counters in a framed row, which wraps in a narrow window.
class MachineStrip : public QWidget {
    Q_OBJECT

public:
    explicit MachineStrip(QWidget* parent = nullptr);
    void setFacts(const MachineFacts& facts, const Calibration& rates);
    void setMeasuring(const QString& stage);  // "" = not measuring
    int heightFor(int width) const;

signals:
    void measureRequested();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    struct Cell {
        QString name, value, note;
        double weight;
        bool missing = false;
    };
    QVector<QRectF> places(int width) const;

    QVector<Cell> m_cells;
    QString m_ready, m_stage;
    bool m_slow = false;
    LinkButton* m_measure;
};

class WelcomePage : public QWidget {
    Q_OBJECT

public:
    explicit WelcomePage(RecentList& recent, QWidget* parent = nullptr);
    MachineStrip* machine() const { return m_machine; }
    RecentTable* recent() const { return m_recent; }
    ActionTile* tile(int index) const { return m_tiles[index]; }  // in the order drawn
    // The link is visible only if its target exists.

signals:
    void openModelRequested();
    void demoRequested();
    void openSessionRequested();
    void diagnoseRequested();
    void shapeRequested();
    void openRequested(const QString& path);
    void removeRequested(const colibri::ui::RecentEntry& entry);
    void guideRequested();
    void keyboardSheetRequested();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    static constexpr int kTileCount = 5;
    void arrange();

    QScrollArea* m_scroll;
    QWidget *m_content, *m_title;
    ActionTile* m_tiles[kTileCount];
    LinkButton *m_guide, *m_sheet;
    QWidget* m_sheetKey;
    RecentTable* m_recent;
    MachineStrip* m_machine;
};

}  // namespace colibri::ui
