// SPDX-License-Identifier: GPL-3.0-or-later
// The status bar. Its cells display what the window sets; each is a button that shows details. GUI
// thread only.
#pragma once

#include <QAbstractButton>
#include <QWidget>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/window_class.h"

namespace colibri::ui {

// One cell of the status bar: any of dot, icon, label, bar, value.
class StatusCell : public QAbstractButton {
    Q_OBJECT

public:
    struct Content {
        QString icon, label, value;
        Tone dot = Tone::Count;  // Count: none
        double bar = -1;         // 0..1; < 0: none
        bool muted = false;      // draws the value in Tone::Text3
        Tone valueTone = Tone::Text1;
        bool badge = false;      // warning background, for states that should be noticed
        QString brief;           // replaces the value if there is little room
        bool briefLabel = true;  // the brief form keeps the label; it never has the bar
        bool operator==(const Content&) const = default;
    };

    StatusCell(bool leftLine, bool rightLine, QWidget* parent = nullptr);
    void setContent(const Content& content);
    void setLeftLine(bool on) { m_leftLine = on; }
    void setBrief(bool on);
    bool brief() const { return m_brief; }
    QString shownText() const;  // label and value as drawn
    const Content& content() const { return m_content; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    QString label() const { return m_brief && !m_content.briefLabel ? QString() : m_content.label; }
    QString value() const {
        return m_brief && !m_content.brief.isEmpty() ? m_content.brief : m_content.value;
    }
    bool hasBar() const { return m_content.bar >= 0 && !m_brief; }

    Content m_content;
    bool m_leftLine, m_rightLine, m_brief = false;
};

class StatusBar : public QWidget {
    Q_OBJECT

public:
    enum Cell {
        State,
        Memory,
        Device,
        Disk,
        Gpu,
        LinkBadge,
        Serving,
        Cost,
        Dropped,
        Session,
        Bell,
        Version,
        CellCount
    };

    explicit StatusBar(QWidget* parent = nullptr);
    StatusCell* cell(Cell which) const { return m_cells[which]; }
    void setWindowClass(WindowClass windowClass);  // which cells may be shown
    // Shows or hides a cell such as a badge.
    void setWanted(Cell cell, bool on);
    // Shortens and drops cells by priority until the others fit without being cut.
    void fit();
    void setModelLoaded(bool on);

signals:
    void clicked(Cell cell);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    void arrange();

    StatusCell* m_cells[CellCount] = {};
    bool m_wanted[CellCount] = {};
    WindowClass m_windowClass = WindowClass::Normal;
    bool m_loaded = false;
};

}  // namespace colibri::ui
