// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/knob_group.h"

#include <QPainter>

#include "app/workbench/theme/theme.h"

namespace colibri::ui {

KnobGroup::KnobGroup(const QString& name, bool first, int firstMargin)
    : m_first(first), m_column(new QVBoxLayout(this)), m_head(new FoldButton(name)) {
    m_column->setContentsMargins(12, first ? firstMargin : 8, 12, 3);
    m_column->setSpacing(0);
    m_column->addWidget(m_head);
    m_column->addSpacing(3);
}

void KnobGroup::add(QWidget* widget) {
    m_column->addWidget(widget);
    connect(m_head, &QAbstractButton::toggled, widget, &QWidget::setVisible);
}

void KnobGroup::setBarShown(bool on) {
    QMargins margins = m_column->contentsMargins();
    margins.setRight(on ? 2 : 12);
    m_column->setContentsMargins(margins);
}

void KnobGroup::paintEvent(QPaintEvent*) {
    if (m_first) return;
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
