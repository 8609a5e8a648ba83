// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: painting and mouse.
#include <QApplication>
#include <QClipboard>
#include <QMouseEvent>
#include <QPaintEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/workbench/chat/text_flow.h"
#include "app/workbench/chat/text_flow_metrics.h"
#include "app/workbench/theme/theme.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

void TextFlow::paintMarks(QPainter& p, const BlockLayout& item) {
    const auto fill = [&](int begin, int end, const QColor& color) {
        for (const QRectF& rect : rectsOf(item, begin, end))
            p.fillRect(rect.adjusted(0, -1, 0, 1), color);
    };
    if (hasSelection())
        fill(std::min(m_anchor, m_cursor), std::max(m_anchor, m_cursor),
             withAlpha(tone(Tone::Accent), 0.30));
    for (size_t i = 0; i < m_found.size(); ++i) {
        if (m_found[i] < item.start || m_found[i] >= item.start + item.length) continue;
        fill(m_found[i], m_found[i] + int(m_needle.size()),
             int(i) == m_findCurrent ? withAlpha(tone(Tone::Warn), 0.45) : tone(Tone::Tint));
    }
    if (!m_tokens || m_tokens->isEmpty()) return;
    // Only the tokens in this block.
    const auto first =
        std::upper_bound(m_tokens->begin(), m_tokens->end(), item.block.begin,
                         [](int value, const TokenMark& mark) { return value < mark.end; });
    for (auto it = first; it != m_tokens->end(); ++it) {
        const int index = int(it - m_tokens->begin());
        if (index > 0 && (*m_tokens)[index - 1].end >= item.block.end) break;
        const bool hot = index == m_hovered;
        if (!hot && !slow(*it)) continue;
        for (const QRectF& rect : tokenRects(item, index)) {
            if (hot)
                fillBox(p, rect.adjusted(-1, -1, 1, 1), tone(Tone::Tint), tone(Tone::Accent), 2);
            if (slow(*it))
                p.fillRect(QRectF(rect.left(), std::round(rect.bottom()), rect.width(), 2),
                           tone(Tone::Warn));
        }
    }
}

QRectF TextFlow::copyRect(const BlockLayout& item) const {
    return QRectF(m_width - 28, item.top + 1, 24, flow::kCodeHead - 2);
}

void TextFlow::drawPiece(QPainter& p, const BlockLayout& item, const Piece& piece,
                         const QPointF& at) {
    if (m_played < 0) return piece.layout->draw(&p, at);
    const auto [played, end] =
        charsOfSource(item, piece, m_played, std::numeric_limits<int>::max());
    // The end counts as one position of the source more than there are characters.
    const int length = piece.length;
    QTextCharFormat faint;
    faint.setForeground(tone(Tone::Text3));
    QVector<QTextLayout::FormatRange> ranges;
    if (played < length) ranges.push_back({played, length - played, faint});
    piece.layout->draw(&p, at, ranges);
}

void TextFlow::setPlayed(int offset, bool bar) {
    if (offset == m_played && bar == m_playedBar) return;
    m_played = offset;
    m_playedBar = bar;
    update();
}

QRect TextFlow::playedRect() const {
    if (m_played < 0 || !m_playedBar) return {};
    for (auto item = m_blocks.rbegin(); item != m_blocks.rend(); ++item) {
        if (item->block.begin > m_played) continue;
        for (auto piece = item->pieces.rbegin(); piece != item->pieces.rend(); ++piece) {
            const QVector<int>& source = item->text(*piece).source;
            if (source.isEmpty() || (source.front() > m_played && piece + 1 != item->pieces.rend()))
                continue;
            const int at =
                std::min(charsOfSource(*item, *piece, m_played, m_played).first, piece->length);
            const QTextLine line = piece->layout->lineForTextPosition(at);
            if (!line.isValid()) return {};
            return QRectF(item->left + piece->x + line.cursorToX(at) - item->scroll,
                          item->top + piece->y + line.y() + line.height() / 2 - 8.5, 2, 17)
                .toAlignedRect();
        }
    }
    return {};
}

void TextFlow::paintPieces(QPainter& p, const BlockLayout& item, Tone ink) {
    paintMarks(p, item);
    for (const Piece& piece : item.pieces) {
        p.setPen(tone(piece.row == 0 ? Tone::Text3 : ink));
        drawPiece(p, item, piece, {item.left + piece.x - item.scroll, item.top + piece.y});
    }
}

// A thin scroll bar shows that the content is wider.
void TextFlow::paintScroll(QPainter& p, const BlockLayout& item) {
    const double seen = room(item);
    if (item.contentWidth <= seen) return;
    const double x = item.left + item.scroll / item.contentWidth * seen;
    fillBox(p, QRectF(x, item.top + item.height - 5, seen * seen / item.contentWidth, 3),
            tone(Tone::Line2), Qt::transparent, 1.5);
}

void TextFlow::paintCode(QPainter& p, const BlockLayout& item) {
    const double x = item.left - flow::kCodePad;
    fillBox(p, QRectF(x, item.top, m_width - x, item.height), tone(Tone::Plot), tone(Tone::Line1),
            4);
    const QString language = item.block.marker.isEmpty() ? "code" : item.block.marker;
    drawElided(p, QRectF(item.left, item.top + 1, m_width - item.left - 39, 23), Qt::AlignVCenter,
               language, type::caption(), tone(Tone::Text3));
    const int index = int(&item - m_blocks.data());
    paintIcon(p, "copy", QRectF(m_width - 22, item.top + 7, 12, 12),
              tone(index == m_hoverCode ? Tone::Text1 : Tone::Text2));
    p.fillRect(QRectF(x + 1, item.top + 24, m_width - x - 2, 1), tone(Tone::Line1));
    p.save();
    p.setClipRect(QRectF(x + 1, item.top + 25, m_width - x - 2, item.height - 26));
    paintPieces(p, item, Tone::Text1);
    paintScroll(p, item);
    p.restore();
}

