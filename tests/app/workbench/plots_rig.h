// SPDX-License-Identifier: GPL-3.0-or-later
// The plots' panel with the seeded story, for its tests.
#pragma once

#include "app/workbench/platform/settings.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plots_panel.h"
#include "window_test.h"

namespace colibri::ui {

class PlotsRig : public QObject {
protected:
    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<FakeSource> m_source;
    std::unique_ptr<ViewState> m_view;
    std::unique_ptr<PlotsPanel> m_panel;

    void show() {
        m_source = std::make_unique<FakeSource>();
        m_view = std::make_unique<ViewState>();
        m_panel = std::make_unique<PlotsPanel>(m_view.get());
        m_panel->setSource(m_source.get());
        m_panel->resize(615, 836);
        m_panel->setWindowClass(WindowClass::Normal);
        m_panel->show();
        m_panel->activateWindow();
        if (!QTest::qWaitForWindowActive(m_panel.get())) qWarning("the window is not active");
        tick();
    }
    void tick() {
        m_view->advance(m_source->snapshot()->now);
        m_panel->tick(m_source->snapshot());
        m_panel->showFigures(m_source->snapshot());
        QCoreApplication::processEvents();
    }
    PlotCanvas* canvas(const char* key) { return m_panel->plot(key)->canvas(); }
    void drop() {
        settings().remove("plots");  // what a test chose
        m_panel.reset();
        m_view.reset();
        m_source.reset();
    }
};

}  // namespace colibri::ui
