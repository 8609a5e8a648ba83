// SPDX-License-Identifier: GPL-3.0-or-later
// Where the keyboard is. Tab goes through a window as one reads it, whatever order its parts were
// made in; and when the widget with the focus is hidden, disabled or deleted, the focus goes to a
// place that was meant for that, not to whatever comes next in Qt's chain.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <QVector>

class QWidget;

namespace colibri::ui {

// Can have the focus now: shown, enabled, and Tab stops at it.
bool isTabStop(const QWidget* widget);

// The tab stops inside `root` as one reads them: containers by rows, left to right.
QVector<QWidget*> readingOrder(QWidget* root);

// The focus one stop on (or back) inside `root`, from its end to its beginning; false: there is
// none.
bool stepFocus(QWidget* root, bool next);

// The focus on `widget`, scrolled into view.
void focusShown(QWidget* widget, Qt::FocusReason reason);

// Where the focus goes when a widget inside `area` loses it by going away. The innermost area that
// has a usable home counts.
void setFocusHome(QWidget* area, QWidget* home);

// Watches one window. GUI thread.
class FocusKeeper : public QObject {
    Q_OBJECT

public:
    explicit FocusKeeper(QWidget* window);

private:
    void changed(QWidget* old, QWidget* now);
    void settle();

    QWidget* m_window;
    QTimer m_settle;                      // when what is going on (a rebuild, a resize) is over
    QVector<QPointer<QWidget>> m_places;  // the widget itself, should it come back; then its homes
    QPointer<QWidget> m_given;            // by Qt, in its place
};

}  // namespace colibri::ui
