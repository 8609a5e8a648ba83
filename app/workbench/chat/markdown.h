// SPDX-License-Identifier: GPL-3.0-or-later
// The parser for the Markdown of replies: paragraphs, headings, lists, tasks, quotes, code blocks,
// tables; in text bold, italic, struck text, code, formulas and links. Lists and quotes contain
// other blocks. Every visible character has its offset in the source, so that tokens can be found
// in the displayed text. Plain functions.
#pragma once

#include <QString>
#include <QVector>
#include <vector>

namespace colibri::ui {

struct TextStyle {
    enum Flag { Plain = 0, Strong = 1, Code = 2, Link = 4, Emphasis = 8, Struck = 16 };
    int begin = 0, length = 0, flags = Plain;
    QString target;  // address of a link
};

// Text with its source: `source[i]` is the offset of visible character i; one more for the end.
struct MarkedText {
    QString text;
    QVector<int> source;
    std::vector<TextStyle> styles;  // of the parts that are not plain

    void append(const QString& piece, int from, int flags, const QString& target = {});
};

struct MarkdownBlock {
    enum class Kind { Paragraph, Heading, Item, Quote, Code, Table, Rule };

    Kind kind = Kind::Paragraph;  // Quote: a paragraph in a quote
    int begin = 0, end = 0;       // in the source
    int root = 0;                 // begin of the outermost list item or quote around it
    int level = 0;                // of a heading, from 1
    int depth = 0;                // number of lists around it; an item counts its own
    int quote = 0;                // number of quotes around it
    QString marker;               // "•", "2.", "[ ]" or "[x]" of an item; language of code
    MarkedText text;
    std::vector<std::vector<MarkedText>> rows;  // of a table, the head first
    std::vector<int> rightAligned;              // columns of a table with figures
    bool open = false;                          // a code block without its closing fence
};

// The blocks of source[from..]. `streaming`: the text may still grow, so an unclosed mark counts.
// Blocks before the root of the last one do not change when the source grows.
std::vector<MarkdownBlock> parseMarkdown(const QString& source, int from, bool streaming);

}  // namespace colibri::ui
