// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPanel: requests of the chat list, the rendered prompt, options of the command line.
#include "app/workbench/chat/chat_list.h"
#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/chat/prompt_sheet.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

nlohmann::ordered_json sampleChat() {
    return {{{"role", "user"}, {"content", "What is an expert?"}},
            {{"role", "assistant"}, {"content", "One of many small networks in a layer."}},
            {{"role", "user"}, {"content", "How many are used for a token?"}}};
}

}  // namespace

QString ChatPanel::commandOptions() const {
    const QString system = m_chat.system.trimmed();
    return m_settings.options() +
           (system.isEmpty() ? QString() : " --system " + shellQuoted(m_chat.system));
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

// For the preview of the template sheet: the chat, or a sample while it is empty.
Result<std::string> ChatPanel::renderWith(
    const std::shared_ptr<const ChatTemplate>& chatTemplate) const {
    if (!m_source) return Status(Code::InvalidArgument, "No model is loaded", "Open a model first");
    nlohmann::ordered_json messages = promptMessages();
    if (messages.empty()) messages = sampleChat();
    ChatOptions options = chatOptions();
    options.chatTemplate = chatTemplate;
    return m_source->renderChat(messages, options);
}

ChatOptions ChatPanel::chatOptions() const {
    return {.templateArgs = m_settings.templateVariables(), .chatTemplate = m_templates->current()};
}

bool ChatPanel::continuesText() const {
    return m_source && m_source->model()->continues && !m_templates->current();
}

void ChatPanel::showPrompt() {
    const QString text = renderedPrompt();
    const int tokens = m_source ? m_source->countTokens(text) : -1;
    m_prompt->openText(tokens < 0 ? QString("Prompt") : "Prompt, " + count(tokens) + " tokens",
                       text);
}

void ChatPanel::setList(ChatList* list) {
    connect(list, &ChatList::openWanted, this, &ChatPanel::openById);
    connect(list, &ChatList::newWanted, this, &ChatPanel::newChat);
    connect(list, &ChatList::exportChatWanted, this, &ChatPanel::exportChat);
    connect(list, &ChatList::duplicateWanted, this, &ChatPanel::duplicate);
    connect(list, &ChatList::deleteWanted, this, &ChatPanel::deleteChat);
    connect(this, &ChatPanel::currentChanged, list, &ChatList::setCurrent);
    connect(this, &ChatPanel::repliesChanged, list, &ChatList::setReplying);
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

}  // namespace colibri::ui
