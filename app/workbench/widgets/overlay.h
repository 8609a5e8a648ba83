// SPDX-License-Identifier: GPL-3.0-or-later
// Panels over the window: a child widget on a painted scrim (no window of its own, so focus and
// screenshots work everywhere), and popovers anchored to a widget. Esc or a click outside closes.
#pragma once

#include <QPointer>
#include <QWidget>

namespace colibri::ui {

class Overlay : public QWidget {
    Q_OBJECT

public:
    explicit Overlay(QWidget* window);
    void openPanel();
    void closePanel();
    bool isOpen() const { return isVisible(); }
    // Area that stays uncovered at the top and bottom of the window.
    void setInsets(int top, int bottom);

signals:
    void closed();

protected:
    QWidget* panel() const { return m_panel; }
    virtual QRect panelRect() const;  // in the window's coordinates
    virtual void opened() {}
    void relayout();
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;
    bool focusNextPrevChild(bool next) override;

    QWidget* m_panel;
    int m_top = 40, m_bottom = 24;
    QPointer<QWidget> m_focusBefore;
};

// A box under (or above) its anchor, on the same window.
class Popover : public QWidget {
    Q_OBJECT

public:
    explicit Popover(QWidget* window);
    void openAt(QWidget* anchor, bool above, bool alignRight);
    bool isOpen() const { return isVisible(); }
    void closePopover();

signals:
    void closed();

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;
    bool focusNextPrevChild(bool next) override;
    void place();

    QPointer<QWidget> m_anchor;
    bool m_above = false, m_alignRight = false;
    QPointer<QWidget> m_focusBefore;
};

}  // namespace colibri::ui
