// SPDX-License-Identifier: GPL-3.0-or-later
// Conversions of the engine's texts and counts to QString. Thread-safe.
#pragma once

#include <QString>
#include <string>
#include <string_view>

#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/knobs/knobs.h"

namespace colibri::ui {

// Text to display. Names, paths and messages can come from files, so control characters are
// escaped.
inline QString str(std::string_view text) {
    return QString::fromStdString(printableLines(text));
}
inline QString str(const std::string& text) {
    return str(std::string_view(text));
}
// Text that must not change: paths of files to open, content of replies, stored values.
inline QString exactText(const std::string& text) {
    return QString::fromStdString(text);
}
// Escapes text that did not come from str().
inline QString shown(const QString& text) {
    return str(text.toStdString());
}
inline QString count(int64_t n) {  // "12,345"
    return str(formatCount(n));
}

// A knob's value to display: "1,024", "lru". Users type, and files store, knobValueText().
inline QString knobText(const KnobRow& row, int64_t value) {
    return row.choices.empty() ? count(value) : str(knobValueText(row, value));
}

}  // namespace colibri::ui
