// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/markdown.h"

#include <QRegularExpression>
#include <algorithm>
#include <optional>

#include "app/workbench/chat/markdown_inline.h"

namespace colibri::ui {
namespace {

using Kind = MarkdownBlock::Kind;

constexpr int kDeepest = 12;  // nesting of lists and quotes; deeper ones are shown as text

struct Line {
    int begin, end;  // in the source, without the newline and outer marks
};
using Lines = std::vector<Line>;

// The mark of a list item: "- ", "2. ", with its task box.
struct ItemMark {
    int indent = 0, text = 0;  // offsets of the mark and of the text in the line
    QString marker;
};

struct Fence {
    QChar mark;
    int count = 0, indent = 0;
};

int indentOf(QStringView line) {
    int n = 0;
    while (n < line.size() && line[n].isSpace()) ++n;
    return n;
}

int runOf(QStringView line, int from, QChar c) {
    int n = 0;
    while (from + n < line.size() && line[from + n] == c) ++n;
    return n;
}

std::optional<Fence> fenceOf(QStringView line) {
    const int indent = indentOf(line);
    if (indent >= line.size()) return std::nullopt;
    const QChar c = line[indent];
    const int count = c == '`' || c == '~' ? runOf(line, indent, c) : 0;
    if (count < 3 || (c == '`' && line.mid(indent + count).contains('`'))) return std::nullopt;
    return Fence{c, count, indent};
}

// A closing fence: at least as many marks as the opening one, and nothing else.
bool closes(const Fence& fence, QStringView line) {
    const int indent = indentOf(line);
    const int count = runOf(line, indent, fence.mark);
    return indent < fence.indent + 4 && count >= fence.count &&
           line.mid(indent + count).trimmed().isEmpty();
}

std::optional<ItemMark> itemOf(QStringView line) {
    const int indent = indentOf(line);
    int at = indent;
    while (at < line.size() && at < indent + 3 && line[at] >= '0' && line[at] <= '9') ++at;
    const bool number = at > indent;
    if (at >= line.size() || !QStringView(number ? u".)" : u"-*+•").contains(line[at]))
        return std::nullopt;
    const int mark = ++at;
    at += indentOf(line.mid(at));
    if (at == mark) return std::nullopt;
    ItemMark item{indent, at, number ? line.mid(indent, mark - indent).toString() : QString("•")};
    const QStringView box = line.mid(at, 4);
    if (!number && (box == u"[ ] " || box == u"[x] " || box == u"[X] ")) {
        item.text = at + 4;
        item.marker = box == u"[ ] " ? "[ ]" : "[x]";
    }
    return item;
}

int headingLevel(QStringView line) {  // 0: none
    const int indent = indentOf(line);
    const int level = indent > 3 ? 0 : runOf(line, indent, '#');
    const qsizetype after = indent + level;
    return level <= 6 && after < line.size() && line[after].isSpace() ? level : 0;
}

bool isRule(QStringView line) {
    line = line.trimmed();
    if (line.size() < 3 || !QStringView(u"-*_").contains(line[0])) return false;
    return std::all_of(line.begin(), line.end(),
                       [c = line[0]](QChar x) { return x == c || x == ' '; }) &&
           line.count(line[0]) >= 3;
}

bool isQuote(QStringView line) {
    const int indent = indentOf(line);
    return indent < 4 && indent < line.size() && line[indent] == '>';
}

bool startsBlock(QStringView line) {
    return fenceOf(line) || isQuote(line) || headingLevel(line) || itemOf(line) || isRule(line);
}

// | --- | :--: |
bool isTableRule(QStringView line) {
    line = line.trimmed();
    if (line.startsWith('|')) line = line.mid(1);
    if (line.endsWith('|')) line.chop(1);
    for (QStringView cell : line.split('|')) {
        cell = cell.trimmed();
        if (cell.startsWith(':')) cell = cell.mid(1);
        if (cell.endsWith(':')) cell.chop(1);
        if (cell.size() < 2 ||
            std::any_of(cell.begin(), cell.end(), [](QChar c) { return c != '-'; }))
            return false;
    }
    return true;
}

Lines tableCells(const QString& source, const Line& line) {
    Lines cells;
    int from = line.begin, end = line.end;
    while (from < end && source[from].isSpace()) ++from;
    while (end > from && source[end - 1].isSpace()) --end;
    if (from < end && source[from] == '|') ++from;
    if (end > from && source[end - 1] == '|') --end;
    int at = from;
    while (at <= end) {
        int bar = at;
        while (bar < end && (source[bar] != '|' || (bar > at && source[bar - 1] == '\\'))) ++bar;
        int a = at, b = bar;
        while (a < b && source[a].isSpace()) ++a;
        while (b > a && source[b - 1].isSpace()) --b;
        cells.push_back({a, b});
        at = bar + 1;
    }
    return cells;
}

bool looksNumeric(const QString& text) {
    static const QRegularExpression number("^[-+−~<>≈]?[0-9][0-9.,]*\\s?[%A-Za-z/µ]{0,6}$");
    return number.match(text.trimmed()).hasMatch();
}

void findFigures(MarkdownBlock* table) {
    if (table->rows.size() < 2) return;
    table->rightAligned.assign(table->rows[0].size(), 1);
    for (size_t r = 1; r < table->rows.size(); ++r) {
        const auto& row = table->rows[r];
        for (size_t c = 0; c < std::min(row.size(), table->rows[0].size()); ++c) {
            if (!row[c].text.isEmpty() && !looksNumeric(row[c].text)) table->rightAligned[c] = 0;
        }
    }
    if (!table->rightAligned.empty()) table->rightAligned[0] = 0;
}

// The lines of one container (the reply, a list item, a quote), read from top to bottom.
class Parser {
public:
    Parser(const QString& source, bool streaming, Lines lines, std::vector<MarkdownBlock>* out)
        : m_source(source), m_streaming(streaming), m_lines(std::move(lines)), m_out(out) {}

