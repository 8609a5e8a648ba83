// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: text, positions, selection. See also text_flow_layout.cpp and text_flow_paint.cpp.
#include "app/workbench/chat/text_flow.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QMenu>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/workbench/chat/text_flow_metrics.h"
#include "app/workbench/theme/theme.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

TextFlow::TextFlow(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::ClickFocus);
    setCursor(Qt::IBeamCursor);
}

void TextFlow::setLook(double lineHeight, bool muted) {
    m_lineHeight = lineHeight;
    m_muted = muted;
}

void TextFlow::setCaret(bool on) {
    if (on == m_caret) return;
    m_caret = on;
    update();
}

void TextFlow::setSlowMs(double ms) {
    if (ms == m_slowMs) return;
    m_slowMs = ms;
    update();
}

void TextFlow::setText(const QString& text, int from, bool streaming) {
    const bool grew = !m_blocks.empty() && from == m_from && !m_plain &&
                      text.size() >= m_text.size() &&
                      QStringView(text).left(m_text.size()) == m_text;
    if (grew && text.size() == m_text.size() && streaming == m_streaming) return;
    m_text = text;
    m_from = from;
    m_streaming = streaming;
    std::vector<MarkdownBlock> blocks;
    size_t keep = 0;
    if (m_plain) {
        MarkdownBlock block;
        block.begin = from;
        block.end = int(text.size());
        QString shown = text.mid(from);
        shown.replace('\n', QChar::LineSeparator);
        block.text.append(shown, from, 0);
        blocks.push_back(std::move(block));
    } else if (grew) {
        // Blocks before the last one are final, but a list or quote around it may continue.
        const int root = m_blocks.back().block.root;
        keep = m_blocks.size() - 1;
        while (keep > 0 && m_blocks[keep - 1].block.root == root) --keep;
        blocks = parseMarkdown(text, root, streaming);
    } else {
        blocks = parseMarkdown(text, from, streaming);
    }
    std::vector<double> scrolls;
    for (size_t i = keep; grew && i < m_blocks.size(); ++i) scrolls.push_back(m_blocks[i].scroll);
    m_blocks.resize(keep);
    for (MarkdownBlock& block : blocks) {
        m_blocks.push_back({});
        m_blocks.back().block = std::move(block);
        if (m_blocks.size() - keep <= scrolls.size())
            m_blocks.back().scroll = scrolls[m_blocks.size() - keep - 1];
        layoutBlock(&m_blocks.back(), m_width > 0 ? m_width : 400);
    }
    positionBlocks(keep);
    if (!m_needle.isEmpty()) setFind(m_needle);
    update();
}

void TextFlow::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::StyleChange) applyColors();
}

// ---- Positions

const TextFlow::BlockLayout* TextFlow::blockOf(int position) const {
    for (const BlockLayout& item : m_blocks)
        if (position >= item.start && position <= item.start + item.length) return &item;
    return nullptr;
}

const TextFlow::Piece* TextFlow::pieceAt(const BlockLayout& item, const QPointF& at) const {
    if (item.pieces.empty()) return nullptr;
    if (item.block.kind != MarkdownBlock::Kind::Table) return &item.pieces[0];
    const Piece* best = nullptr;
    const double x = at.x() - item.left + item.scroll, y = at.y() - item.top;
    for (const Piece& piece : item.pieces)
        if (item.rows[size_t(piece.row)] <= y || piece.row == 0)
            if (item.columns[size_t(piece.column)] <= x || piece.column == 0) best = &piece;
    return best;
}

int TextFlow::positionAt(const QPointF& at) const {
    int best = 0;
    for (const BlockLayout& item : m_blocks) {
        if (at.y() < item.top) return best;
        best = item.start + item.length;
        const Piece* piece = at.y() > item.top + item.height ? nullptr : pieceAt(item, at);
        if (!piece) continue;
        const double y = at.y() - item.top - piece->y;
        for (int i = 0; i < piece->layout->lineCount(); ++i) {
            const QTextLine line = piece->layout->lineAt(i);
            const bool last = i + 1 == piece->layout->lineCount();
            if (y < line.y() + line.height() + 2 || last) {
                const double x = at.x() - item.left - piece->x + item.scroll;
                return piece->start + line.xToCursor(x, QTextLine::CursorBetweenCharacters);
            }
        }
    }
    return best;
}

