// SPDX-License-Identifier: GPL-3.0-or-later
// The status bar: cells that show what they are given; each is a button to its details.
#pragma once

#include <QAbstractButton>
#include <QWidget>

#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

// One cell of the status bar: any of dot, icon, label, bar, value.
class StatusCell : public QAbstractButton {
    Q_OBJECT

public:
    struct Content {
        QString icon, label, value;
        Tone dot = Tone::Count;          // Count: none
        double bar = -1;                 // share; < 0: none
        bool muted = false;              // value in text3
        Tone valueTone = Tone::Text1;
        bool badge = false;              // warn ground: a state that should not be forgotten
        bool operator==(const Content&) const = default;
    };

    StatusCell(bool leftLine, bool rightLine, QWidget* parent = nullptr);
    void setContent(const Content& content);
    void setLeftLine(bool on) { m_leftLine = on; }
    const Content& content() const { return m_content; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    Content m_content;
    bool m_leftLine, m_rightLine;
};

class StatusBar : public QWidget {
    Q_OBJECT

public:
    enum Cell { State, Memory, Device, Disk, Gpu, LinkBadge, Serving, Cost, Dropped, Session, Bell, Version,
                CellCount };

    explicit StatusBar(QWidget* parent = nullptr);
    StatusCell* cell(Cell which) const { return m_cells[which]; }
    void setWidthClass(int width);       // which cells there is room for
    void setModelLoaded(bool on);

signals:
    void clicked(Cell cell);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    void arrange();

    StatusCell* m_cells[CellCount] = {};
    int m_width = 1440;
    bool m_loaded = false;
};

}  // namespace colibri::ui
