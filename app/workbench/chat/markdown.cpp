// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/markdown.h"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>

namespace colibri::ui {
namespace {

struct Line {
    int begin, end;                      // without the newline
};

std::vector<Line> splitLines(const QString& source, int from) {
    std::vector<Line> out;
    int at = from;
    const int size = int(source.size());
    while (at <= size) {
        qsizetype end = source.indexOf('\n', at);
        if (end < 0) end = size;
        if (at < size || at == from) out.push_back({at, int(end)});
        at = int(end) + 1;
    }
    return out;
}

// Looks for one mark in a stretch, from places that go forward only: it remembers the mark it found
// last, so that all looks together walk over the stretch once.
class MarkFinder {
public:
    MarkFinder(QStringView stretch, int begin, QStringView mark)
        : m_stretch(stretch), m_mark(mark), m_begin(begin) {}

    // Where in the source the next mark begins, at `from` or behind it; -1: nowhere.
    int next(int from) {
        if (m_found != kNone && m_found < from) {
            const qsizetype at = m_stretch.indexOf(m_mark, from - m_begin);
            m_found = at < 0 ? kNone : int(at) + m_begin;
        }
        return m_found;
    }

private:
    static constexpr int kNone = -1, kUnknown = -2;

    QStringView m_stretch, m_mark;
    int m_begin, m_found = kUnknown;
};

// Inline marks in source[begin, end), a part of one line.
void parseInline(const QString& source, int begin, int end, int base, bool streaming,
                 MarkedText* out) {
    const QStringView stretch = QStringView(source).mid(begin, end - begin);
    MarkFinder code(stretch, begin, u"`"), stars(stretch, begin, u"**"), bars(stretch, begin, u"__"),
        star(stretch, begin, u"*"), opens(stretch, begin, u"["),
        middles(stretch, begin, u"]("), closes(stretch, begin, u")");
    int at = begin, plain = begin;
    const auto flush = [&](int to) {
        if (to > plain) out->append(source.mid(plain, to - plain), plain, base);
    };
    // What stands between marks, and where to go on behind them.
    const auto marked = [&](int from, int to, int after, int flag, bool open) {
        flush(at);
        parseInline(source, from, to, base | flag, open, out);
        at = plain = std::min(end, after);
    };
    while (at < end) {
        const QChar c = source[at];
        if (c == '`') {
            const int close = code.next(at + 1);
            if (close > at + 1) {
                flush(at);
                out->append(source.mid(at + 1, close - at - 1), at + 1, base | TextStyle::Code);
                at = plain = close + 1;
                continue;
            }
        } else if ((c == '*' || c == '_') && at + 1 < end && source[at + 1] == c) {
            const bool starts = at + 2 < end && !source[at + 2].isSpace();
            int close = starts ? (c == '*' ? stars : bars).next(at + 2) : -1;
            if (close < 0 && streaming) close = end;
            if (starts && close > at + 2) {
                marked(at + 2, close, close + 2, TextStyle::Strong, streaming);
                continue;
            }
        } else if (c == '*' && at + 1 < end && !source[at + 1].isSpace() && source[at + 1] != '*') {
            const int close = star.next(at + 1);
            if (close > at + 1 && !source[close - 1].isSpace()) {
                marked(at + 1, close, close + 1, TextStyle::Strong, streaming);
                continue;
            }
        } else if (c == '[') {
            // The bracket nearest to "](" begins the link: "a[0] and [here](x)".
            const int middle = middles.next(at + 1), other = opens.next(at + 1);
            const int close = middle > 0 ? closes.next(middle + 2) : -1;
            if (close > 0 && (other < 0 || other > middle)) {
                marked(at + 1, middle, close + 1, TextStyle::Link, false);
                continue;
            }
        } else if (c == '\\' && at + 1 < end && source[at + 1].isPunct()) {
            flush(at);
            plain = at + 1;
            at += 2;
            continue;
        }
        ++at;
    }
    flush(end);
}

std::vector<Line> tableCells(const QString& source, const Line& line) {
    std::vector<Line> cells;
    int from = line.begin, end = line.end;
    while (from < end && source[from].isSpace()) ++from;
    while (end > from && source[end - 1].isSpace()) --end;
    if (from < end && source[from] == '|') ++from;
    if (end > from && source[end - 1] == '|') --end;
    int at = from;
    while (at <= end) {
        qsizetype bar = at;
        while (bar < end && source[bar] != '|') ++bar;
        int a = at, b = int(bar);
        while (a < b && source[a].isSpace()) ++a;
        while (b > a && source[b - 1].isSpace()) --b;
        cells.push_back({a, b});
        at = int(bar) + 1;
    }
    return cells;
}

// | --- | :--: |
bool isTableRule(const QString& text) {
    QStringView rest = QStringView(text).trimmed();
    if (rest.startsWith('|')) rest = rest.mid(1);
    if (rest.endsWith('|')) rest.chop(1);
    for (QStringView cell : rest.split('|')) {
        cell = cell.trimmed();
        if (cell.startsWith(':')) cell = cell.mid(1);
        if (cell.endsWith(':')) cell.chop(1);
        if (cell.size() < 2 || std::any_of(cell.begin(), cell.end(), [](QChar c) { return c != '-'; }))
            return false;
    }
    return true;
}

bool looksNumeric(const QString& text) {
    static const QRegularExpression number("^[-+−~<>≈]?[0-9][0-9.,]*\\s?[%A-Za-z/µ]{0,6}$");
    return number.match(text.trimmed()).hasMatch();
}

void finishTable(MarkdownBlock* block) {
    if (block->rows.size() < 2) return;
    block->rightAligned.assign(block->rows[0].size(), 1);
    for (size_t r = 1; r < block->rows.size(); ++r) {
        const auto& row = block->rows[r];
        for (size_t c = 0; c < std::min(row.size(), block->rows[0].size()); ++c) {
            if (!row[c].text.isEmpty() && !looksNumeric(row[c].text)) block->rightAligned[c] = 0;
        }
    }
    if (!block->rightAligned.empty()) block->rightAligned[0] = 0;
}

struct Parser {
    const QString& source;
    bool streaming;
    std::vector<Line> lines;
    std::vector<MarkdownBlock> out;
    size_t i = 0;

