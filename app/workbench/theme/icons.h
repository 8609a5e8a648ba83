// SPDX-License-Identifier: GPL-3.0-or-later
// Icons: SVG on a grid of 16 with `currentColor`, painted in a colour of the theme: 12 px in text,
// 16 in bars, 20 in tiles. The stroke width follows the size. GUI thread only.
#pragma once

#include <QColor>
#include <QIcon>
#include <QPainter>
#include <QString>

namespace colibri::ui {

void paintIcon(QPainter& painter, const QString& name, const QRectF& rect, const QColor& color,
               double stroke = 0);  // 0: by size
QIcon makeIcon(const QString& name, const QColor& color, int size = 16);

}  // namespace colibri::ui
