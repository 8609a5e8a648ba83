// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers as people type them. The window writes a decimal point and commas between thousands on
// every system; what is typed may also have a decimal comma, or digits of another script.
#pragma once

#include <QString>
#include <optional>

namespace colibri::ui {

// "1.5" and "1,5" are one and a half; "1,024", "1.024,0" and "1 024" are a thousand and
// twenty-four. nullopt: no number, or one that can be read in no sensible way.
std::optional<double> typedNumber(const QString& text);

// The same for whole numbers; nullopt also where there is a fraction.
std::optional<qint64> typedWhole(const QString& text);

}  // namespace colibri::ui
