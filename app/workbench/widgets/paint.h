// SPDX-License-Identifier: GPL-3.0-or-later
// Painting helpers shared by all widgets that paint themselves. Lengths are px. GUI thread only.
#pragma once

#include <QBrush>
#include <QPainter>
#include <QString>
#include <QVector>
#include <utility>

#include "app/workbench/theme/icons.h"
#include "app/workbench/theme/theme.h"

namespace colibri::ui {

// A piece of text with one font and colour; lines of figures are made of them.
struct Span {
    QString text;
    Tone tone = Tone::Text2;
    QFont font = type::body();
};

// The parts of a text that must be shaped although the font has shaping off (see uiFont): words
// with combining marks, and joined emoji. Begin and length of each. Qt shapes scripts that always
// need it.
QVector<std::pair<int, int>> shapedWords(const QString& text);

double textWidth(const QFont& font, const QString& text);
void drawText(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
              const QColor& color);
// One line of text, cut with an ellipsis if it does not fit.
void drawElided(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
                const QColor& color);
// Spans on a common baseline, vertically centred in `rect` and cut at its right edge. Returns the
// width.
double drawSpans(QPainter& p, const QRectF& rect, const QVector<Span>& spans, double gap = 0);
QString spansText(const QVector<Span>& spans);
double spansWidth(const QVector<Span>& spans, double gap = 0);
// Wrapped text with a fixed line height. Returns the height; with a null painter it only measures.
double drawWrapped(QPainter* p, const QPointF& at, double width, const QString& text,
                   const QFont& font, double lineHeight, const QColor& color);

void fillBox(QPainter& p, const QRectF& rect, const QColor& fill, const QColor& border,
             double radius, double borderWidth = 1);
void focusRing(QPainter& p, const QRectF& rect, double radius);  // inside the border box
QBrush hatchBrush();                                             // 45 degrees, 6 px pitch, line1
void drawHatch(QPainter& p, const QRectF& rect);

// A key such as "Esc" in a frame: its width, and painting it vertically centred at `y`.
double keyPlateWidth(const QString& text);
void drawKeyPlate(QPainter& p, double x, double centerY, const QString& text, const QColor& color,
                  const QColor& border);
// A tag, 18 px high: background, text, optional icon.
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

QString typographic(
    QString text);  // with real arrows and minus signs for "->" and "-" before digits

}  // namespace colibri::ui