std::vector<QRectF> TextFlow::rectsOf(const BlockLayout& item, int begin, int end) const {
    std::vector<QRectF> out;
    for (const Piece& piece : item.pieces) {
        if (begin >= end || piece.start >= end || piece.start + piece.length <= begin) continue;
        for (int i = 0; i < piece.layout->lineCount(); ++i) {
            const QTextLine line = piece.layout->lineAt(i);
            const int a = std::max(begin - piece.start, line.textStart());
            const int b = std::min(end - piece.start, line.textStart() + line.textLength());
            if (a >= b) continue;
            const double x0 = line.cursorToX(a), x1 = line.cursorToX(b);
            out.emplace_back(item.left + piece.x + x0 - item.scroll, item.top + piece.y + line.y(),
                             x1 - x0, line.height());
        }
    }
    return out;
}

std::pair<int, int> TextFlow::charsOfSource(const BlockLayout& item, const Piece& piece, int begin,
                                            int end) const {
    const QVector<int>& source = item.text(piece).source;
    const auto last = source.end() - (source.isEmpty() ? 0 : 1);
    const auto a = std::lower_bound(source.begin(), last, begin);
    const auto b = std::lower_bound(source.begin(), last, end);
    return {int(a - source.begin()), int(b - source.begin())};
}

std::vector<QRectF> TextFlow::tokenRects(const BlockLayout& item, int token) const {
    const int begin = token > 0 ? (*m_tokens)[token - 1].end : 0, end = (*m_tokens)[token].end;
    std::vector<QRectF> out;
    for (const Piece& piece : item.pieces) {
        const QString& text = item.text(piece).text;
        auto [a, b] = charsOfSource(item, piece, begin, end);
        // The space before a word belongs to the token, but is not highlighted.
        while (a < b && text[a].isSpace()) ++a;
        while (b > a && text[b - 1].isSpace()) --b;
        const auto rects = rectsOf(item, piece.start + a, piece.start + b);
        out.insert(out.end(), rects.begin(), rects.end());
    }
    return out;
}

int TextFlow::tokenAt(const QPoint& at) const {
    if (!m_tokens || m_tokens->isEmpty()) return -1;
    for (const BlockLayout& item : m_blocks) {
        if (at.y() < item.top || at.y() > item.top + item.height) continue;
        const Piece* piece = pieceAt(item, at);
        if (!piece) continue;
        const int position = positionAt(at) - piece->start;
        const QVector<int>& source = item.text(*piece).source;
        for (const int c : {position - 1, position}) {
            if (c < 0 || c >= piece->length) continue;
            const auto rects = rectsOf(item, piece->start + c, piece->start + c + 1);
            if (rects.empty() || !rects[0].adjusted(0, -2, 0, 2).contains(at)) continue;
            const int offset = source[c];
            const auto it =
                std::upper_bound(m_tokens->begin(), m_tokens->end(), offset,
                                 [](int value, const TokenMark& mark) { return value < mark.end; });
            return it == m_tokens->end() ? -1 : int(it - m_tokens->begin());
        }
    }
    return -1;
}

QRect TextFlow::tokenRect(int token) const {
    if (!m_tokens || token < 0 || token >= m_tokens->size()) return {};
    for (const BlockLayout& item : m_blocks) {
        const auto rects = tokenRects(item, token);
        if (!rects.empty()) return rects[0].toAlignedRect();
    }
    return {};
}

QString TextFlow::linkAt(const QPoint& at) const {
    const BlockLayout* item = blockOf(positionAt(at));
    if (!item) return {};
    for (const Piece& piece : item->pieces)
        for (const TextStyle& style : item->text(piece).styles) {
            if (style.target.isEmpty()) continue;
            const int begin = piece.start + style.begin;
            for (const QRectF& rect : rectsOf(*item, begin, begin + style.length))
                if (rect.contains(at)) return style.target;
        }
    return {};
}

