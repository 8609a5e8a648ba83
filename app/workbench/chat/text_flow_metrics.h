// SPDX-License-Identifier: GPL-3.0-or-later
// Measures of the chat text in px, shared by its layout and its painting.
#pragma once

namespace colibri::ui::flow {

constexpr double kItemIndent = 18, kQuoteIndent = 12;
constexpr double kCodePad = 11, kCodeHead = 25, kCodeLine = 18;
constexpr double kTableRow = 24, kCellLine = 18, kCellPad = 8;

}  // namespace colibri::ui::flow
