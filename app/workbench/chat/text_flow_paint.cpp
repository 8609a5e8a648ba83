// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: painting and mouse.
#include <QApplication>
#include <QClipboard>
#include <QMouseEvent>
#include <QPaintEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "app/workbench/chat/text_flow.h"
#include "app/workbench/chat/text_flow_metrics.h"
#include "app/workbench/theme/theme.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

void TextFlow::paintMarks(QPainter& p, const Laid& laid) {
    const auto fill = [&](int begin, int end, const QColor& color) {
        for (const QRectF& rect : rectsOf(laid, begin, end))
            p.fillRect(rect.adjusted(0, -1, 0, 1), color);
    };
    if (hasSelection())
        fill(std::min(m_anchor, m_cursor), std::max(m_anchor, m_cursor),
             withAlpha(tone(Tone::Accent), 0.30));
    for (size_t i = 0; i < m_found.size(); ++i) {
        if (m_found[i] < laid.start || m_found[i] >= laid.start + laid.length) continue;
        fill(m_found[i], m_found[i] + int(m_needle.size()),
             int(i) == m_findCurrent ? withAlpha(tone(Tone::Warn), 0.45) : tone(Tone::Tint));
    }
    if (!m_tokens || m_tokens->isEmpty()) return;
    // Only the tokens whose text stands in this block.
    const auto first =
        std::upper_bound(m_tokens->begin(), m_tokens->end(), laid.block.begin,
                         [](int value, const TokenMark& mark) { return value < mark.end; });
    for (auto it = first; it != m_tokens->end(); ++it) {
        const int index = int(it - m_tokens->begin());
        if (index > 0 && (*m_tokens)[index - 1].end >= laid.block.end) break;
        const bool hot = index == m_hovered;
        if (!hot && !slow(*it)) continue;
        for (const QRectF& rect : tokenRects(laid, index)) {
            if (hot)
                fillBox(p, rect.adjusted(-1, -1, 1, 1), tone(Tone::Tint), tone(Tone::Accent), 2);
            if (slow(*it))
                p.fillRect(QRectF(rect.left(), std::round(rect.bottom()), rect.width(), 2),
                           tone(Tone::Warn));
        }
    }
}

QRectF TextFlow::copyRect(const Laid& laid) const {
    return QRectF(m_width - 28, laid.top + 1, 24, flow::kCodeHead - 2);
}

void TextFlow::paintPieces(QPainter& p, const Laid& laid, Tone ink) {
    paintMarks(p, laid);
    for (const Piece& piece : laid.pieces) {
        p.setPen(tone(piece.row == 0 ? Tone::Text3 : ink));
        piece.layout->draw(&p, {laid.left + piece.x - laid.scroll, laid.top + piece.y});
    }
}

// A thin bar says that there is more to the side.
void TextFlow::paintScroll(QPainter& p, const Laid& laid) {
    const double seen = room(laid);
    if (laid.contentWidth <= seen) return;
    const double x = laid.left + laid.scroll / laid.contentWidth * seen;
    fillBox(p, QRectF(x, laid.top + laid.height - 5, seen * seen / laid.contentWidth, 3),
            tone(Tone::Line2), Qt::transparent, 1.5);
}

void TextFlow::paintCode(QPainter& p, const Laid& laid) {
    const double x = laid.left - flow::kCodePad;
    fillBox(p, QRectF(x, laid.top, m_width - x, laid.height), tone(Tone::Plot), tone(Tone::Line1),
            4);
    const QString language = laid.block.marker.isEmpty() ? "code" : laid.block.marker;
    drawElided(p, QRectF(laid.left, laid.top + 1, m_width - laid.left - 39, 23), Qt::AlignVCenter,
               language, type::caption(), tone(Tone::Text3));
    const int index = int(&laid - m_blocks.data());
    paintIcon(p, "copy", QRectF(m_width - 22, laid.top + 7, 12, 12),
              tone(index == m_hoverCode ? Tone::Text1 : Tone::Text2));
    p.fillRect(QRectF(x + 1, laid.top + 24, m_width - x - 2, 1), tone(Tone::Line1));
    p.save();
    p.setClipRect(QRectF(x + 1, laid.top + 25, m_width - x - 2, laid.height - 26));
    paintPieces(p, laid, Tone::Text1);
    paintScroll(p, laid);
    p.restore();
}