void TextFlow::paintTable(QPainter& p, const BlockLayout& item) {
    const double width = std::min(item.contentWidth, room(item)), bottom = item.rows.back() + 1;
    p.save();
    p.setClipRect(QRectF(item.left, item.top, width, item.height));
    for (size_t r = 1; r + 1 < item.rows.size(); ++r)
        p.fillRect(QRectF(item.left, item.top + item.rows[r] - 1, width, 1), tone(Tone::Line1));
    paintPieces(p, item, Tone::Text1);
    p.restore();
    fillBox(p, QRectF(item.left, item.top, width, bottom), Qt::transparent, tone(Tone::Line1), 0);
    paintScroll(p, item);
}

// The line beside a quote also crosses the gaps between its blocks.
void TextFlow::paintQuote(QPainter& p, size_t index) {
    const BlockLayout& item = m_blocks[index];
    for (int i = 0; i < item.block.quote; ++i) {
        double top = item.top;
        if (index > 0 && m_blocks[index - 1].block.quote > i &&
            m_blocks[index - 1].block.root == item.block.root)
            top = m_blocks[index - 1].top + m_blocks[index - 1].height;
        p.fillRect(QRectF(i * flow::kQuoteIndent, top, 1, item.top + item.height - top),
                   tone(Tone::Line2));
    }
}

void TextFlow::paintMarker(QPainter& p, const BlockLayout& item) {
    const double left = item.left - flow::kItemIndent;
    const QString& marker = item.block.marker;
    if (marker == "•") {
        p.save();
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(Qt::NoPen);
        p.setBrush(tone(Tone::Text1));
        p.drawEllipse(QPointF(left + 5.5, item.top + m_lineHeight / 2 + 0.5), 2.5, 2.5);
        p.restore();
    } else if (marker.startsWith('[')) {
        const QRectF box(left, item.top + m_lineHeight / 2 - 6, 12, 12);
        fillBox(p, box, Qt::transparent, tone(Tone::Text3), 2);
        if (marker == "[x]") paintIcon(p, "check", box, tone(Tone::Text1));
    } else {
        // Right-aligned, so that the points of 9. and 10. are below each other.
        const double width = std::max(flow::kItemIndent - 4, textWidth(type::chat(), marker));
        drawText(p, QRectF(item.left - 4 - width, item.top, width, m_lineHeight),
                 Qt::AlignVCenter | Qt::AlignRight, marker, type::chat(), tone(Tone::Text2));
    }
}

void TextFlow::paintBlock(QPainter& p, const BlockLayout& item) {
    using Kind = MarkdownBlock::Kind;
    paintQuote(p, size_t(&item - m_blocks.data()));
    switch (item.block.kind) {
        case Kind::Rule:
            p.fillRect(QRectF(item.left, item.top + 4, m_width - item.left, 1), tone(Tone::Line1));
            return;
        case Kind::Code:
            return paintCode(p, item);
        case Kind::Table:
            return paintTable(p, item);
        case Kind::Item:
            paintMarker(p, item);
            break;
        default:
            break;
    }
    paintPieces(p, item, m_muted || item.block.quote > 0 ? Tone::Text2 : Tone::Text1);
}

void TextFlow::paintEvent(QPaintEvent* event) {
    QPainter p(this);
    const QRectF exposed = event->rect();
    for (const BlockLayout& item : m_blocks)
        if (item.top + item.height >= exposed.top() - 4 && item.top <= exposed.bottom() + 4)
            paintBlock(p, item);
    if (const QRect bar = playedRect(); !bar.isNull()) p.fillRect(bar, tone(Tone::Accent));
    if (!m_caret) return;
    QPointF at(0, (m_lineHeight - 15) / 2);
    if (!m_blocks.empty()) {
        const BlockLayout& item = m_blocks.back();
        at = {item.left, item.top + item.height - m_lineHeight + (m_lineHeight - 15) / 2};
        const Piece* piece = item.pieces.empty() ? nullptr : &item.pieces.back();
        if (piece && piece->layout->lineCount() > 0) {
            const QTextLine line = piece->layout->lineAt(piece->layout->lineCount() - 1);
            at = {item.left + piece->x + line.cursorToX(piece->length) + 1 - item.scroll,
                  item.top + piece->y + line.y() + line.height() / 2 - 7.5};
        }
    }
    p.fillRect(QRectF(std::round(std::min(at.x(), m_width - 8.0)), std::round(at.y()), 8, 15),
               tone(Tone::Accent));
}

void TextFlow::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    for (const BlockLayout& item : m_blocks) {
        if (item.block.kind == MarkdownBlock::Kind::Code &&
            copyRect(item).contains(event->position())) {
            QApplication::clipboard()->setText(item.block.text.text);
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
    const BlockLayout* item = blockOf(position);
    const Piece* piece = item ? pieceAt(*item, event->position()) : nullptr;
    if (!piece) return;
    const QString& text = item->text(*piece).text;
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
    for (BlockLayout& item : m_blocks) {
        if (!sideways || !item.scrolls()) continue;
        if (event->position().y() < item.top || event->position().y() > item.top + item.height)
            continue;
        const double most = std::max(0.0, item.contentWidth - room(item));
        const int d = delta.x() ? delta.x() : delta.y();
        item.scroll = std::clamp(item.scroll - d / 2.0, 0.0, most);
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