    void run() {
        while (m_at < m_lines.size()) {
            const QStringView line = text(m_at);
            if (line.trimmed().isEmpty()) {
                ++m_at;
            } else if (const auto fence = fenceOf(line)) {
                code(*fence);
            } else if (line.trimmed() == u"$$" || line.trimmed() == u"\\[") {
                formula();
            } else if (isRule(line)) {
                add(Kind::Rule).end = m_lines[m_at].end;
                ++m_at;
            } else if (line.contains('|') && m_at + 1 < m_lines.size() &&
                       isTableRule(text(m_at + 1))) {
                table();
            } else if (const int level = headingLevel(line)) {
                heading(level);
            } else if (isQuote(line) && m_depth + m_quote < kDeepest) {
                quote();
            } else if (const auto item = itemOf(line); item && m_depth + m_quote < kDeepest) {
                list(*item);
            } else {
                paragraph();
            }
        }
    }

private:
    QStringView text(size_t line) const {
        return QStringView(m_source).mid(m_lines[line].begin,
                                         m_lines[line].end - m_lines[line].begin);
    }
    bool blank(size_t line) const { return text(line).trimmed().isEmpty(); }
    bool growing(size_t line) const { return m_streaming && m_lines[line].end == m_source.size(); }

    MarkdownBlock& add(Kind kind) {
        MarkdownBlock block;
        block.kind = kind;
        block.begin = block.end = m_lines[m_at].begin;
        block.root = m_root < 0 ? block.begin : m_root;
        block.depth = m_depth;
        block.quote = m_quote;
        m_out->push_back(std::move(block));
        return m_out->back();
    }
    void appendLine(MarkdownBlock* block, bool first, int indent) {
        const Line& line = m_lines[m_at];
        if (!first) block->text.append("\n", m_lines[m_at - 1].end, 0);
        const int skip = std::min(indent, indentOf(text(m_at)));
        block->text.append(text(m_at).mid(skip).toString(), line.begin + skip, 0);
        block->end = line.end;
    }

