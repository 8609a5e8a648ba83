// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/figures_row.h"

#include <QHelpEvent>
#include <QToolTip>
#include <cmath>

namespace colibri::ui {

Span caption(const QString& text, Tone tone) {
    return {text, tone, type::caption()};
}
Span captionMono(const QString& text, Tone tone) {
    return {text, tone, type::monoSmall()};
}

FiguresRow::FiguresRow(QWidget* parent) : QWidget(parent) {
    setFixedHeight(kTall);
    setAccessibleName("Figures");
}

void FiguresRow::setCards(const QVector<FigureCard>& cards) {
    m_cards = cards;
    QStringList words;
    for (const FigureCard& card : cards)
        words << card.label + (card.past ? ", last turn, " : " ") + card.value + " " + card.unit +
                     ", " + spansText(card.detail);
    const QString text = words.join("; ");
    if (text == accessibleDescription()) return;  // only colours can differ otherwise
    setAccessibleDescription(text);
    update();
}

void FiguresRow::setLimits(int most, bool details) {
    if (most == m_most && details == m_details) return;
    m_most = most;
    m_details = details;
    setFixedHeight(details ? kTall : kShort);
    update();
}

void FiguresRow::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    const int n = shown();
    QFont figure = type::figure();
    figure.setLetterSpacing(QFont::AbsoluteSpacing, -0.3);
    for (int i = 0; i < n; ++i) {
        const FigureCard& card = m_cards[i];
        const double left = std::round(double(width()) * i / n);
        const double right = std::round(double(width()) * (i + 1) / n);
        if (i) p.fillRect(QRectF(left, 0, 1, height() - 1), tone(Tone::Line1));
        const double x = left + (i ? 13 : 12), room = right - x - 2;
        drawElided(p, QRectF(x, 7, room, 14), Qt::AlignVCenter,
                   card.past ? card.label + ", last turn" : card.label, type::caption(),
                   tone(Tone::Text3));
        const bool unknown = card.value == "n/a";
        // The unit shares the baseline of the figure.
        const double base = std::round(21 + (26 + QFontMetricsF(figure).capHeight()) / 2);
        p.setFont(figure);
        p.setPen(tone(unknown || card.past ? Tone::Text3 : Tone::Text1));
        p.drawText(QPointF(x, base), card.value);
        if (!unknown) {
            p.setFont(type::dense());
            p.setPen(tone(card.past ? Tone::Text3 : Tone::Text2));
            p.drawText(QPointF(x + textWidth(figure, card.value) + 4, base), card.unit);
        }
        if (m_details) drawSpans(p, QRectF(x, 47, room, 14), card.detail);
    }
}

bool FiguresRow::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && shown() > 0) {
        auto* help = static_cast<QHelpEvent*>(event);
        const int i = std::clamp(help->pos().x() * shown() / std::max(1, width()), 0, shown() - 1);
        QToolTip::showText(help->globalPos(), m_cards[i].help, this);
        return true;
    }
    return QWidget::event(event);
}

}  // namespace colibri::ui
