// SPDX-License-Identifier: GPL-3.0-or-later
// The light markdown of replies: paragraphs, headings, lists, tasks, quotes, code blocks, tables,
// and bold, italic, struck text, code, formulas and links in text. Lists and quotes hold other
// blocks. Every visible character knows its place in the source, so that tokens can be found in
// what is shown.
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
    std::vector<TextStyle> styles;  // those that are not plain

    void append(const QString& piece, int from, int flags, const QString& target = {});
};

struct MarkdownBlock {
    enum class Kind { Paragraph, Heading, Item, Quote, Code, Table, Rule };

    Kind kind = Kind::Paragraph;  // Quote: a paragraph in a quote
    int begin = 0, end = 0;       // in the source
    int root = 0;                 // where the outermost list item or quote around it begins
    int level = 0;                // of a heading, from 1
    int depth = 0;                // lists around it; an item counts its own
    int quote = 0;                // quotes around it
    QString marker;               // "•", "2.", "[ ]" or "[x]" of an item; language of code
    MarkedText text;
    std::vector<std::vector<MarkedText>> rows;  // of a table, the head first
    std::vector<int> rightAligned;              // columns of a table whose cells are figures
    bool open = false;                          // code whose fence has not closed yet
};

// Blocks of source[from..]; `streaming`: the end may still grow, so that an unclosed mark counts.
// Blocks before the last one's root stay as they are when the source grows.
std::vector<MarkdownBlock> parseMarkdown(const QString& source, int from, bool streaming);

}  // namespace colibri::ui
