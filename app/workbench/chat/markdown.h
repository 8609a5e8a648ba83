// SPDX-License-Identifier: GPL-3.0-or-later
// The light markdown of replies: paragraphs, headings, lists, quotes, code blocks, tables, and
// bold, code and links in text. Every visible character knows its place in the source, so that
// tokens can be found in what is shown.
#pragma once

#include <QString>
#include <QVector>
#include <vector>

namespace colibri::ui {

struct TextStyle {
    enum Flag { Plain = 0, Strong = 1, Code = 2, Link = 4 };
    int begin = 0, length = 0, flags = Plain;
};

// Text with its source: `source[i]` is the offset of visible character i; one more for the end.
struct MarkedText {
    QString text;
    QVector<int> source;
    std::vector<TextStyle> styles;       // those that are not plain

    void append(const QString& piece, int from, int flags);
};

struct MarkdownBlock {
    enum class Kind { Paragraph, Heading, Item, Quote, Code, Table, Rule };

    Kind kind = Kind::Paragraph;
    int begin = 0, end = 0;              // in the source
    int level = 0;                       // heading level, or depth of a list item from 0
    QString marker;                      // "•" or "2." of an item; language of code
    MarkedText text;
    std::vector<std::vector<MarkedText>> rows;    // of a table, the head first
    std::vector<int> rightAligned;       // columns of a table whose cells are figures
    bool open = false;                   // code whose fence has not closed yet
};

// Blocks of source[from..]; `streaming`: the end may still grow, so that an unclosed mark counts.
std::vector<MarkdownBlock> parseMarkdown(const QString& source, int from, bool streaming);

}  // namespace colibri::ui
