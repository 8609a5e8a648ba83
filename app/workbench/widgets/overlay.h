// SPDX-License-Identifier: GPL-3.0-or-later
// Panels over the window: a child widget on a dimmed background (not a window of its own, so that
// focus and screenshots work everywhere), and popovers anchored to a widget. Esc or a click outside
// closes them. GUI thread only.
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
    // Heights in px at the top and bottom of the window that stay uncovered.
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

// A box below or above its anchor, in the same window.
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
    void reposition();

    QPointer<QWidget> m_anchor;
    bool m_above = false, m_alignRight = false;
    QPointer<QWidget> m_focusBefore;
};

}  // namespace colibri::ui
