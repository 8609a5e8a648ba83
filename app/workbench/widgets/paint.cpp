// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/paint.h"

#include <QFontMetricsF>
#include <QHash>
#include <QPixmap>
#include <QRegularExpression>
#include <QTextLayout>
#include <cmath>

namespace colibri::ui {

QVector<std::pair<int, int>> shapedWords(const QString& text) {
    constexpr char16_t kJoiner = 0x200D;
    QVector<std::pair<int, int>> out;
    int begin = 0;
    bool needed = false;
    for (int i = 0; i <= text.size(); ++i) {
        const QChar c = i < text.size() ? text[i] : QChar(' ');
        if (c.isSpace()) {
            if (needed) out.append({begin, i - begin});
            begin = i + 1;
            needed = false;
        } else if (c.unicode() >= 0x300) {
            needed = needed || c.isMark() || c.isSurrogate() || c == kJoiner;
        }
    }
    return out;
}

double textWidth(const QFont& font, const QString& text) {
    return QFontMetricsF(font).horizontalAdvance(text);
}

void drawText(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
              const QColor& color) {
    p.setFont(font);
    p.setPen(color);
    p.drawText(rect, flags | Qt::TextDontClip, text);
}

void drawElided(QPainter& p, const QRectF& rect, int flags, const QString& text, const QFont& font,
                const QColor& color) {
    if (rect.width() < 4) return;
    const QFontMetricsF metrics(font);
    // Half a pixel of tolerance, so that a label as wide as its text is not cut.
    drawText(p, rect, flags, metrics.elidedText(text, Qt::ElideRight, rect.width() + 0.5), font,
             color);
}

QString spansText(const QVector<Span>& spans) {
    QString text;
    for (const Span& span : spans) text += span.text;
    return text;
}

double spansWidth(const QVector<Span>& spans, double gap) {
    double width = 0;
    for (const Span& span : spans) width += textWidth(span.font, span.text);
    return width + gap * std::max<qsizetype>(0, spans.size() - 1);
}

double drawSpans(QPainter& p, const QRectF& rect, const QVector<Span>& spans, double gap) {
    double ascent = 0, descent = 0, x = rect.left();
    for (const Span& span : spans) {
        const QFontMetricsF metrics(span.font);
        ascent = std::max(ascent, metrics.ascent());
        descent = std::max(descent, metrics.descent());
    }
    const double base = std::round(rect.top() + (rect.height() + ascent - descent) / 2);
    for (const Span& span : spans) {
        const QFontMetricsF metrics(span.font);
        double width = metrics.horizontalAdvance(span.text);
        QString text = span.text;
        if (x + width > rect.right() + 0.5) {
            text = metrics.elidedText(text, Qt::ElideRight, std::max(0.0, rect.right() - x));
            width = metrics.horizontalAdvance(text);
        }
        p.setFont(span.font);
        p.setPen(tone(span.tone));
        p.drawText(QPointF(x, base), text);
        x += width + gap;
        if (text.size() != span.text.size()) break;
    }
    return x - rect.left();
}

double drawWrapped(QPainter* p, const QPointF& at, double width, const QString& text,
                   const QFont& font, double lineHeight, const QColor& color) {
    const QFontMetricsF metrics(font);
    const double lead = (lineHeight - metrics.ascent() - metrics.descent()) / 2;
    double y = 0;
    for (const QString& paragraph : text.split('\n')) {
        QTextLayout layout(paragraph, font);
        layout.beginLayout();
        for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
            line.setLineWidth(std::max(16.0, width));
            line.setPosition(QPointF(0, std::round(y + lead)));
            y += lineHeight;
        }
        layout.endLayout();
        if (paragraph.isEmpty() && layout.lineCount() == 0) y += lineHeight;
        if (p) {
            p->setPen(color);
            layout.draw(p, at);
        }
    }
    return y;
}

void fillBox(QPainter& p, const QRectF& rect, const QColor& fill, const QColor& border,
             double radius, double borderWidth) {
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    const double half = borderWidth / 2;
    p.setPen(border.alpha() ? QPen(border, borderWidth) : QPen(Qt::NoPen));
    p.setBrush(fill.alpha() ? QBrush(fill) : QBrush(Qt::NoBrush));
    const QRectF box = border.alpha() ? rect.adjusted(half, half, -half, -half) : rect;
    p.drawRoundedRect(box, radius - half * (radius > 0), radius - half * (radius > 0));
    p.restore();
}

void focusRing(QPainter& p, const QRectF& rect, double radius) {
    fillBox(p, rect, Qt::transparent, tone(Tone::Accent), radius, 2);
}

QBrush hatchBrush() {
    // A tile whose diagonals meet at its edges. The pitch is 6 px, measured across the lines.
    constexpr int kTile = 17;  // two periods of 6 * sqrt(2)
    static QHash<QRgb, QPixmap> tiles;
    const QColor color = tone(Tone::Line1);
    QPixmap& tile = tiles[color.rgb()];
    if (tile.isNull()) {
        tile = QPixmap(kTile, kTile);
        tile.fill(Qt::transparent);
        QPainter p(&tile);
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(QPen(color, 1.1));
        for (double x = -2 * kTile; x <= 2 * kTile; x += kTile / 2.0)
            p.drawLine(QPointF(x - 4, kTile + 4), QPointF(x + kTile + 4, -4));
    }
    return QBrush(tile);
}

void drawHatch(QPainter& p, const QRectF& rect) {
    p.save();
    p.setPen(Qt::NoPen);
    p.setBrush(hatchBrush());
    p.drawRect(rect);
    p.restore();
}

double keyPlateWidth(const QString& text) {
    return std::ceil(textWidth(type::monoSmall(), text)) + 10;
}

void drawKeyPlate(QPainter& p, double x, double centerY, const QString& text, const QColor& color,
                  const QColor& border) {
    const QRectF rect(x, std::round(centerY - 9), keyPlateWidth(text), 18);
    fillBox(p, rect, Qt::transparent, border, 3);
    drawText(p, rect, Qt::AlignCenter, text, type::monoSmall(), color);
}

TagLook okTag(const QString& text) {
    return {text, "check", Tone::OkBg, Tone::Ok};
}
TagLook warnTag(const QString& text) {
    return {text, "", Tone::WarnBg, Tone::Warn};
}
TagLook errorTag(const QString& text) {
    return {text, "", Tone::ErrorBg, Tone::Error};
}

double tagWidth(const TagLook& tag) {
    return std::ceil(textWidth(type::caption(), tag.text)) + 12 + (tag.icon.isEmpty() ? 0 : 16);
}

void drawTag(QPainter& p, double x, double centerY, const TagLook& tag) {
    const QRectF rect(x, std::round(centerY - 9), tagWidth(tag), 18);
    fillBox(p, rect, tone(tag.ground), Qt::transparent, 3);
    double left = rect.left() + 6;
    if (!tag.icon.isEmpty()) {
        paintIcon(p, tag.icon, QRectF(left, rect.top() + 3, 12, 12), tone(tag.ink));
        left += 16;
    }
    drawText(p, QRectF(left, rect.top(), rect.right() - left, 18), Qt::AlignVCenter | Qt::AlignLeft,
             tag.text, type::caption(), tone(tag.ink));
}

QString typographic(QString text) {
    text.replace("->", "→");
    static const QRegularExpression minus("(?<![\\w.])-(?=[0-9])");
    text.replace(minus, "−");
    return text;
}

}  // namespace colibri::ui