    QString text(size_t line) const {
        return source.mid(lines[line].begin, lines[line].end - lines[line].begin);
    }
    MarkdownBlock& add(MarkdownBlock::Kind kind, int begin) {
        out.push_back({});
        out.back().kind = kind;
        out.back().begin = begin;
        return out.back();
    }
    bool last(size_t line) const { return streaming && line + 1 == lines.size(); }

    void code(const QString& fence, int indent) {
        MarkdownBlock& block = add(MarkdownBlock::Kind::Code, lines[i].begin);
        block.marker = text(i).mid(indent + fence.size()).trimmed();
        block.open = true;
        ++i;
        for (; i < lines.size(); ++i) {
            if (text(i).trimmed().startsWith(fence)) {
                block.open = false;
                block.end = lines[i].end;
                ++i;
                break;
            }
            if (!block.text.text.isEmpty() || block.text.source.size() > 1)
                block.text.append("\n", lines[i].begin - 1, 0);
            block.text.append(text(i), lines[i].begin, 0);
            block.end = lines[i].end;
        }
    }

    void table() {
        MarkdownBlock& block = add(MarkdownBlock::Kind::Table, lines[i].begin);
        for (; i < lines.size() && text(i).contains('|'); ++i) {
            block.end = lines[i].end;
            if (isTableRule(text(i))) continue;
            std::vector<MarkedText> row;
            for (const Line& cell : tableCells(source, lines[i])) {
                MarkedText marked;
                parseInline(source, cell.begin, cell.end, 0, false, &marked);
                if (marked.source.isEmpty()) marked.append("", cell.begin, 0);
                row.push_back(std::move(marked));
            }
            block.rows.push_back(std::move(row));
        }
        finishTable(&block);
    }

