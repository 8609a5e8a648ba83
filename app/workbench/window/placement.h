// SPDX-License-Identifier: GPL-3.0-or-later
// Position and size of a window: not larger than its screen, and always on an existing screen.
#pragma once

#include <QByteArray>
#include <QMargins>
#include <QObject>
#include <QRect>
#include <QTimer>

class QWidget;

namespace colibri::ui {

// `window` (without its frame), moved and if necessary made smaller, so that window and frame are
// within `available`.
QRect fittedInto(QRect window, const QRect& available, const QMargins& frame);

// Keeps one top-level window on the existing screens. GUI thread only.
class Placement : public QObject {
    Q_OBJECT

public:
    explicit Placement(QWidget* window);
    // Restores the saved geometry (QWidget::saveGeometry); else size `drawn` in the middle of the
    // screen, or maximised if that does not fit. REQUIRES: not shown yet.
    void restore(const QByteArray& saved, QSize drawn);
    // Exactly this size, not maximised. REQUIRES: not shown yet.
    void setSize(QSize size);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fit();
    QMargins frame() const;  // measured after the window was shown, else assumed

    QWidget* m_window;
    QTimer m_settle;  // gives the window manager time to add the frame
    bool m_exact = false;
};

}  // namespace colibri::ui
