// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of fenced code: comments, strings, numbers and keywords of common languages, told apart
// by one pass over the text. Nothing is parsed, so that code that is wrong or unfinished is fine.
#pragma once

#include <QString>
#include <vector>

#include "app/workbench/theme/theme.h"

namespace colibri::ui {

struct CodeSpan {
    enum class Kind { Comment, String, Number, Keyword };
    int begin = 0, length = 0;
    Kind kind = Kind::Comment;
};

// `language`: the word behind the fence. Nothing where the language is not known.
std::vector<CodeSpan> codeSpans(const QString& text, const QString& language);
Tone codeTone(CodeSpan::Kind kind);  // readable on Tone::Plot in each theme

}  // namespace colibri::ui
