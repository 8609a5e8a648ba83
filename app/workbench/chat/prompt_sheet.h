// SPDX-License-Identifier: GPL-3.0-or-later
// A sheet over the window with a text to read and copy: the rendered prompt of a chat.
#pragma once

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/overlay.h"

class QLabel;
class QPlainTextEdit;

namespace colibri::ui {

class PromptSheet : public Overlay {
    Q_OBJECT

public:
    explicit PromptSheet(QWidget* window);
    void openText(const QString& title, const QString& text);
    QString text() const;

protected:
    QRect panelRect() const override;
    void opened() override;

private:
    QLabel* m_title;
    QPlainTextEdit* m_text;
};

}  // namespace colibri::ui