QRect TextFlow::cellRect(int row, int column) const {
    for (const BlockLayout& item : m_blocks)
        for (const Piece& piece : item.pieces)
            if (piece.row == row && piece.column == column) {
                QRectF whole;
                for (const QRectF& rect : rectsOf(item, piece.start, piece.start + piece.length))
                    whole |= rect;
                return whole.toAlignedRect();
            }
    return {};
}

void TextFlow::setHoveredToken(int token) {
    if (token == m_hovered) return;
    m_hovered = token;
    update();
    emit tokenHovered(token);
}

// ---- Selection and finding

QString TextFlow::visibleText() const {
    return textBetween(0, std::numeric_limits<int>::max());
}

QString TextFlow::selectedText() const {
    return hasSelection() ? textBetween(std::min(m_anchor, m_cursor), std::max(m_anchor, m_cursor))
                          : QString();
}

// As plain text: items have their marks, cells of a table are separated by tabs.
QString TextFlow::textBetween(int begin, int end) const {
    QString out;
    const BlockLayout* before = nullptr;
    for (const BlockLayout& item : m_blocks) {
        if (item.start >= end && before) break;
        if (item.start + item.length < begin || (item.start + item.length == begin && item.length))
            continue;
        if (before) out += '\n';
        before = &item;
        if (item.block.kind == MarkdownBlock::Kind::Item && begin <= item.start)
            out += QString(2 * std::max(0, item.block.depth - 1), ' ') + item.block.marker + " ";
        int row = -1;
        for (const Piece& piece : item.pieces) {
            const int from = std::max(begin, piece.start),
                      to = std::min(end, piece.start + piece.length);
            if (from > to) continue;
            if (row >= 0) out += piece.row == row ? '\t' : '\n';
            row = piece.row;
            out += item.text(piece).text.mid(from - piece.start, to - from);
        }
    }
    return out.replace(QChar::LineSeparator, '\n');
}

void TextFlow::clearSelection() {
    if (!hasSelection()) return;
    m_anchor = m_cursor = 0;
    update();
}

void TextFlow::selectAll() {
    m_anchor = 0;
    m_cursor = m_blocks.empty() ? 0 : m_blocks.back().start + m_blocks.back().length;
    update();
}

int TextFlow::setFind(const QString& needle) {
    m_needle = needle;
    m_found.clear();
    for (const BlockLayout& item : m_blocks) {
        if (needle.isEmpty()) break;
        for (const Piece& piece : item.pieces) {
            const QString& text = item.text(piece).text;
            qsizetype at = text.indexOf(needle, 0, Qt::CaseInsensitive);
            while (at >= 0) {
                m_found.push_back(piece.start + int(at));
                at = text.indexOf(needle, at + needle.size(), Qt::CaseInsensitive);
            }
        }
    }
    if (needle.isEmpty()) m_findCurrent = -1;
    update();
    return int(m_found.size());
}

void TextFlow::setFindCurrent(int index) {
    m_findCurrent = index;
    update();
}

QRect TextFlow::findRect(int index) const {
    if (index < 0 || index >= int(m_found.size())) return {};
    const BlockLayout* item = blockOf(m_found[size_t(index)]);
    if (!item) return {};
    const int at = m_found[size_t(index)];
    const auto rects = rectsOf(*item, at, at + int(m_needle.size()));
    return rects.empty() ? QRect() : rects[0].toAlignedRect();
}

void TextFlow::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu;
    QAction* copy = menu.addAction(
        "Copy", this, [this] { QGuiApplication::clipboard()->setText(selectedText()); });
    copy->setEnabled(hasSelection());
    menu.addAction("Copy all", this,
                   [this] { QGuiApplication::clipboard()->setText(visibleText()); });
    menu.addAction("Select all", this, &TextFlow::selectAll);
    if (const QString link = linkAt(event->pos()); !link.isEmpty()) {
        menu.addSeparator();
        menu.addAction("Open link", this, [this, link] { emit linkWanted(link); });
        menu.addAction("Copy link", this, [link] { QGuiApplication::clipboard()->setText(link); });
    }
    menu.exec(event->globalPos());
}

}  // namespace colibri::ui
