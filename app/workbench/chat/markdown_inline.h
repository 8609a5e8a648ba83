// SPDX-License-Identifier: GPL-3.0-or-later
// The marks within a line of Markdown. Internal to the parser of markdown.h.
#pragma once

#include "app/workbench/chat/markdown.h"

namespace colibri::ui {

// Appends source[begin, end), part of one line, without its marks. `base`: flags of all of it.
// `streaming`: an unclosed bold part extends to `end`. The time is linear in the length.
void parseInline(const QString& source, int begin, int end, int base, bool streaming,
                 MarkedText* out);

}  // namespace colibri::ui
