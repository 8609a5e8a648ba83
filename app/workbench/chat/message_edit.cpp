// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/message_edit.h"

#include <QInputMethodEvent>
#include <QMimeData>
#include <QPainter>
#include <QSyntaxHighlighter>

#include "app/workbench/widgets/paint.h"

namespace colibri::ui {
namespace {

// Turns shaping on for the words that need it; see uiFont.
class ShapedWords : public QSyntaxHighlighter {
public:
    using QSyntaxHighlighter::QSyntaxHighlighter;

protected:
    void highlightBlock(const QString& text) override {
        QTextCharFormat format;
        format.setFontStyleStrategy(QFont::PreferDefault);
        for (const auto& [begin, length] : shapedWords(text)) setFormat(begin, length, format);
    }
};

}  // namespace

MessageEdit::MessageEdit(QWidget* parent) : QPlainTextEdit(parent) {
    setFont(type::chat());
    new ShapedWords(document());
}

void MessageEdit::setHint(const QString& text) {
    if (text == m_hint) return;
    m_hint = text;
    viewport()->update();
}

void MessageEdit::keyPressEvent(QKeyEvent* event) {
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (m_composing && (enter || event->key() == Qt::Key_Escape)) return;
    if (event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown) {
        emit pageWanted(event->key() == Qt::Key_PageUp ? -1 : 1);
    } else if (enter && !(event->modifiers() & Qt::ShiftModifier)) {
        emit submitted();
    } else {
        QPlainTextEdit::keyPressEvent(event);
    }
}

void MessageEdit::inputMethodEvent(QInputMethodEvent* event) {
    m_composing = !event->preeditString().isEmpty();
    QPlainTextEdit::inputMethodEvent(event);
    viewport()->update();
}

void MessageEdit::focusOutEvent(QFocusEvent* event) {
    m_composing = false;
    QPlainTextEdit::focusOutEvent(event);
}

// The hint has the caption colour.
void MessageEdit::paintEvent(QPaintEvent* event) {
    QPlainTextEdit::paintEvent(event);
    if (m_hint.isEmpty() || m_composing || !document()->isEmpty()) return;
    QPainter p(viewport());
    drawElided(p, QRectF(0, 0, viewport()->width(), 20), Qt::AlignVCenter, m_hint, type::chat(),
               tone(Tone::Text3));
}

// The window handles dropped files.
bool MessageEdit::canInsertFromMimeData(const QMimeData* source) const {
    return !source->hasUrls() && QPlainTextEdit::canInsertFromMimeData(source);
}

void MessageEdit::insertFromMimeData(const QMimeData* source) {
    insertPlainText(source->text());
}

}  // namespace colibri::ui
