// SPDX-License-Identifier: GPL-3.0-or-later
// Parses numbers that users type. The window writes a decimal point and commas between thousands on
// every system; users may also type a decimal comma, or digits of another script. Plain functions;
// any thread.
#pragma once

#include <QString>
#include <optional>

namespace colibri::ui {

// "1.5" and "1,5" are one and a half; "1,024", "1.024,0" and "1 024" are 1024. nullopt: not a
// number, or an ambiguous one.
std::optional<double> typedNumber(const QString& text);

// The same for whole numbers; nullopt also for a fraction.
std::optional<qint64> typedWhole(const QString& text);

}  // namespace colibri::ui
