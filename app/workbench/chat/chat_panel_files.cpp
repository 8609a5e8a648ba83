// SPDX-License-Identifier: GPL-3.0-or-later
// Chats leave the window: as files of the user's, and as options of the command line.
#include <QFile>
#include <QJsonDocument>

#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/chat/prompt_sheet.h"
#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {

QString ChatPanel::commandOptions() const {
    const QString system = m_chat.system.trimmed();
    return m_settings.options() +
           (system.isEmpty() ? QString() : " --system " + shellQuoted(m_chat.system));
}

bool ChatPanel::exportTo(const QString& path, QString* error) const {
    const QByteArray bytes = path.endsWith(".json", Qt::CaseInsensitive)
                                 ? QJsonDocument(m_chat.toJson()).toJson()
                                 : m_chat.markdown().toUtf8();
    const Status status = saveFile(path, bytes);
    if (!status.ok()) *error = QString::fromStdString(status.text());
    return status.ok();
}

nlohmann::ordered_json ChatPanel::promptMessages() const {
    nlohmann::ordered_json messages = messagesUpTo(-1);
    const QString draft = m_composer->text().trimmed();
    if (!draft.isEmpty()) messages.push_back({{"role", "user"}, {"content", draft.toStdString()}});
    return messages;
}

QString ChatPanel::renderedPrompt() const {
    if (!m_source) return "No model is loaded.";
    const nlohmann::ordered_json messages = promptMessages();
    if (messages.empty()) return "The chat is empty.";
    const auto prompt = m_source->renderChat(messages, chatOptions());
    return prompt ? str(*prompt) : str(prompt.status().text());
}

void ChatPanel::showPrompt() {
    const QString text = renderedPrompt();
    const int tokens = m_source ? m_source->countTokens(text) : -1;
    m_prompt->openText(tokens < 0 ? QString("Prompt") : "Prompt, " + count(tokens) + " tokens",
                       text);
}

bool ChatPanel::promptShown() const {
    return m_prompt->isOpen();
}

void ChatPanel::exportChat(const QString& id) {
    if (id == m_chat.id) return emit exportWanted();
    m_store->load(id, [this, id](std::optional<Conversation> conversation) {
        if (!conversation)
            return emit failed("The chat could not be exported",
                               id + ".json is missing or cannot be read");
        openConversation(std::move(*conversation));
        emit exportWanted();
    });
}

void ChatPanel::duplicate(const QString& id) {
    const auto copy = [this](Conversation conversation) {
        conversation.id = Conversation::create().id;
        conversation.title += " (copy)";
        conversation.changed = QDateTime::currentDateTime();
        openConversation(std::move(conversation));
        save();
    };
    if (id == m_chat.id) {
        Conversation own = m_chat;
        if (m_reply) own.turns[m_reply->turn()].figures.stop = kInterrupted;
        return copy(std::move(own));
    }
    m_store->load(id, [this, id, copy](std::optional<Conversation> conversation) {
        if (conversation)
            copy(std::move(*conversation));
        else
            emit failed("The chat could not be duplicated",
                        id + ".json is missing or cannot be read");
    });
}

bool ChatPanel::importFrom(const QString& path, QString* error) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        *error = file.errorString();
        return false;
    }
    QJsonParseError parse;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll(), &parse);
    auto conversation = Conversation::fromJson(document.object());
    if (!conversation) {
        *error = parse.error != QJsonParseError::NoError
                     ? QString("byte %1: %2").arg(parse.offset).arg(parse.errorString())
                     : QString("it is not a chat from this program (schema 1)");
        return false;
    }
    conversation->id = Conversation::create().id;  // never over an existing one
    openConversation(std::move(*conversation));
    save();
    return true;
}

}  // namespace colibri::ui
