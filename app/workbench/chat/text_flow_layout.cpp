// SPDX-License-Identifier: GPL-3.0-or-later
// TextFlow: fonts, lines and columns.
#include <algorithm>
#include <cmath>

#include "app/workbench/chat/code_colors.h"
#include "app/workbench/chat/text_flow.h"
#include "app/workbench/chat/text_flow_metrics.h"
#include "app/workbench/theme/theme.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {
namespace {

using Kind = MarkdownBlock::Kind;

constexpr double kNoWrap = 1e6;

QFont headingFont(int level) {
    static constexpr int kSizes[] = {19, 17, 15};
    return uiFont(level <= 3 ? kSizes[level - 1] : 14, QFont::DemiBold);
}

// Lays out the lines below each other; mixed fonts share the baseline of the layout's own font.
// Returns the height; `widest`: the width of the widest line.
double layOutLines(QTextLayout* layout, double width, double lineHeight, double* widest) {
    const QFontMetricsF metrics(layout->font());
    const double lead = (lineHeight - metrics.ascent() - metrics.descent()) / 2;
    double y = 0;
    *widest = 0;
    layout->beginLayout();
    for (QTextLine line = layout->createLine(); line.isValid(); line = layout->createLine()) {
        line.setLineWidth(width);
        line.setPosition({0, std::round(y + lead + metrics.ascent() - line.ascent())});
        *widest = std::max(*widest, line.naturalTextWidth());
        y += lineHeight;
    }
    layout->endLayout();
    return std::max(y, lineHeight);
}

}  // namespace

const MarkedText& TextFlow::BlockLayout::text(const Piece& piece) const {
    return piece.row < 0 ? block.text : block.rows[size_t(piece.row)][size_t(piece.column)];
}

bool TextFlow::BlockLayout::scrolls() const {
    return block.kind == Kind::Code || block.kind == Kind::Table;
}

double TextFlow::room(const BlockLayout& item) const {
    return m_width - item.left - (item.block.kind == Kind::Code ? flow::kCodePad : 0);
}

QVector<QTextLayout::FormatRange> TextFlow::formats(const MarkedText& text, bool strong) const {
    QVector<QTextLayout::FormatRange> out;
    for (const TextStyle& style : text.styles) {
        QTextLayout::FormatRange range;
        range.start = style.begin;
        range.length = style.length;
        const bool bold = style.flags & TextStyle::Strong || strong;
        if (style.flags & TextStyle::Code) {
            range.format.setFont(monoFont(13));
            range.format.setFontStyleStrategy(QFont::PreferNoShaping);
        }
        if (bold) range.format.setFontWeight(QFont::DemiBold);
        if (style.flags & TextStyle::Emphasis) range.format.setFontItalic(true);
        if (style.flags & TextStyle::Struck) range.format.setFontStrikeOut(true);
        if (style.flags & TextStyle::Link) {
            range.format.setForeground(tone(Tone::Accent));
            range.format.setFontUnderline(true);
        }
        out << range;
    }
    for (const auto& [begin, length] : shapedWords(text.text)) {
        QTextLayout::FormatRange range{begin, length, {}};
        range.format.setFontStyleStrategy(QFont::PreferDefault);
        out << range;
    }
    return out;
}

QVector<QTextLayout::FormatRange> TextFlow::blockFormats(const MarkdownBlock& block) const {
    QVector<QTextLayout::FormatRange> out = formats(block.text, block.kind == Kind::Heading);
    if (block.kind != Kind::Code) return out;
    for (const CodeSpan& span : codeSpans(block.text.text, block.marker)) {
        QTextLayout::FormatRange range{span.begin, span.length, {}};
        range.format.setForeground(tone(codeTone(span.kind)));
        out << range;
    }
    return out;
}

double TextFlow::gapBefore(size_t index) const {
    if (index == 0) return 0;
    const Kind kind = m_blocks[index].block.kind, before = m_blocks[index - 1].block.kind;
    if (kind == Kind::Item && before == Kind::Item) return 4;
    if (kind == Kind::Heading) return m_blocks[index].block.level <= 2 ? 16 : 12;
    return 8;
}

