// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: blocks, layout and positions. Painting stands in text_flow_paint.cpp.
#include "app/workbench/chat/text_flow.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QMenu>
#include <algorithm>
#include <cmath>

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
        // Everything before the last block is settled; a list's last item may still go on.
        keep = m_blocks.size() - 1;
        blocks = parseMarkdown(text, m_blocks[keep].block.begin, streaming);
    } else {
        blocks = parseMarkdown(text, from, streaming);
    }
    m_blocks.resize(keep);
    for (MarkdownBlock& block : blocks) {
        m_blocks.push_back({});
        m_blocks.back().block = std::move(block);
        if (m_width > 0) layoutBlock(&m_blocks.back(), m_width);
    }
    place(keep);
    if (!m_needle.isEmpty()) setFind(m_needle);
    update();
}

QVector<QTextLayout::FormatRange> TextFlow::formats(const MarkedText& text, bool strong) const {
    QVector<QTextLayout::FormatRange> out;
    for (const TextStyle& style : text.styles) {
        QTextLayout::FormatRange range;
        range.start = style.begin;
        range.length = style.length;
        if (style.flags & TextStyle::Strong) range.format.setFontWeight(QFont::DemiBold);
        if (style.flags & TextStyle::Code) {
            range.format.setFont(monoFont(13));
            if (strong) range.format.setFontWeight(QFont::DemiBold);
        }
        if (style.flags & TextStyle::Link) {
            range.format.setForeground(tone(Tone::Accent));
            range.format.setFontUnderline(true);
        }
        out << range;
    }
    return out;
}

double TextFlow::gapBefore(size_t index) const {
    if (index == 0) return 0;
    using Kind = MarkdownBlock::Kind;
    const Kind kind = m_blocks[index].block.kind, before = m_blocks[index - 1].block.kind;
    if (kind == Kind::Item && before == Kind::Item) return 4;
    if (kind == Kind::Heading) return 12;
    return 8;
}

void TextFlow::layoutBlock(Laid* laid, int width) {
    using Kind = MarkdownBlock::Kind;
    const MarkdownBlock& block = laid->block;
    laid->layout.reset();
    laid->left = laid->textTop = 0;
    if (block.kind == Kind::Rule) {
        laid->height = 9;
        return;
    }
    if (block.kind == Kind::Table) return layoutTable(laid, width);
    const bool code = block.kind == Kind::Code;
    QFont font = code ? type::mono() : type::chat();
    double lineHeight = code ? flow::kCodeLine : m_lineHeight;
    if (block.kind == Kind::Heading) font = uiFont(block.level <= 2 ? 15 : 14, QFont::DemiBold);
    if (block.kind == Kind::Item) laid->left = flow::kItemIndent * (1 + block.level);
    if (block.kind == Kind::Quote) laid->left = flow::kQuoteIndent;
    if (code) {
        laid->left = flow::kCodePad;
        laid->textTop = flow::kCodeHead + 8;
    }
    QString text = block.text.text;
    if (code) text.replace('\n', QChar::LineSeparator);
    laid->layout = std::make_shared<QTextLayout>(text, font);
    laid->layout->setFormats(formats(block.text, block.kind == Kind::Heading));
    QTextOption option;
    option.setWrapMode(code ? QTextOption::ManualWrap : QTextOption::WrapAtWordBoundaryOrAnywhere);
    option.setTabStopDistance(4 * textWidth(font, " "));
    laid->layout->setTextOption(option);
    const QFontMetricsF metrics(font);
    const double lead = (lineHeight - metrics.ascent() - metrics.descent()) / 2;
    double y = 0;
    laid->codeWidth = 0;
    laid->layout->beginLayout();
    for (QTextLine line = laid->layout->createLine(); line.isValid();
         line = laid->layout->createLine()) {
        line.setLineWidth(code ? 1e6 : std::max(40.0, width - laid->left));
        // Lines of mixed fonts share the baseline of the block's own font.
        line.setPosition({0, std::round(y + lead + metrics.ascent() - line.ascent())});
        laid->codeWidth = std::max(laid->codeWidth, line.naturalTextWidth());
        y += lineHeight;
    }
    laid->layout->endLayout();
    laid->height = std::max(y, lineHeight) + laid->textTop + (code ? 8 + 1 : 0);
    if (code)
        laid->scroll = std::clamp(laid->scroll, 0.0,
                                  std::max(0.0, laid->codeWidth - (width - 2 * flow::kCodePad)));
}

