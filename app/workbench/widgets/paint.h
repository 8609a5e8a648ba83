// SPDX-License-Identifier: GPL-3.0-or-later
// Small painting helpers shared by every widget that draws itself.
#pragma once

#include <QBrush>
#include <QPainter>
#include <QString>
#include <QVector>
#include <utility>

#include "app/workbench/theme/icons.h"
#include "app/workbench/theme/theme.h"

namespace colibri::ui {

// A run of text in one look; lines of figures are made of them.
struct Span {
    QString text;
    Tone tone = Tone::Text2;
    QFont font = type::body();
};

// Where text must be shaped although its font is not (see uiFont): words with combining marks, and
// emoji that are joined of several. Begin and length of each; scripts that always need shaping get
// it from Qt.
QVector<std::pair<int, int>> shapedWords(const QString& text);

double textWidth(const QFont& font, const QString& text);
void drawText(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
              const QColor& color);
// Text of one line cut with an ellipsis where it does not fit.
void drawElided(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
                const QColor& color);
// Spans on a common baseline in `rect` (vertically centred), cut at its right edge. Returns width.
double drawSpans(QPainter& p, const QRectF& rect, const QVector<Span>& spans, double gap = 0);
QString spansText(const QVector<Span>& spans);
double spansWidth(const QVector<Span>& spans, double gap = 0);
// Wrapped text with a fixed line height; returns the height. A null painter only measures.
double drawWrapped(QPainter* p, const QPointF& at, double width, const QString& text,
                   const QFont& font, double lineHeight, const QColor& color);

void fillBox(QPainter& p, const QRectF& rect, const QColor& fill, const QColor& border,
             double radius, double borderWidth = 1);
void focusRing(QPainter& p, const QRectF& rect, double radius);  // inside the border box
QBrush hatchBrush();                                             // 45 degrees, 6 px pitch, line1
void drawHatch(QPainter& p, const QRectF& rect);

// A keyboard plate such as "Esc": width and painting, vertically centred at `y`.
double keyPlateWidth(const QString& text);
void drawKeyPlate(QPainter& p, double x, double centerY, const QString& text, const QColor& color,
                  const QColor& border);
// A tag 18 high: ground, text, optional icon.
struct TagLook {
    QString text, icon;
    Tone ground = Tone::Bg3, ink = Tone::Text2;
    bool operator==(const TagLook&) const = default;
};
TagLook okTag(const QString& text);
TagLook warnTag(const QString& text);
TagLook errorTag(const QString& text);
double tagWidth(const TagLook& tag);
void drawTag(QPainter& p, double x, double centerY, const TagLook& tag);

QString typographic(QString text);  // "->" and "-" before digits as their true signs

}  // namespace colibri::ui
