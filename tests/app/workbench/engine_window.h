// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window with an engine behind it, new for every test.
#pragma once

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/window/main_window.h"
#include "test_model.h"
#include "window_test.h"

namespace colibri::ui {

class EngineWindow : public QObject {
protected:
    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<MainWindow> m_window;
    QString m_model;

    void makeModel() {
        m_sandbox = std::make_unique<Sandbox>();
        m_model = m_sandbox->path("model");
        QCOMPARE(convertGolden("qwen3moe", m_model), QString());
    }
    void open() {
        ++m_run;
        m_host = std::make_unique<EngineHost>(m_sandbox->path(QString("data-%1").arg(m_run)));
        m_window = std::make_unique<MainWindow>(m_host.get(), m_sandbox->path("chats"));
        m_window->resize(1440, 900);
        m_window->show();
    }
    void drop() {
        m_window.reset();
        m_host.reset();
    }
    bool load(const KnobValues& knobs = {}) {
        m_host->load(m_model.toStdString(), knobs);
        return waitUntil([&] { return m_host->state() == SessionSource::State::Ready; });
    }

private:
    int m_run = 0;
};

}  // namespace colibri::ui
