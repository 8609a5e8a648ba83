// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: exports and imports.
#include <QApplication>
#include <QClipboard>

#include "app/workbench/chat/chat_files.h"
#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/window/main_window.h"

namespace colibri::ui {

QString MainWindow::commandLine() const {
    const QString line = m_chatPage->knobs()->commandLine();
    return line.isEmpty() ? line : line + " " + m_chatPage->chat()->commandOptions();
}

void MainWindow::exportConfig() {
    const QString path = askSaveFile(this, "Export config", "colibri-config.json", "JSON (*.json)");
    if (path.isEmpty()) return;
    QString error;
    if (m_chatPage->knobs()->saveConfig(path, &error))
        m_messages->ok("Config written.", path);
    else
        m_messages->error("The config was not written.", error);
}

void MainWindow::importConfig(const QString& from) {
    const QString path =
        from.isEmpty() ? askOpenFile(this, "Import config", "JSON (*.json)") : from;
    if (path.isEmpty()) return;
    if (!m_source->model())
        return m_messages->error("The config was not applied.",
                                 "No model is loaded. Open one, then import the config.");
    QString error;
    const auto outcome = m_chatPage->knobs()->loadConfig(path, &error);
    if (!outcome) return m_messages->error("The config was not applied.", error);
    const QString whose =
        outcome->model.isEmpty() ? QString() : "It was written for " + outcome->model + ". ";
    if (outcome->applied == outcome->total && whose.isEmpty())
        m_messages->ok("Config applied.", path);
    else
        postPartlyApplied("Config: " + outcome->text() + ".", whose + path,
                          !outcome->needReload.isEmpty());
}

void MainWindow::exportChat() {
    const Conversation& chat = m_chatPage->chat()->conversation();
    const QString path =
        askSaveFile(this, "Export chat", chat.fileName() + ".md", "Markdown (*.md);;JSON (*.json)");
    if (path.isEmpty()) return;
    if (const Status status = exportConversation(chat, path); status.ok())
        m_messages->ok("Chat exported.", path);
    else
        m_messages->error("The chat was not exported.", str(status.text()));
}

void MainWindow::importChat(const QString& from) {
    const QString path = from.isEmpty() ? askOpenFile(this, "Import chat", "JSON (*.json)") : from;
    if (path.isEmpty()) return;
    auto conversation = importConversation(path);
    if (!conversation)
        return m_messages->error("The chat was not imported.", str(conversation.status().text()));
    m_chatPage->chat()->openConversation(std::move(*conversation));
    m_chats->save(m_chatPage->chat()->conversation());
}

}  // namespace colibri::ui
