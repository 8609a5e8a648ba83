// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPanel: the chat template that the model is used with.
#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/chat/template_sheet.h"

namespace colibri::ui {
namespace {

// What a template is tried with before anything has been said.
nlohmann::ordered_json sampleChat() {
    return {{{"role", "user"}, {"content", "What is an expert?"}},
            {{"role", "assistant"}, {"content", "One of many small networks in a layer."}},
            {{"role", "user"}, {"content", "How many are used for a token?"}}};
}

}  // namespace

ChatOptions ChatPanel::chatOptions() const {
    return {.templateArgs = m_settings.templateVariables(), .chatTemplate = m_template};
}

bool ChatPanel::continuesText() const {
    return m_source && m_source->model()->continues && !m_template;
}

void ChatPanel::loadTemplate() {
    m_template.reset();
    m_choice = {};
    if (m_source) useTemplate(TemplateChoice::load(*m_source->model()));
    showTemplates();
}

void ChatPanel::useTemplate(const TemplateChoice& choice) {
    auto parsed = choice.parse();
    if (!parsed)
        return emit failed("The chat template cannot be used",
                           QString::fromStdString(parsed.status().text()));
    m_choice = choice;
    m_template = std::move(*parsed);
}

void ChatPanel::showTemplates() {
    QStringList names;
    int current = 0;
    if (m_source) {
        const QVector<TemplateChoice> all = TemplateChoice::all(*m_source->model());
        current = std::max(0, int(all.indexOf(m_choice)));
        for (const TemplateChoice& choice : all) names << choice.name;
    }
    m_sampling->setTemplates(names, current);
}

void ChatPanel::chooseTemplate(int index) {
    if (!m_source) return;
    const QVector<TemplateChoice> all = TemplateChoice::all(*m_source->model());
    if (index < 0 || index >= all.size()) return editTemplate();
    useTemplate(all[index]);
    m_choice.store(*m_source->model());
    showTemplates();
    refreshAvailability();
    refreshMeter();
}

void ChatPanel::editTemplate() {
    if (!m_source) return;
    showTemplates();  // the list stood at "Edit..."
    m_sampling->closePopover();
    const QVector<TemplateChoice> all = TemplateChoice::all(*m_source->model());
    QString text = m_choice.text;
    for (const TemplateChoice& choice : all)
        if (text.isEmpty()) text = choice.text;
    const auto render =
        [this](const std::shared_ptr<const ChatTemplate>& chat) -> Result<std::string> {
        if (!m_source)
            return Status(Code::InvalidArgument, "No model is loaded", "Open a model first");
        nlohmann::ordered_json messages = promptMessages();
        if (messages.empty()) messages = sampleChat();
        ChatOptions options = chatOptions();
        options.chatTemplate = chat;
        return m_source->renderChat(messages, options);
    };
    m_templateSheet->openText(m_source->model()->name, text, all, render);
}

void ChatPanel::applyEdited(const QString& text) {
    if (!m_source) return;
    useTemplate({TemplateChoice::Kind::Edited, "Edited", text});
    m_choice.store(*m_source->model());
    showTemplates();
    refreshAvailability();
    refreshMeter();
}

}  // namespace colibri::ui
