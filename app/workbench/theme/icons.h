// SPDX-License-Identifier: GPL-3.0-or-later
// Icons: SVG on a 16 grid with `currentColor`, drawn in a tint of the theme. 12 px in text, 16 in
// bars, 20 in tiles; stroke widths follow the size.
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