void TextFlow::layoutBlock(BlockLayout* item, int width) {
    const MarkdownBlock& block = item->block;
    item->pieces.clear();
    item->left = block.quote * flow::kQuoteIndent + block.depth * flow::kItemIndent;
    item->contentWidth = 0;
    if (block.kind == Kind::Rule) {
        item->height = 9;
        return;
    }
    if (block.kind == Kind::Table) return layoutTable(item, width);
    const bool code = block.kind == Kind::Code, heading = block.kind == Kind::Heading;
    const QFont font = code ? type::mono() : heading ? headingFont(block.level) : type::chat();
    double lineHeight = code ? flow::kCodeLine : m_lineHeight;
    if (heading) lineHeight = std::max(m_lineHeight, std::ceil(QFontMetricsF(font).height()) + 3);
    Piece piece;
    if (code) {
        item->left += flow::kCodePad;
        piece.y = flow::kCodeHead + 8;
    }
    QString text = block.text.text;
    if (code) text.replace('\n', QChar::LineSeparator);
    piece.layout = std::make_shared<QTextLayout>(text, font);
    piece.layout->setFormats(blockFormats(block));
    QTextOption option;
    option.setWrapMode(code ? QTextOption::ManualWrap : QTextOption::WrapAtWordBoundaryOrAnywhere);
    option.setTabStopDistance(4 * textWidth(font, " "));
    piece.layout->setTextOption(option);
    const double lines =
        layOutLines(piece.layout.get(), code ? kNoWrap : std::max(40.0, width - item->left),
                    lineHeight, &item->contentWidth);
    item->height = lines + piece.y + (code ? 8 + 1 : 0);
    item->pieces.push_back(std::move(piece));
    if (code)
        item->scroll =
            std::clamp(item->scroll, 0.0, std::max(0.0, item->contentWidth - room(*item)));
}

// ---- Tables

QFont TextFlow::cellFont(const BlockLayout& item, const Piece& piece) const {
    const auto& right = item.block.rightAligned;
    const bool figures = size_t(piece.column) < right.size() && right[size_t(piece.column)];
    return piece.row == 0 ? uiFont(11, QFont::Medium) : figures ? type::mono() : type::dense();
}

std::shared_ptr<QTextLayout> TextFlow::layoutCell(const BlockLayout& item, const Piece& piece,
                                                  double width) const {
    const MarkedText& text = item.text(piece);
    const auto& right = item.block.rightAligned;
    auto layout = std::make_shared<QTextLayout>(text.text, cellFont(item, piece));
    layout->setFormats(formats(text, false));
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    if (width < kNoWrap && size_t(piece.column) < right.size() && right[size_t(piece.column)])
        option.setAlignment(Qt::AlignRight);
    layout->setTextOption(option);
    double widest = 0;
    layOutLines(layout.get(), width, flow::kCellLine, &widest);
    return layout;
}

