// SPDX-License-Identifier: GPL-3.0-or-later
// Where a window stands: never larger than the screen it is on, never on one that is gone.
#pragma once

#include <QByteArray>
#include <QMargins>
#include <QObject>
#include <QRect>
#include <QTimer>

class QWidget;

namespace colibri::ui {

// `window` (without its frame) moved and, where it has to be, made smaller, so that window and
// frame lie in `available`.
QRect fittedInto(QRect window, const QRect& available, const QMargins& frame);

// Keeps one top-level window on the screens that are there. GUI thread.
class Placement : public QObject {
    Q_OBJECT

public:
    explicit Placement(QWidget* window);
    // As it was left (QWidget::saveGeometry), else `drawn` in the middle of the screen, or
    // maximised where that does not fit. REQUIRES: not shown yet.
    void restore(const QByteArray& saved, QSize drawn);
    // Exactly this size, not maximised. REQUIRES: not shown yet.
    void setSize(QSize size);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fit();
    QMargins frame() const;  // measured once it is shown, else assumed

    QWidget* m_window;
    QTimer m_settle;  // the window manager has framed it by then
    bool m_exact = false;
};

}  // namespace colibri::ui
