// SPDX-License-Identifier: GPL-3.0-or-later
// Tooltips that explain a figure, a plot or a knob: name, what it counts, where it comes from, and
// where more is said.
#pragma once

#include <QString>

namespace colibri::ui {

// Rich text, so that Qt wraps it. `text` and `source` are plain; a line break stays one.
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
