// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: painting and mouse.
#include <QApplication>
#include <QClipboard>
#include <QMouseEvent>
#include <QPainter>
#include <QPaintEvent>
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
    const int a = std::min(m_anchor, m_cursor) - laid.start;
    const int b = std::max(m_anchor, m_cursor) - laid.start;
    if (b > 0 && a < laid.length() && a != b)
        fill(std::max(0, a), std::min(b, laid.length()), withAlpha(tone(Tone::Accent), 0.30));
    for (size_t i = 0; i < m_found.size(); ++i) {
        const int at = m_found[i] - laid.start;
        if (at < 0 || at >= laid.length()) continue;
        fill(at, at + int(m_needle.size()),
             int(i) == m_findCurrent ? withAlpha(tone(Tone::Warn), 0.45) : tone(Tone::Tint));
    }
    if (!m_tokens || m_tokens->isEmpty()) return;
    // Only the tokens whose text stands in this block.
    const auto first = std::upper_bound(
        m_tokens->begin(), m_tokens->end(), laid.block.begin,
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

void TextFlow::paintCode(QPainter& p, const Laid& laid) {
    const QRectF box(0, laid.top, m_width, laid.height);
    fillBox(p, box, tone(Tone::Plot), tone(Tone::Line1), 4);
    const QString language = laid.block.marker.isEmpty() ? "code" : laid.block.marker;
    drawElided(p, QRectF(11, laid.top + 1, m_width - 50, 23), Qt::AlignVCenter, language,
               type::caption(), tone(Tone::Text3));
    const int index = int(&laid - m_blocks.data());
    paintIcon(p, "copy", QRectF(m_width - 22, laid.top + 7, 12, 12),
              tone(index == m_hoverCode ? Tone::Text1 : Tone::Text2));
    p.fillRect(QRectF(1, laid.top + 24, m_width - 2, 1), tone(Tone::Line1));
    p.save();
    p.setClipRect(QRectF(1, laid.top + 25, m_width - 2, laid.height - 26));
    paintMarks(p, laid);
    p.setPen(tone(Tone::Text1));
    laid.layout->draw(&p, {laid.left - laid.scroll, laid.top + laid.textTop});
    const double room = m_width - 2 * flow::kCodePad;
    if (laid.codeWidth > room) {   // a thin bar says that there is more to the side
        const double share = room / laid.codeWidth;
        const double x = flow::kCodePad + laid.scroll / laid.codeWidth * room;
        fillBox(p, QRectF(x, laid.top + laid.height - 5, room * share, 3), tone(Tone::Line2),
                Qt::transparent, 1.5);
    }
    p.restore();
}

void TextFlow::paintTable(QPainter& p, const Laid& laid) {
    const double right = laid.columns.back();
    for (size_t r = 0; r < laid.cells.size(); ++r) {
        const double y = laid.top + 1 + double(r) * flow::kTableRow;
        if (r) p.fillRect(QRectF(0, y - 1, right, 1), tone(Tone::Line1));
        for (size_t c = 0; c < laid.cells[r].size(); ++c) {
            const auto& cell = laid.cells[r][c];
            const double x0 = laid.columns[c], x1 = laid.columns[c + 1];
            const bool figures = c < laid.block.rightAligned.size() && laid.block.rightAligned[c];
            double x = x0 + 8;
            if (figures && cell->lineCount() > 0)
                x = std::max(x, x1 - 8 - cell->lineAt(0).naturalTextWidth());
            p.save();
            p.setClipRect(QRectF(x0, y, x1 - x0, flow::kTableRow));
            p.setPen(tone(r == 0 ? Tone::Text3 : Tone::Text1));
            cell->draw(&p, {x, y});
            p.restore();
        }
    }
    fillBox(p, QRectF(0, laid.top, right, laid.height), Qt::transparent, tone(Tone::Line1), 0);
}

void TextFlow::paintBlock(QPainter& p, const Laid& laid) {
    using Kind = MarkdownBlock::Kind;
    switch (laid.block.kind) {
        case Kind::Rule:
            p.fillRect(QRectF(0, laid.top + 4, m_width, 1), tone(Tone::Line1));
            return;
        case Kind::Code: return paintCode(p, laid);
        case Kind::Table: return paintTable(p, laid);
        case Kind::Quote:
            p.fillRect(QRectF(0, laid.top, 1, laid.height), tone(Tone::Line2));
            break;
        case Kind::Item: {
            const double left = laid.left - flow::kItemIndent;
            if (laid.block.marker == "•") {
                p.setRenderHint(QPainter::Antialiasing);
                p.setPen(Qt::NoPen);
                p.setBrush(tone(Tone::Text1));
                p.drawEllipse(QPointF(left + 5.5, laid.top + m_lineHeight / 2 + 0.5), 2.5, 2.5);
            } else {
                drawText(p, QRectF(left - 2, laid.top, flow::kItemIndent, m_lineHeight),
                         Qt::AlignVCenter, laid.block.marker, type::chat(), tone(Tone::Text2));
            }
            break;
        }
        default: break;
    }
    paintMarks(p, laid);
    p.setPen(tone(m_muted || laid.block.kind == Kind::Quote ? Tone::Text2 : Tone::Text1));
    laid.layout->draw(&p, {laid.left, laid.top + laid.textTop});
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
        if (laid.layout && laid.layout->lineCount() > 0) {
            const QTextLine line = laid.layout->lineAt(laid.layout->lineCount() - 1);
            at = {laid.left + line.cursorToX(laid.length()) + 1 - laid.scroll,
                  laid.top + laid.textTop + line.y() + line.height() / 2 - 7.5};
        }
    }
    p.fillRect(QRectF(std::round(std::min(at.x(), m_width - 8.0)), std::round(at.y()), 8, 15),
               tone(Tone::Accent));
}

