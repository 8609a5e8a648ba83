// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's texts and counts as Qt shows them.
#pragma once

#include <QString>
#include <string>
#include <string_view>

#include "engine/base/format.h"
#include "engine/base/printable.h"

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

}  // namespace colibri::ui