// Each column gets its natural width if there is room. Otherwise long texts wrap, the longest
// first, but words and figures are not broken: the table may be wider than `room`.
std::vector<double> TextFlow::columnWidths(const BlockLayout& item, double room) const {
    constexpr double kLongWord = 180;
    const double pad = 2 * flow::kCellPad + 1;
    size_t columns = 0;
    for (const auto& row : item.block.rows) columns = std::max(columns, row.size());
    std::vector<double> want(columns, pad), least(columns, pad);
    for (size_t r = 0; r < item.block.rows.size(); ++r) {
        for (size_t c = 0; c < item.block.rows[r].size(); ++c) {
            Piece cell;
            cell.row = int(r);
            cell.column = int(c);
            const auto layout = layoutCell(item, cell, kNoWrap);
            const bool figures = c < item.block.rightAligned.size() && item.block.rightAligned[c];
            for (int i = 0; i < layout->lineCount(); ++i)
                want[c] = std::max(want[c], std::ceil(layout->lineAt(i).naturalTextWidth()) + pad);
            const QFont font = cellFont(item, cell);
            double word = 0;
            for (const QString& part : item.block.rows[r][c].text.split(' '))
                word = std::max(word, std::ceil(textWidth(font, part)) * 1.08 + 2);
            if (figures && r > 0) word = want[c] - pad;
            least[c] = std::max(least[c], (figures ? word : std::min(word, kLongWord)) + pad);
        }
    }
    double wanted = 0, needed = 0;
    for (size_t c = 0; c < columns; ++c) {
        least[c] = std::min(least[c], want[c]);
        wanted += want[c];
        needed += least[c];
    }
    if (wanted <= room || wanted <= needed) return want;
    std::vector<double> widths = least;
    // A long text is not squeezed to single words: the table scrolls instead.
    if (needed >= room) {
        for (size_t c = 0; c < columns; ++c)
            widths[c] = std::min(want[c], std::max(least[c], kLongWord));
        return widths;
    }
    const double share = (room - needed) / (wanted - needed);
    for (size_t c = 0; c < columns; ++c) widths[c] += std::floor((want[c] - least[c]) * share);
    return widths;
}

void TextFlow::layoutTable(BlockLayout* item, int width) {
    const std::vector<double> widths = columnWidths(*item, width - item->left);
    item->columns = {0};
    for (const double w : widths) item->columns.push_back(item->columns.back() + w);
    item->rows = {1};
    for (size_t r = 0; r < item->block.rows.size(); ++r) {
        int lines = 1;
        for (size_t c = 0; c < item->block.rows[r].size(); ++c) {
            Piece cell;
            cell.row = int(r);
            cell.column = int(c);
            cell.layout = layoutCell(*item, cell, widths[c] - 2 * flow::kCellPad);
            cell.x = item->columns[c] + flow::kCellPad;
            cell.y = item->rows.back() + (flow::kTableRow - flow::kCellLine) / 2;
            lines = std::max(lines, cell.layout->lineCount());
            item->pieces.push_back(std::move(cell));
        }
        item->rows.push_back(item->rows.back() + flow::kTableRow + (lines - 1) * flow::kCellLine);
    }
    item->height = item->rows.back() + 1;
    item->contentWidth = item->columns.back();
    const double hidden = std::max(0.0, item->contentWidth - (width - item->left));
    if (hidden > 0) item->height += 8;  // for the scroll bar
    item->scroll = std::clamp(item->scroll, 0.0, hidden);
}

// ---- The whole

void TextFlow::positionBlocks(size_t from) {
    double y = 0;
    int start = 0;
    if (from > 0 && from <= m_blocks.size()) {
        y = m_blocks[from - 1].top + m_blocks[from - 1].height;
        start = m_blocks[from - 1].start + m_blocks[from - 1].length + 1;
    }
    for (size_t i = from; i < m_blocks.size(); ++i) {
        BlockLayout& item = m_blocks[i];
        item.top = y + gapBefore(i);
        item.start = start;
        for (Piece& piece : item.pieces) {
            piece.start = start;
            piece.length = int(item.text(piece).text.size());
            start += piece.length + 1;
        }
        item.length = item.pieces.empty() ? 0 : start - item.start - 1;
        if (item.pieces.empty()) ++start;
        y = item.top + item.height;
    }
}

int TextFlow::layoutFor(int width) {
    if (width != m_width) {
        m_width = width;
        for (BlockLayout& item : m_blocks) layoutBlock(&item, width);
        positionBlocks(0);
    }
    if (m_blocks.empty()) return m_caret ? int(m_lineHeight) : 0;
    return int(std::ceil(m_blocks.back().top + m_blocks.back().height));
}

// Formats cannot be replaced in a finished layout, so the layouts are created again.
void TextFlow::applyColors() {
    for (BlockLayout& item : m_blocks) layoutBlock(&item, m_width > 0 ? m_width : 400);
    positionBlocks(0);
    update();
}

}  // namespace colibri::ui
