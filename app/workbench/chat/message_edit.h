// SPDX-License-Identifier: GPL-3.0-or-later
// The field in which a message is written or edited: Enter sends, Shift+Enter breaks the line,
// pasted text has no formats. Enter that confirms a candidate of an input method does not send.
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
    bool m_composing = false;  // the text of an input method is not confirmed yet
};

}  // namespace colibri::ui