void TextFlow::paintTable(QPainter& p, const Laid& laid) {
    const double width = std::min(laid.contentWidth, room(laid)), bottom = laid.rows.back() + 1;
    p.save();
    p.setClipRect(QRectF(laid.left, laid.top, width, laid.height));
    for (size_t r = 1; r + 1 < laid.rows.size(); ++r)
        p.fillRect(QRectF(laid.left, laid.top + laid.rows[r] - 1, width, 1), tone(Tone::Line1));
    paintPieces(p, laid, Tone::Text1);
    p.restore();
    fillBox(p, QRectF(laid.left, laid.top, width, bottom), Qt::transparent, tone(Tone::Line1), 0);
    paintScroll(p, laid);
}

// The line beside a quote goes through the gaps between its blocks.
void TextFlow::paintQuote(QPainter& p, size_t index) {
    const Laid& laid = m_blocks[index];
    for (int i = 0; i < laid.block.quote; ++i) {
        double top = laid.top;
        if (index > 0 && m_blocks[index - 1].block.quote > i &&
            m_blocks[index - 1].block.root == laid.block.root)
            top = m_blocks[index - 1].top + m_blocks[index - 1].height;
        p.fillRect(QRectF(i * flow::kQuoteIndent, top, 1, laid.top + laid.height - top),
                   tone(Tone::Line2));
    }
}

void TextFlow::paintMarker(QPainter& p, const Laid& laid) {
    const double left = laid.left - flow::kItemIndent;
    const QString& marker = laid.block.marker;
    if (marker == "•") {
        p.save();
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(Qt::NoPen);
        p.setBrush(tone(Tone::Text1));
        p.drawEllipse(QPointF(left + 5.5, laid.top + m_lineHeight / 2 + 0.5), 2.5, 2.5);
        p.restore();
    } else if (marker.startsWith('[')) {
        const QRectF box(left, laid.top + m_lineHeight / 2 - 6, 12, 12);
        fillBox(p, box, Qt::transparent, tone(Tone::Text3), 2);
        if (marker == "[x]") paintIcon(p, "check", box, tone(Tone::Text1));
    } else {
        // At the right, so that the points of 9. and 10. stand under one another.
        const double width = std::max(flow::kItemIndent - 4, textWidth(type::chat(), marker));
        drawText(p, QRectF(laid.left - 4 - width, laid.top, width, m_lineHeight),
                 Qt::AlignVCenter | Qt::AlignRight, marker, type::chat(), tone(Tone::Text2));
    }
}

void TextFlow::paintBlock(QPainter& p, const Laid& laid) {
    using Kind = MarkdownBlock::Kind;
    paintQuote(p, size_t(&laid - m_blocks.data()));
    switch (laid.block.kind) {
        case Kind::Rule:
            p.fillRect(QRectF(laid.left, laid.top + 4, m_width - laid.left, 1), tone(Tone::Line1));
            return;
        case Kind::Code:
            return paintCode(p, laid);
        case Kind::Table:
            return paintTable(p, laid);
        case Kind::Item:
            paintMarker(p, laid);
            break;
        default:
            break;
    }
    paintPieces(p, laid, m_muted || laid.block.quote > 0 ? Tone::Text2 : Tone::Text1);
}

void TextFlow::paintEvent(QPaintEvent* event) {
    QPainter p(this);
    const QRectF exposed = event->rect();
    for (const Laid& laid : m_blocks)
        if (laid.top + laid.height >= exposed.top() - 4 && laid.top <= exposed.bottom() + 4)
            paintBlock(p, laid);
    if (!m_caret) return;
    QPointF at(0, (m_lineHeight - 15) / 2);
    if (!m_blocks.empty()) {
        const Laid& laid = m_blocks.back();
        at = {laid.left, laid.top + laid.height - m_lineHeight + (m_lineHeight - 15) / 2};
        const Piece* piece = laid.pieces.empty() ? nullptr : &laid.pieces.back();
        if (piece && piece->layout->lineCount() > 0) {
            const QTextLine line = piece->layout->lineAt(piece->layout->lineCount() - 1);
            at = {laid.left + piece->x + line.cursorToX(piece->length) + 1 - laid.scroll,
                  laid.top + piece->y + line.y() + line.height() / 2 - 7.5};
        }
    }
    p.fillRect(QRectF(std::round(std::min(at.x(), m_width - 8.0)), std::round(at.y()), 8, 15),
               tone(Tone::Accent));
}

