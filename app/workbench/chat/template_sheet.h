// SPDX-License-Identifier: GPL-3.0-or-later
// A sheet over the window that edits a chat template: its Jinja text, and below it the rendered
// chat or the error with its line. GUI thread only.
#pragma once

#include <QTimer>
#include <functional>

#include "app/workbench/chat/template_choice.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/overlay.h"

class QLabel;
class QPlainTextEdit;

namespace colibri::ui {

class Note;

class TemplateSheet : public Overlay {
    Q_OBJECT

public:
    using Render = std::function<Result<std::string>(const std::shared_ptr<const ChatTemplate>&)>;

    explicit TemplateSheet(QWidget* window);
    // Edits `text`; `begins`: templates that can replace it as a starting point.
    void openText(const QString& model, const QString& text, const QVector<TemplateChoice>& begins,
                  Render render);
    void refresh();  // updates the preview at once
    QPlainTextEdit* editor() const { return m_editor; }
    QString preview() const;
    QString note() const;
    Button* useButton() const { return m_use; }

signals:
    void used(const QString& text);

protected:
    QRect panelRect() const override;
    void opened() override;

private:
    QLayout* makeHead();
    void showFault(const TemplateFault& fault);
    void markLine(int line);

    Render m_render;
    QVector<TemplateChoice> m_begins;
    QLabel* m_title;
    Select* m_begin;
    QPlainTextEdit *m_editor, *m_preview;
    Note* m_note;
    Button* m_use;
    QTimer m_timer;
};

}  // namespace colibri::ui
