// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's texts and counts as Qt shows them.
#pragma once

#include <QString>
#include <string>
#include <string_view>

#include "engine/base/format.h"

namespace colibri::ui {

inline QString str(const std::string& text) {
    return QString::fromStdString(text);
}
inline QString str(std::string_view text) {
    return QString::fromUtf8(text.data(), qsizetype(text.size()));
}
inline QString count(int64_t n) {  // "12,345"
    return str(formatCount(n));
}

}  // namespace colibri::ui
