// SPDX-License-Identifier: GPL-3.0-or-later
// The row of figure cards: caption, value with unit, a line with details.
#pragma once

#include <QWidget>

#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

struct FigureCard {
    QString label, value, unit;
    QVector<Span> detail;
    QString help;       // tooltip: definition, source and window
    bool past = false;  // of the last turn, since no request is running
};

class FiguresRow : public QWidget {
    Q_OBJECT

public:
    explicit FiguresRow(QWidget* parent = nullptr);
    void setCards(const QVector<FigureCard>& cards);
    const QVector<FigureCard>& cards() const { return m_cards; }
    void setLimits(int most, bool details);  // at most so many cards, with or without details
    int mostShown() const { return m_most; }
    static constexpr int kTall = 69, kShort = 55;  // px of height with and without details
    QSize sizeHint() const override { return {400, m_details ? kTall : kShort}; }

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent*) override;

private:
    int shown() const { return std::min(int(m_cards.size()), m_most); }

    QVector<FigureCard> m_cards;
    int m_most = 5;
    bool m_details = true;
};

Span caption(const QString& text, Tone tone = Tone::Text3);
Span captionMono(const QString& text, Tone tone = Tone::Text3);

}  // namespace colibri::ui
