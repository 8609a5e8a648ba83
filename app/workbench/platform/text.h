// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's texts and counts as Qt shows them.
#pragma once

#include <QString>
#include <string>
#include <string_view>

#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/knobs/knobs.h"

namespace colibri::ui {

// Names, paths and messages come from files: what they hold of control characters is escaped.
inline QString str(std::string_view text) {
    return QString::fromStdString(printableLines(text));
}
inline QString str(const std::string& text) {
    return str(std::string_view(text));
}
inline QString shown(const QString& text) {  // what did not come by way of str
    return str(text.toStdString());
}
inline QString count(int64_t n) {  // "12,345"
    return str(formatCount(n));
}

// A knob's value as it is read: "1,024", "lru"; knobValueText() is what is typed and stored.
inline QString knobText(const KnobRow& row, int64_t value) {
    return row.choices.empty() ? count(value) : str(knobValueText(row, value));
}

}  // namespace colibri::ui
