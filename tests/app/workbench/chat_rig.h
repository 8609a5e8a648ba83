// SPDX-License-Identifier: GPL-3.0-or-later
// A chat in a window of its own, on a seeded session whose replies the test feeds.
#pragma once

#include <QPlainTextEdit>
#include <memory>

#include "app/workbench/chat/chat_panel.h"
#include "window_test.h"

namespace colibri::ui {

class ChatRig {
protected:
    QString folder() const { return m_sandbox->path(QString("chats%1").arg(m_folder)); }
    void openRig() {
        if (!m_sandbox) m_sandbox = std::make_unique<Sandbox>();
        ++m_folder;
        m_source = std::make_unique<FakeSource>();
        m_view = std::make_unique<ViewState>();
        m_store = std::make_unique<ChatStore>(folder());
        m_window = std::make_unique<QWidget>();
        m_window->resize(520, 836);
        m_chat = new ChatPanel(m_store.get(), m_view.get(), m_window.get(), m_window.get());
        m_chat->resize(520, 836);
        m_chat->setSource(m_source.get());
        m_window->show();
        m_window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
    }
    void closeRig() {
        m_window.reset();
        m_store.reset();
        m_view.reset();
        m_source.reset();
    }

    void tick() {
        m_chat->tick(m_source->snapshot());
        QCoreApplication::processEvents();
    }
    void ask(const QString& text) {
        QPlainTextEdit* edit = m_chat->composer()->editor();
        edit->setFocus();
        QTest::keyClicks(edit, text);
        QTest::keyClick(edit, Qt::Key_Return);
    }
    void answer(const QStringList& tokens, StopReason stop = StopReason::Eos) {
        m_source->feed(*m_source->lastRun, tokens);
        m_source->finish(*m_source->lastRun, stop);
        tick();
    }
    const Turn& lastTurn() {
        return m_chat->conversation().turns[m_chat->conversation().path().last()];
    }
    ModelTurn* lastWidget() {
        return m_chat->view()->modelTurn(m_chat->conversation().path().last());
    }

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<FakeSource> m_source;
    std::unique_ptr<ViewState> m_view;
    std::unique_ptr<ChatStore> m_store;
    std::unique_ptr<QWidget> m_window;
    ChatPanel* m_chat = nullptr;
    int m_folder = 0;
};

}  // namespace colibri::ui