void TextFlow::layoutTable(Laid* laid, int width) {
    const MarkdownBlock& block = laid->block;
    laid->cells.clear();
    size_t columns = 0;
    for (const auto& row : block.rows) columns = std::max(columns, row.size());
    std::vector<double> widths(columns, 16);
    for (size_t r = 0; r < block.rows.size(); ++r) {
        std::vector<std::shared_ptr<QTextLayout>> cells;
        for (size_t c = 0; c < block.rows[r].size(); ++c) {
            const bool figures = c < block.rightAligned.size() && block.rightAligned[c];
            const QFont font = r == 0 ? uiFont(11, QFont::Medium)
                                      : figures ? type::mono() : type::dense();
            auto cell = std::make_shared<QTextLayout>(block.rows[r][c].text, font);
            cell->setFormats(formats(block.rows[r][c], false));
            cell->beginLayout();
            QTextLine line = cell->createLine();
            if (line.isValid()) {
                line.setLineWidth(1e6);
                line.setPosition({0, std::round((flow::kTableRow - line.height()) / 2)});
                widths[c] = std::max(widths[c], line.naturalTextWidth() + 17);
            }
            cell->endLayout();
            cells.push_back(cell);
        }
        laid->cells.push_back(std::move(cells));
    }
    laid->columns = {0};
    for (const double w : widths) laid->columns.push_back(laid->columns.back() + std::ceil(w));
    if (laid->columns.back() > width) {   // cut rather than reach out of the page
        const double share = width / laid->columns.back();
        for (double& x : laid->columns) x = std::floor(x * share);
    }
    laid->height = double(block.rows.size()) * flow::kTableRow + 2;
}

void TextFlow::place(size_t from) {
    double y = 0;
    int start = 0;
    if (from > 0 && from <= m_blocks.size()) {
        y = m_blocks[from - 1].top + m_blocks[from - 1].height;
        start = m_blocks[from - 1].start + m_blocks[from - 1].length() + 1;
    }
    for (size_t i = from; i < m_blocks.size(); ++i) {
        m_blocks[i].top = y + gapBefore(i);
        m_blocks[i].start = start;
        y = m_blocks[i].top + m_blocks[i].height;
        start += m_blocks[i].length() + 1;
    }
}

int TextFlow::layoutFor(int width) {
    if (width != m_width) {
        m_width = width;
        for (Laid& laid : m_blocks) layoutBlock(&laid, width);
        place(0);
    }
    if (m_blocks.empty()) return m_caret ? int(m_lineHeight) : 0;
    return int(std::ceil(m_blocks.back().top + m_blocks.back().height));
}

void TextFlow::applyColors() {
    for (Laid& laid : m_blocks)
        if (laid.layout)
            laid.layout->setFormats(formats(laid.block.text,
                                            laid.block.kind == MarkdownBlock::Kind::Heading));
}

void TextFlow::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::StyleChange) applyColors();
}

// ---- Positions

const TextFlow::Laid* TextFlow::blockOf(int position) const {
    for (const Laid& laid : m_blocks)
        if (position >= laid.start && position <= laid.start + laid.length()) return &laid;
    return nullptr;
}

int TextFlow::positionAt(const QPointF& at) const {
    int best = 0;
    for (const Laid& laid : m_blocks) {
        if (at.y() < laid.top) return best;
        best = laid.start + laid.length();
        if (at.y() > laid.top + laid.height || !laid.layout) continue;
        const double y = at.y() - laid.top - laid.textTop;
        for (int i = 0; i < laid.layout->lineCount(); ++i) {
            const QTextLine line = laid.layout->lineAt(i);
            const bool last = i + 1 == laid.layout->lineCount();
            if (y < line.y() + line.height() + 2 || last) {
                const double x = at.x() - laid.left + laid.scroll;
                return laid.start + line.xToCursor(x, QTextLine::CursorBetweenCharacters);
            }
        }
    }
    return best;
}

std::vector<QRectF> TextFlow::rectsOf(const Laid& laid, int begin, int end) const {
    std::vector<QRectF> out;
    if (!laid.layout || begin >= end) return out;
    for (int i = 0; i < laid.layout->lineCount(); ++i) {
        const QTextLine line = laid.layout->lineAt(i);
        const int a = std::max(begin, line.textStart());
        const int b = std::min(end, line.textStart() + line.textLength());
        if (a >= b) continue;
        double x0 = line.cursorToX(a), x1 = line.cursorToX(b);
        out.emplace_back(laid.left + x0 - laid.scroll, laid.top + laid.textTop + line.y(),
                         x1 - x0, line.height());
    }
    return out;
}

