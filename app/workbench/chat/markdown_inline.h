// SPDX-License-Identifier: GPL-3.0-or-later
// Marks within a line of markdown. Internal to the parser of markdown.h.
#pragma once

#include "app/workbench/chat/markdown.h"

namespace colibri::ui {

// Appends source[begin, end), a part of one line, with its marks taken out. `base`: flags of all of
// it. `streaming`: a bold stretch that has not ended yet reaches to `end`. Takes time linear in the
// length, whatever the text.
void parseInline(const QString& source, int begin, int end, int base, bool streaming,
                 MarkedText* out);

}  // namespace colibri::ui
