// SPDX-License-Identifier: GPL-3.0-or-later
// The chat template that the loaded model is used with: the choice in the sampling panel, the sheet
// that edits it, and the parsed template. The choice is saved for each model. GUI thread only.
#pragma once

#include <QObject>
#include <memory>

#include "app/workbench/chat/template_choice.h"
#include "app/workbench/chat/template_sheet.h"

namespace colibri::ui {

class SamplingPanel;

class ChatTemplates : public QObject {
    Q_OBJECT

public:
    // `render` renders the current chat with a template, for the preview of the sheet.
    ChatTemplates(QWidget* window, SamplingPanel* panel, TemplateSheet::Render render,
                  QObject* parent);
    void setModel(const ModelFacts* model);  // nullptr: none; else must outlive its use here
    // One of TemplateChoice::all(); any other index opens the sheet.
    void choose(int index);
    void edit();
    const TemplateChoice& choice() const { return m_choice; }
    // nullptr: the model's own template.
    const std::shared_ptr<const ChatTemplate>& current() const { return m_current; }
    TemplateSheet* sheet() const { return m_sheet; }

signals:
    void changed();
    void failed(const QString& what, const QString& why);

private:
    void use(const TemplateChoice& choice);
    void save();
    void showChoices();

    const ModelFacts* m_model = nullptr;
    SamplingPanel* m_panel;
    TemplateSheet* m_sheet;
    TemplateSheet::Render m_render;
    TemplateChoice m_choice;
    std::shared_ptr<const ChatTemplate> m_current;
};

}  // namespace colibri::ui
