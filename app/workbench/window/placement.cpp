// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/placement.h"

#include <QEvent>
#include <QGuiApplication>
#include <QScreen>
#include <QWidget>
#include <QWindow>
#include <algorithm>

namespace colibri::ui {
namespace {

// The frame is not known before the window is shown; this is larger than common ones.
constexpr QMargins kAssumedFrame(8, 40, 8, 8);
constexpr int kSettleMs = 250;

QRect available(const QWidget* window) {
    const QScreen* screen = QGuiApplication::screenAt(window->geometry().center());
    if (!screen) screen = window->screen();
    if (!screen) screen = QGuiApplication::primaryScreen();
    return screen ? screen->availableGeometry() : QRect();
}

}  // namespace

QRect fittedInto(QRect window, const QRect& available, const QMargins& frame) {
    const QRect room = available.marginsRemoved(frame);
    window.setSize(window.size().boundedTo(room.size()));
    window.moveLeft(std::clamp(window.left(), room.left(), room.right() - window.width() + 1));
    window.moveTop(std::clamp(window.top(), room.top(), room.bottom() - window.height() + 1));
    return window;
}

Placement::Placement(QWidget* window) : QObject(window), m_window(window) {
    m_settle.setSingleShot(true);
    m_settle.setInterval(kSettleMs);
    connect(&m_settle, &QTimer::timeout, this, &Placement::fit);
    window->installEventFilter(this);
    const auto later = [this] { m_settle.start(); };
    connect(qGuiApp, &QGuiApplication::screenRemoved, this, later);
    connect(qGuiApp, &QGuiApplication::primaryScreenChanged, this, later);
}

void Placement::restore(const QByteArray& saved, QSize drawn) {
    const QRect room = available(m_window);
    // A small screen at a large scale can have less room than the smallest layout.
    if (room.isValid())
        m_window->setMinimumSize(
            m_window->minimumSize().boundedTo(room.marginsRemoved(frame()).size()));
    if (!saved.isEmpty() && m_window->restoreGeometry(saved)) return fit();
    m_window->resize(drawn);
    if (!room.isValid()) return;
    const QRect inner = room.marginsRemoved(frame());
    QRect rect(QPoint(), drawn);
    rect.moveCenter(inner.center());
    m_window->setGeometry(fittedInto(rect, room, frame()));
    if (m_window->size() != drawn) m_window->setWindowState(Qt::WindowMaximized);
}

void Placement::setSize(QSize size) {
    m_exact = true;
    m_window->setWindowState(m_window->windowState() &
                             ~(Qt::WindowMaximized | Qt::WindowFullScreen | Qt::WindowMinimized));
    m_window->resize(size);
}

QMargins Placement::frame() const {
    const QWindow* handle = m_window->windowHandle();
    return handle && m_window->isVisible() ? handle->frameMargins() : kAssumedFrame;
}

void Placement::fit() {
    const auto whole = Qt::WindowMaximized | Qt::WindowFullScreen | Qt::WindowMinimized;
    if (m_exact || (m_window->windowState() & whole)) return;
    const QRect room = available(m_window);
    if (!room.isValid()) return;
    const QRect rect = fittedInto(m_window->geometry(), room, frame());
    if (rect != m_window->geometry()) m_window->setGeometry(rect);
}

bool Placement::eventFilter(QObject* watched, QEvent* event) {
    // Also after it was maximised: the former size may be of another screen.
    if (event->type() == QEvent::Show || event->type() == QEvent::WindowStateChange)
        m_settle.start();
    return QObject::eventFilter(watched, event);
}

}  // namespace colibri::ui
