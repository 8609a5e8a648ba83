// SPDX-License-Identifier: GPL-3.0-or-later
// Margins of the axis rectangle, shared by all plots of a column, the marker lane and the experts
// map, so that lines of equal time align.
#pragma once

namespace colibri::ui {

constexpr int kPlotLeft = 44, kPlotRight = 14, kPlotTop = 7, kPlotBottom = 5, kPlotBottomAxis = 22;
constexpr int kUnavailableHeight = 72;  // of a plot whose source is n/a

}  // namespace colibri::ui
