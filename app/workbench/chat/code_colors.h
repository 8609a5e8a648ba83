// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of fenced code: finds comments, strings, numbers and keywords of common languages in one
// pass. It does not parse, so incorrect or incomplete code works too. Plain functions; any thread.
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

// `language`: the word after the fence. Empty for an unknown language.
std::vector<CodeSpan> codeSpans(const QString& text, const QString& language);
Tone codeTone(CodeSpan::Kind kind);  // readable on Tone::Plot in each theme

}  // namespace colibri::ui