    void code(const Fence& fence) {
        MarkdownBlock& block = add(Kind::Code);
        block.marker = text(m_at).mid(fence.indent + fence.count).trimmed().toString();
        block.open = true;
        block.end = m_lines[m_at].end;
        bool first = true;
        for (++m_at; m_at < m_lines.size(); ++m_at) {
            if (closes(fence, text(m_at))) {
                block.open = false;
                block.end = m_lines[m_at].end;
                ++m_at;
                return;
            }
            // The first marks of an incomplete fence are not code.
            const QStringView line = text(m_at).trimmed();
            if (growing(m_at) && !line.isEmpty() && runOf(line, 0, fence.mark) == line.size())
                continue;
            appendLine(&block, std::exchange(first, false), fence.indent);
        }
    }

    // $$ or \[ on a line of its own, up to the mark that ends it.
    void formula() {
        const QStringView close = text(m_at).trimmed() == u"$$" ? u"$$" : u"\\]";
        MarkdownBlock& block = add(Kind::Code);
        block.marker = "formula";
        block.open = true;
        block.end = m_lines[m_at].end;
        bool first = true;
        for (++m_at; m_at < m_lines.size(); ++m_at) {
            if (text(m_at).trimmed() == close) {
                block.open = false;
                block.end = m_lines[m_at++].end;
                return;
            }
            appendLine(&block, std::exchange(first, false), 0);
        }
    }

    void table() {
        MarkdownBlock& block = add(Kind::Table);
        const Lines rule = tableCells(m_source, m_lines[m_at + 1]);
        for (size_t row = 0; m_at < m_lines.size() && text(m_at).contains('|'); ++m_at, ++row) {
            block.end = m_lines[m_at].end;
            if (row == 1) continue;
            std::vector<MarkedText> cells;
            for (const Line& cell : tableCells(m_source, m_lines[m_at])) {
                MarkedText marked;
                parseInline(m_source, cell.begin, cell.end, 0, false, &marked);
                if (marked.source.isEmpty()) marked.append("", cell.begin, 0);
                cells.push_back(std::move(marked));
            }
            block.rows.push_back(std::move(cells));
        }
        findFigures(&block);
        for (size_t c = 0; c < std::min(rule.size(), block.rightAligned.size()); ++c)
            if (rule[c].end > rule[c].begin && m_source[rule[c].end - 1] == ':' &&
                m_source[rule[c].begin] != ':')
                block.rightAligned[c] = 1;
    }

    void heading(int level) {
        MarkdownBlock& block = add(Kind::Heading);
        block.level = level;
        const Line& line = m_lines[m_at];
        const int marks = indentOf(text(m_at)) + level;
        const int begin = line.begin + marks + indentOf(text(m_at).mid(marks));
        int end = line.end;  // "## Head ##"
        while (end > begin && (m_source[end - 1] == '#' || m_source[end - 1].isSpace())) --end;
        if (end < line.end && end > begin && !m_source[end].isSpace()) end = line.end;
        parseInline(m_source, begin, end, TextStyle::Strong, growing(m_at), &block.text);
        block.end = line.end;
        ++m_at;
    }

    void paragraph() {
        const bool inside = m_depth + m_quote > 0;
        MarkdownBlock& block = add(m_quote > 0 ? Kind::Quote : Kind::Paragraph);
        for (size_t first = m_at; m_at < m_lines.size(); ++m_at) {
            const QStringView line = text(m_at);
            if (m_at > first && (blank(m_at) || startsBlock(line))) break;
            const int begin = m_lines[m_at].begin + indentOf(line);
            if (m_at > first) {
                // In a list or quote lines flow; elsewhere, and after two spaces, line breaks are
                // kept.
                const bool flows = inside && !text(m_at - 1).endsWith(u"  ");
                block.text.append(flows ? QString(" ") : QString(QChar::LineSeparator),
                                  m_lines[m_at - 1].end, 0);
            }
            const bool more =
                m_at + 1 < m_lines.size() && !blank(m_at + 1) && !startsBlock(text(m_at + 1));
            int end = m_lines[m_at].end;
            while (more && end > begin && m_source[end - 1].isSpace()) --end;
            parseInline(m_source, begin, end, 0, growing(m_at), &block.text);
            block.end = m_lines[m_at].end;
        }
    }

