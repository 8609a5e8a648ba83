// SPDX-License-Identifier: GPL-3.0-or-later
// What the tests of the window share: settings and data in a folder of their own.
#pragma once

#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "app/workbench/theme/theme.h"
#include "fake_source.h"

namespace colibri::ui {

// Made before anything reads a setting.
class Sandbox {
public:
    Sandbox() {
        qputenv("XDG_CONFIG_HOME", m_dir.filePath("config").toUtf8());
        qputenv("XDG_CACHE_HOME", m_dir.filePath("cache").toUtf8());
        qputenv("XDG_DATA_HOME", m_dir.filePath("data").toUtf8());
        QCoreApplication::setApplicationName("colibri-workbench-test");
        Theme::get().install();
        Theme::get().setMode(Theme::Mode::Dark);
    }
    QString path(const QString& name) const { return m_dir.filePath(name); }

private:
    QTemporaryDir m_dir;
};

inline void wheel(QWidget* widget, QPoint at, int steps, Qt::KeyboardModifiers modifiers = {}) {
    QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, 120 * steps}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(widget, &event);
}

inline void drag(QWidget* widget, QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {}) {
    QTest::mousePress(widget, Qt::LeftButton, modifiers, from);
    for (int i = 1; i <= 4; ++i) {
        const QPoint at = from + (to - from) * i / 4;
        QMouseEvent move(QEvent::MouseMove, at, widget->mapToGlobal(at), Qt::NoButton,
                         Qt::LeftButton, modifiers);
        QApplication::sendEvent(widget, &move);
    }
    QTest::mouseRelease(widget, Qt::LeftButton, modifiers, to);
}

inline void hover(QWidget* widget, QPoint at) {
    QMouseEvent move(QEvent::MouseMove, at, widget->mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                     {});
    QApplication::sendEvent(widget, &move);
}

}  // namespace colibri::ui