void TextFlow::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    for (const Laid& laid : m_blocks) {
        if (laid.block.kind == MarkdownBlock::Kind::Code && copyRect(laid).contains(event->position())) {
            QApplication::clipboard()->setText(laid.block.text.text);
            emit codeCopied();
            return;
        }
    }
    m_selecting = true;
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
        setCursor(code >= 0 ? Qt::PointingHandCursor : Qt::IBeamCursor);
        setToolTip(code >= 0 ? "Copy code" : "");
        update();
    }
    setHoveredToken(tokenAt(event->position().toPoint()));
}

void TextFlow::mouseReleaseEvent(QMouseEvent*) { m_selecting = false; }

void TextFlow::mouseDoubleClickEvent(QMouseEvent* event) {
    const int position = positionAt(event->position());
    const Laid* laid = blockOf(position);
    if (!laid) return;
    const QString& text = laid->block.text.text;
    const auto word = [](QChar c) { return c.isLetterOrNumber() || c == '_'; };
    int a = std::clamp(position - laid->start, 0, laid->length()), b = a;
    while (a > 0 && word(text[a - 1])) --a;
    while (b < text.size() && word(text[b])) ++b;
    m_anchor = laid->start + a;
    m_cursor = laid->start + b;
    update();
}

void TextFlow::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    const bool sideways = std::abs(delta.x()) > std::abs(delta.y()) ||
                          (event->modifiers() & Qt::ShiftModifier);
    for (Laid& laid : m_blocks) {
        if (!sideways || laid.block.kind != MarkdownBlock::Kind::Code) continue;
        if (event->position().y() < laid.top || event->position().y() > laid.top + laid.height) continue;
        const double most = std::max(0.0, laid.codeWidth - (m_width - 2 * flow::kCodePad));
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
        setHoveredToken(std::clamp(m_hovered < 0 ? 0 : m_hovered + step, 0,
                                   int(m_tokens->size()) - 1));
    } else {
        QWidget::keyPressEvent(event);
    }
}

void TextFlow::leaveEvent(QEvent*) { setHoveredToken(-1); }

void TextFlow::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    if (event->reason() == Qt::PopupFocusReason || event->reason() == Qt::ActiveWindowFocusReason)
        return;
    clearSelection();
    if (!underMouse()) setHoveredToken(-1);
}

}  // namespace colibri::ui
