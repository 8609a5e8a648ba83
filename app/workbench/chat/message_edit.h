// SPDX-License-Identifier: GPL-3.0-or-later
// The field a message is written or edited in: Enter sends, Shift+Enter breaks the line, pasted
// text keeps no formats. Enter that confirms an input method's candidate belongs to the input
// method.
#pragma once

#include <QPlainTextEdit>

namespace colibri::ui {

class MessageEdit : public QPlainTextEdit {
    Q_OBJECT

public:
    explicit MessageEdit(QWidget* parent = nullptr);
    void setHint(const QString& text);
    QString hint() const { return m_hint; }

signals:
    void submitted();                // Enter
    void pageWanted(int direction);  // PageUp, PageDown

protected:
    void keyPressEvent(QKeyEvent*) override;
    void inputMethodEvent(QInputMethodEvent*) override;
    void focusOutEvent(QFocusEvent*) override;
    void paintEvent(QPaintEvent*) override;
    bool canInsertFromMimeData(const QMimeData* source) const override;
    void insertFromMimeData(const QMimeData* source) override;

private:
    QString m_hint;
    bool m_composing = false;  // an input method's text is not confirmed yet
};

}  // namespace colibri::ui
