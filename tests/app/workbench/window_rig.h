// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window on a seeded session, new for every test.
#pragma once

#include <memory>

#include "app/workbench/window/main_window.h"
#include "window_test.h"

namespace colibri::ui {

class WindowRig {
protected:
    void openRig() {
        if (!m_sandbox) m_sandbox = std::make_unique<Sandbox>();
        m_source = std::make_unique<FakeSource>();
        m_window = std::make_unique<MainWindow>(m_source.get(), m_sandbox->path("chats"));
        m_window->resize(1440, 900);
        m_window->show();
        m_window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
        tick();
    }
    void closeRig() {
        m_window.reset();
        m_source.reset();
        Theme::get().setMode(Theme::Mode::Dark);
    }
    // The window's timer, so often, and what follows from it.
    void tick(int n = 9) {
        for (int i = 0; i < n; ++i) m_window->tick();
        for (int i = 0; i < 3; ++i) {
            QCoreApplication::processEvents();
            QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        }
    }

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<FakeSource> m_source;
    std::unique_ptr<MainWindow> m_window;
};

}  // namespace colibri::ui
