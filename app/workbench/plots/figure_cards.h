// SPDX-License-Identifier: GPL-3.0-or-later
// The figure cards above the plots. Plain functions of one snapshot. GUI thread only.
#pragma once

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/figures_row.h"

namespace colibri::ui {

QVector<FigureCard> figureCards(const Snapshot& snapshot, const SessionSource& source,
                                double sloMs);
QVector<FigureCard> emptyFigureCards();  // no model is loaded

}  // namespace colibri::ui
