// SPDX-License-Identifier: GPL-3.0-or-later
// Tooltips that explain a figure, a plot or a knob: name, definition, source, and where to find
// more.
#pragma once

#include <QString>

namespace colibri::ui {

// Rich text, so that Qt wraps it. `text` and `source` are plain text; their line breaks are kept.
inline QString explained(const QString& title, const QString& text, const QString& source = {}) {
    const auto html = [](const QString& plain) {
        return plain.toHtmlEscaped().replace('\n', "<br>");
    };
    QString out = "<qt><b>" + html(title) + "</b>";
    if (!text.isEmpty()) out += "<br>" + html(text);
    if (!source.isEmpty()) out += "<br>Source: " + html(source);
    return out + "<br>F1 more</qt>";
}

}  // namespace colibri::ui