    void paragraph() {
        MarkdownBlock& block = add(MarkdownBlock::Kind::Paragraph, lines[i].begin);
        bool first = true;
        for (; i < lines.size(); ++i) {
            const QString line = text(i);
            if (line.trimmed().isEmpty() || (!first && startsBlock(i))) break;
            if (!first) block.text.append(QString(QChar::LineSeparator), lines[i].begin - 1, 0);
            parseInline(source, lines[i].begin, lines[i].end, 0, last(i), &block.text);
            block.end = lines[i].end;
            first = false;
        }
    }

    static const QRegularExpression& itemPattern() {
        static const QRegularExpression item("^(\\s*)([-*+•]|\\d{1,3}[.)])\\s+");
        return item;
    }
    static const QRegularExpression& headingPattern() {
        static const QRegularExpression heading("^\\s{0,3}(#{1,6})\\s+");
        return heading;
    }

    bool startsBlock(size_t line) const {
        const QString t = text(line).trimmed();
        if (t.startsWith("```") || t.startsWith("~~~") || t.startsWith("> ")) return true;
        if (headingPattern().match(text(line)).hasMatch()) return true;
        return itemPattern().match(text(line)).hasMatch();
    }

    // An item, a quote or a heading: one line with a prefix, and its unmarked continuation lines.
    void prefixed(MarkdownBlock::Kind kind, int prefix, int level, const QString& marker) {
        MarkdownBlock& block = add(kind, lines[i].begin);
        block.level = level;
        block.marker = marker;
        const int base = kind == MarkdownBlock::Kind::Heading ? TextStyle::Strong : 0;
        parseInline(source, lines[i].begin + prefix, lines[i].end, base, last(i), &block.text);
        block.end = lines[i].end;
        ++i;
        if (kind == MarkdownBlock::Kind::Heading) return;
        for (; i < lines.size(); ++i) {
            const QString line = text(i);
            if (line.trimmed().isEmpty() || startsBlock(i)) break;
            int skip = 0;
            while (skip < line.size() && line[skip].isSpace()) ++skip;
            block.text.append(" ", lines[i].begin - 1, 0);
            parseInline(source, lines[i].begin + skip, lines[i].end, 0, last(i), &block.text);
            block.end = lines[i].end;
        }
    }

    void run() {
        while (i < lines.size()) {
            const QString line = text(i), trimmed = line.trimmed();
            if (trimmed.isEmpty()) {
                ++i;
                continue;
            }
            int indent = 0;
            while (indent < line.size() && line[indent].isSpace()) ++indent;
            if (trimmed.startsWith("```") || trimmed.startsWith("~~~")) {
                code(trimmed.left(3), indent);
            } else if (trimmed == "---" || trimmed == "***" || trimmed == "___") {
                add(MarkdownBlock::Kind::Rule, lines[i].begin).end = lines[i].end;
                ++i;
            } else if (trimmed.contains('|') && i + 1 < lines.size() && isTableRule(text(i + 1))) {
                table();
            } else if (const auto heading = headingPattern().match(line); heading.hasMatch()) {
                prefixed(MarkdownBlock::Kind::Heading, int(heading.capturedLength()),
                         int(heading.captured(1).size()), {});
            } else if (const auto item = itemPattern().match(line); item.hasMatch()) {
                const QString mark = item.captured(2);
                prefixed(MarkdownBlock::Kind::Item, int(item.capturedLength()),
                         std::min(3, int(item.captured(1).size()) / 2),
                         mark[0].isDigit() ? mark : QString("•"));
            } else if (trimmed.startsWith("> ") || trimmed == ">") {
                prefixed(MarkdownBlock::Kind::Quote, std::min(int(line.size()), indent + 2), 0, {});
            } else {
                paragraph();
            }
        }
    }
};

}  // namespace

void MarkedText::append(const QString& piece, int from, int flags) {
    if (!source.isEmpty()) source.removeLast();
    if (flags) styles.push_back({int(text.size()), int(piece.size()), flags});
    text += piece;
    for (int k = 0; k <= piece.size(); ++k) source << from + k;
}

std::vector<MarkdownBlock> parseMarkdown(const QString& source, int from, bool streaming) {
    Parser parser{source, streaming, splitLines(source, from), {}, 0};
    parser.run();
    return std::move(parser.out);
}

}  // namespace colibri::ui