    // Reads the content of a list item or quote.
    void inner(Lines lines, int root, int depth, int quote) {
        Parser parser(m_source, m_streaming, std::move(lines), m_out);
        parser.m_root = m_root < 0 ? root : m_root;
        parser.m_depth = depth;
        parser.m_quote = quote;
        parser.run();
    }

    void quote() {
        const int root = m_lines[m_at].begin;
        Lines lines;
        for (bool open = false; m_at < m_lines.size(); ++m_at) {
            Line line = m_lines[m_at];
            if (isQuote(text(m_at))) {
                line.begin += indentOf(text(m_at)) + 1;
                if (line.begin < line.end && m_source[line.begin] == ' ') ++line.begin;
                const QStringView rest =
                    QStringView(m_source).mid(line.begin, line.end - line.begin);
                open = !rest.trimmed().isEmpty() && !fenceOf(rest);
            } else if (!open || blank(m_at) || startsBlock(text(m_at))) {
                break;  // otherwise a paragraph of the quote continues without its mark
            }
            lines.push_back(line);
        }
        inner(std::move(lines), root, m_depth, m_quote + 1);
    }

    // One item, with its indented lines.
    void list(const ItemMark& item) {
        const int root = m_lines[m_at].begin;
        Lines lines{{root + item.text, m_lines[m_at].end}};
        std::optional<Fence> fence = fenceOf(text(m_at).mid(item.text));
        size_t last = m_at;  // last line of the item
        bool open = !fence;  // a paragraph can continue without indent
        for (size_t i = m_at + 1; i < m_lines.size(); ++i) {
            const QStringView line = text(i);
            const int indent = indentOf(line);
            Line rest{m_lines[i].begin + std::min(indent, item.text), m_lines[i].end};
            if (blank(i)) {
                lines.push_back({m_lines[i].end, m_lines[i].end});
                open = false;
                continue;
            }
            const bool under = indent >= std::min(item.text, item.indent + 2);
            if (!under && !fence && (!open || startsBlock(line))) break;
            if (fence && closes(*fence, line))
                fence.reset();
            else if (!fence)
                fence = fenceOf(line);
            open = !fence;
            lines.push_back(rest);
            last = i;
        }
        lines.resize(last - m_at + 1);
        const size_t at = m_out->size();
        inner(std::move(lines), root, m_depth + 1, m_quote);
        const bool words =
            m_out->size() > at && (*m_out)[at].depth == m_depth + 1 &&
            ((*m_out)[at].kind == Kind::Paragraph || (*m_out)[at].kind == Kind::Quote);
        if (!words) {  // the item begins with code or another list
            MarkdownBlock& empty = add(Kind::Item);
            empty.depth = m_depth + 1;
            std::rotate(m_out->begin() + std::ptrdiff_t(at), m_out->end() - 1, m_out->end());
        }
        (*m_out)[at].kind = Kind::Item;
        (*m_out)[at].marker = item.marker;
        (*m_out)[at].begin = root;
        m_at = last + 1;
    }

    const QString& m_source;
    bool m_streaming;
    Lines m_lines;
    std::vector<MarkdownBlock>* m_out;
    size_t m_at = 0;
    int m_root = -1, m_depth = 0, m_quote = 0;
};

}  // namespace

std::vector<MarkdownBlock> parseMarkdown(const QString& source, int from, bool streaming) {
    Lines lines;
    const int size = int(source.size());
    for (int at = from; at <= size;) {
        qsizetype end = source.indexOf('\n', at);
        if (end < 0) end = size;
        if (at < size || at == from) lines.push_back({at, int(end)});
        at = int(end) + 1;
    }
    std::vector<MarkdownBlock> blocks;
    Parser(source, streaming, std::move(lines), &blocks).run();
    return blocks;
}

}  // namespace colibri::ui
