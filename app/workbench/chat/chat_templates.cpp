// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_templates.h"

#include <algorithm>
#include <utility>

#include "app/workbench/chat/sampling_panel.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {

ChatTemplates::ChatTemplates(QWidget* window, SamplingPanel* panel, TemplateSheet::Render render,
                             QObject* parent)
    : QObject(parent),
      m_panel(panel),
      m_sheet(new TemplateSheet(window)),
      m_render(std::move(render)) {
    connect(m_panel, &SamplingPanel::templateChosen, this, &ChatTemplates::choose);
    connect(m_sheet, &TemplateSheet::used, this, [this](const QString& text) {
        if (!m_model) return;
        use({TemplateChoice::Kind::Edited, "Edited", text});
        save();
    });
}

void ChatTemplates::setModel(const ModelFacts* model) {
    m_model = model;
    m_current.reset();
    m_choice = {};
    if (m_model) use(TemplateChoice::load(*m_model));
    showChoices();
}

void ChatTemplates::choose(int index) {
    if (!m_model) return;
    const QVector<TemplateChoice> all = TemplateChoice::all(*m_model);
    if (index < 0 || index >= all.size()) return edit();
    use(all[index]);
    save();
}

void ChatTemplates::edit() {
    if (!m_model) return;
    showChoices();  // the list still shows "Edit..."
    m_panel->closePopover();
    const QVector<TemplateChoice> all = TemplateChoice::all(*m_model);
    QString text = m_choice.text;
    for (const TemplateChoice& choice : all)
        if (text.isEmpty()) text = choice.text;
    m_sheet->openText(m_model->name, text, all, m_render);
}

void ChatTemplates::use(const TemplateChoice& choice) {
    auto parsed = choice.parse();
    if (!parsed)
        return emit failed("The chat template cannot be used", str(parsed.status().text()));
    m_choice = choice;
    m_current = std::move(*parsed);
}

void ChatTemplates::save() {
    m_choice.store(*m_model);
    showChoices();
    emit changed();
}

void ChatTemplates::showChoices() {
    QStringList names;
    int current = 0;
    if (m_model) {
        const QVector<TemplateChoice> all = TemplateChoice::all(*m_model);
        current = std::max(0, int(all.indexOf(m_choice)));
        for (const TemplateChoice& choice : all) names << choice.name;
    }
    m_panel->setTemplates(names, current);
}

}  // namespace colibri::ui
