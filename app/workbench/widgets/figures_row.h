// SPDX-License-Identifier: GPL-3.0-or-later
// The row of large figures: caption, value with unit, one line below.
#pragma once

#include <QWidget>

#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

struct FigureCard {
    QString label, value, unit;
    QVector<Span> detail;
    QString help;                // tooltip: what it counts, source and window
};

class FiguresRow : public QWidget {
    Q_OBJECT

public:
    explicit FiguresRow(QWidget* parent = nullptr);
    void setCards(const QVector<FigureCard>& cards);
    const QVector<FigureCard>& cards() const { return m_cards; }
    void setLimits(int most, bool details);       // cards shown; the line below or not
    QSize sizeHint() const override { return {400, m_details ? 69 : 55}; }

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