std::pair<int, int> TextFlow::charsOfSource(const Laid& laid, int begin, int end) const {
    const QVector<int>& source = laid.block.text.source;
    const auto last = source.end() - (source.isEmpty() ? 0 : 1);
    const auto a = std::lower_bound(source.begin(), last, begin);
    const auto b = std::lower_bound(source.begin(), last, end);
    return {int(a - source.begin()), int(b - source.begin())};
}

std::vector<QRectF> TextFlow::tokenRects(const Laid& laid, int token) const {
    const int begin = token > 0 ? (*m_tokens)[token - 1].end : 0, end = (*m_tokens)[token].end;
    auto [a, b] = charsOfSource(laid, begin, end);
    // The space before a word is part of its token, but not of what the eye takes for it.
    while (a < b && laid.block.text.text[a].isSpace()) ++a;
    while (b > a && laid.block.text.text[b - 1].isSpace()) --b;
    return rectsOf(laid, a, b);
}

int TextFlow::tokenAt(const QPoint& at) const {
    if (!m_tokens || m_tokens->isEmpty()) return -1;
    for (const Laid& laid : m_blocks) {
        if (at.y() < laid.top || at.y() > laid.top + laid.height || !laid.layout) continue;
        const int position = positionAt(at) - laid.start;
        const QVector<int>& source = laid.block.text.source;
        for (const int c : {position - 1, position}) {
            if (c < 0 || c >= laid.length()) continue;
            const auto rects = rectsOf(laid, c, c + 1);
            if (rects.empty() || !rects[0].adjusted(0, -2, 0, 2).contains(at)) continue;
            const int offset = source[c];
            const auto it = std::upper_bound(
                m_tokens->begin(), m_tokens->end(), offset,
                [](int value, const TokenMark& mark) { return value < mark.end; });
            return it == m_tokens->end() ? -1 : int(it - m_tokens->begin());
        }
    }
    return -1;
}

QRect TextFlow::tokenRect(int token) const {
    if (!m_tokens || token < 0 || token >= m_tokens->size()) return {};
    for (const Laid& laid : m_blocks) {
        const auto rects = tokenRects(laid, token);
        if (!rects.empty()) return rects[0].toAlignedRect();
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
    QString out;
    for (const Laid& laid : m_blocks) {
        if (!out.isEmpty()) out += '\n';
        if (laid.block.kind == MarkdownBlock::Kind::Item) out += laid.block.marker + " ";
        if (laid.block.kind == MarkdownBlock::Kind::Table) {
            QStringList rows;
            for (const auto& row : laid.block.rows) {
                QStringList cells;
                for (const MarkedText& cell : row) cells << cell.text;
                rows << cells.join('\t');
            }
            out += rows.join('\n');
        }
        out += laid.block.text.text;
    }
    return out.replace(QChar::LineSeparator, '\n');
}

QString TextFlow::selectedText() const {
    const int a = std::min(m_anchor, m_cursor), b = std::max(m_anchor, m_cursor);
    QString out;
    for (const Laid& laid : m_blocks) {
        const int from = std::max(a, laid.start), to = std::min(b, laid.start + laid.length());
        if (from > to || a == b || b <= laid.start || a > laid.start + laid.length()) continue;
        if (!out.isEmpty()) out += '\n';
        out += laid.block.text.text.mid(from - laid.start, to - from);
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
    m_cursor = m_blocks.empty() ? 0 : m_blocks.back().start + m_blocks.back().length();
    update();
}

int TextFlow::setFind(const QString& needle) {
    m_needle = needle;
    m_found.clear();
    for (const Laid& laid : m_blocks) {
        if (needle.isEmpty()) break;
        qsizetype at = laid.block.text.text.indexOf(needle, 0, Qt::CaseInsensitive);
        while (at >= 0) {
            m_found.push_back(laid.start + int(at));
            at = laid.block.text.text.indexOf(needle, at + needle.size(), Qt::CaseInsensitive);
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
    const Laid* laid = blockOf(m_found[size_t(index)]);
    if (!laid) return {};
    const int at = m_found[size_t(index)] - laid->start;
    const auto rects = rectsOf(*laid, at, at + int(m_needle.size()));
    return rects.empty() ? QRect() : rects[0].toAlignedRect();
}

void TextFlow::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu;
    QAction* copy = menu.addAction("Copy", this, [this] {
        QGuiApplication::clipboard()->setText(selectedText());
    });
    copy->setEnabled(hasSelection());
    menu.addAction("Copy all", this, [this] {
        QGuiApplication::clipboard()->setText(visibleText());
    });
    menu.addAction("Select all", this, &TextFlow::selectAll);
    menu.exec(event->globalPos());
}

}  // namespace colibri::ui
