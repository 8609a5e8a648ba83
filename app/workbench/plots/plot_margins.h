// SPDX-License-Identifier: GPL-3.0-or-later
// Margins of the axis rectangle in px. All plots of a column, the marker lane and the experts map
// share them, so that equal times are aligned.
#pragma once

namespace colibri::ui {

constexpr int kPlotLeft = 44, kPlotRight = 14, kPlotTop = 7, kPlotBottom = 5, kPlotBottomAxis = 22;
constexpr int kUnavailableHeight = 72;  // of an unavailable plot

}  // namespace colibri::ui
