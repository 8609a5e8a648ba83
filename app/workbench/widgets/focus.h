// SPDX-License-Identifier: GPL-3.0-or-later
// The keyboard focus. Tab moves through a window in reading order, in whatever order the widgets
// were created. When the focused widget is hidden, disabled or deleted, the focus moves to the home
// of its area, not to the next widget of Qt's chain. GUI thread only.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <QVector>

class QWidget;

namespace colibri::ui {

// Whether the widget is visible, enabled, and a stop of Tab.
bool isTabStop(const QWidget* widget);

// The tab stops inside `root` in reading order: containers by rows, left to right.
QVector<QWidget*> readingOrder(QWidget* root);

// Moves the focus to the next (or previous) stop inside `root`, wrapping around. False: there is no
// stop.
bool stepFocus(QWidget* root, bool next);

// Gives `widget` the focus and scrolls it into view.
void focusShown(QWidget* widget, Qt::FocusReason reason);

// Sets the widget that gets the focus when a widget inside `area` loses it by being hidden. The
// innermost area with a usable home counts.
void setFocusHome(QWidget* area, QWidget* home);

// Watches one window, and moves its focus to the homes.
class FocusKeeper : public QObject {
    Q_OBJECT

public:
    explicit FocusKeeper(QWidget* window);

private:
    void changed(QWidget* old, QWidget* now);
    void settle();

    QWidget* m_window;
    QTimer m_settle;  // runs out after a rebuild or resize has finished
    // The widget itself, in case it is shown again; then the homes.
    QVector<QPointer<QWidget>> m_candidates;
    QPointer<QWidget> m_given;  // the widget that Qt chose instead
};

}  // namespace colibri::ui