void TextFlow::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    for (const Laid& laid : m_blocks) {
        if (laid.block.kind == MarkdownBlock::Kind::Code &&
            copyRect(laid).contains(event->position())) {
            QApplication::clipboard()->setText(laid.block.text.text);
            emit codeCopied();
            return;
        }
    }
    m_selecting = true;
    m_pressed = event->position().toPoint();
    m_cursor = positionAt(event->position());
    if (!(event->modifiers() & Qt::ShiftModifier)) m_anchor = m_cursor;
    update();
}

void TextFlow::mouseMoveEvent(QMouseEvent* event) {
    if (m_selecting) {
        m_cursor = positionAt(event->position());
        update();
        return;
    }
    int code = -1;
    for (size_t i = 0; i < m_blocks.size(); ++i)
        if (m_blocks[i].block.kind == MarkdownBlock::Kind::Code &&
            copyRect(m_blocks[i]).contains(event->position()))
            code = int(i);
    if (code != m_hoverCode) {
        m_hoverCode = code;
        update();
    }
    const QString link = code >= 0 ? QString() : linkAt(event->position().toPoint());
    setCursor(code >= 0 || !link.isEmpty() ? Qt::PointingHandCursor : Qt::IBeamCursor);
    setToolTip(code >= 0 ? QString("Copy code") : link);
    setHoveredToken(tokenAt(event->position().toPoint()));
}

void TextFlow::mouseReleaseEvent(QMouseEvent* event) {
    const bool clicked = m_selecting && !hasSelection() && event->position().toPoint() == m_pressed;
    m_selecting = false;
    if (const QString link = clicked ? linkAt(m_pressed) : QString(); !link.isEmpty())
        emit linkWanted(link);
}

void TextFlow::mouseDoubleClickEvent(QMouseEvent* event) {
    const int position = positionAt(event->position());
    const Laid* laid = blockOf(position);
    const Piece* piece = laid ? pieceAt(*laid, event->position()) : nullptr;
    if (!piece) return;
    const QString& text = laid->text(*piece).text;
    const auto word = [](QChar c) { return c.isLetterOrNumber() || c == '_'; };
    int a = std::clamp(position - piece->start, 0, piece->length), b = a;
    while (a > 0 && word(text[a - 1])) --a;
    while (b < text.size() && word(text[b])) ++b;
    m_anchor = piece->start + a;
    m_cursor = piece->start + b;
    update();
}

void TextFlow::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    const bool sideways =
        std::abs(delta.x()) > std::abs(delta.y()) || (event->modifiers() & Qt::ShiftModifier);
    for (Laid& laid : m_blocks) {
        if (!sideways || !laid.scrolls()) continue;
        if (event->position().y() < laid.top || event->position().y() > laid.top + laid.height)
            continue;
        const double most = std::max(0.0, laid.contentWidth - room(laid));
        const int d = delta.x() ? delta.x() : delta.y();
        laid.scroll = std::clamp(laid.scroll - d / 2.0, 0.0, most);
        update();
        event->accept();
        return;
    }
    event->ignore();
}

void TextFlow::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy) && hasSelection()) {
        QApplication::clipboard()->setText(selectedText());
    } else if (event->matches(QKeySequence::SelectAll)) {
        selectAll();
    } else if (m_tokens && !m_tokens->isEmpty() &&
               (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)) {
        const int step = event->key() == Qt::Key_Left ? -1 : 1;
        setHoveredToken(
            std::clamp(m_hovered < 0 ? 0 : m_hovered + step, 0, int(m_tokens->size()) - 1));
    } else {
        QWidget::keyPressEvent(event);
    }
}

void TextFlow::leaveEvent(QEvent*) {
    setHoveredToken(-1);
}

void TextFlow::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    if (event->reason() == Qt::PopupFocusReason || event->reason() == Qt::ActiveWindowFocusReason)
        return;
    clearSelection();
    if (!underMouse()) setHoveredToken(-1);
}

}  // namespace colibri::ui
