// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/status_bar.h"

#include <QHBoxLayout>
#include <cmath>


namespace colibri::ui {
namespace {

constexpr double kPad = 10, kGap = 6;

}  // namespace

StatusCell::StatusCell(bool leftLine, bool rightLine, QWidget* parent)
    : QAbstractButton(parent), m_leftLine(leftLine), m_rightLine(rightLine) {
    setFocusPolicy(Qt::TabFocus);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

void StatusCell::setContent(const Content& content) {
    if (content == m_content) return;
    m_content = content;
    setAccessibleName((content.label + " " + content.value).trimmed());
    updateGeometry();
    update();
}

QSize StatusCell::sizeHint() const {
    double w = 2 * kPad - kGap + 1;
    const Content& c = m_content;
    if (c.dot != Tone::Count) w += 8 + kGap;
    if (!c.icon.isEmpty()) w += (c.icon == "mem" ? 16 : 12) + kGap;
    if (!c.label.isEmpty()) w += textWidth(type::dense(), c.label) + kGap;
    if (c.bar >= 0) w += 64 + kGap;
    if (!c.value.isEmpty()) w += textWidth(type::monoSmall(), c.value) + kGap;
    return {int(std::ceil(w)), 23};
}

void StatusCell::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const Content& c = m_content;
    if (c.badge) p.fillRect(rect(), tone(Tone::WarnBg));
    if (underMouse()) p.fillRect(rect(), tone(Tone::Bg3));
    if (m_leftLine) p.fillRect(QRectF(0, 0, 1, height()), tone(Tone::Line1));
    if (m_rightLine) p.fillRect(QRectF(width() - 1, 0, 1, height()), tone(Tone::Line1));
    double x = kPad;
    const double h = height();
    if (c.dot != Tone::Count) {
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(Qt::NoPen);
        p.setBrush(tone(c.dot));
        p.drawEllipse(QRectF(x, std::round(h / 2 - 4), 8, 8));
        p.setRenderHint(QPainter::Antialiasing, false);
        x += 8 + kGap;
    }
    if (!c.icon.isEmpty()) {
        const double size = c.icon == "mem" ? 16 : 12;
        paintIcon(p, c.icon, QRectF(x, std::round(h / 2 - size / 2), size, size),
                  tone(c.badge ? Tone::Warn : Tone::Text2));
        x += size + kGap;
    }
    if (!c.label.isEmpty()) {
        const double w = textWidth(type::dense(), c.label);
        drawText(p, QRectF(x, 0, w, h), Qt::AlignVCenter, c.label, type::dense(),
                 tone(c.badge ? Tone::Warn : Tone::Text2));
        x += w + kGap;
    }
    if (c.bar >= 0) {
        const QRectF bar(x, std::round(h / 2 - 3), 64, 6);
        fillBox(p, bar, tone(Tone::Bg3), Qt::transparent, 1);
        QRectF used = bar;
        used.setWidth(64 * std::clamp(c.bar, 0.0, 1.0));
        fillBox(p, used, tone(c.bar >= 1 ? Tone::Error : c.bar > 0.9 ? Tone::Warn : Tone::Text3),
                Qt::transparent, 1);
        x += 64 + kGap;
    }
    if (!c.value.isEmpty())
        drawText(p, QRectF(x, 0, width(), h), Qt::AlignVCenter, c.value, type::monoSmall(),
                 tone(c.muted ? Tone::Text3 : c.valueTone));
    if (hasFocus()) focusRing(p, rect(), 2);
}

StatusBar::StatusBar(QWidget* parent) : QWidget(parent) {
    setFixedHeight(24);
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(4, 1, 4, 0);
    line->setSpacing(0);
    for (int i = 0; i < CellCount; ++i) {
        m_cells[i] = new StatusCell(i == Cost || i == Version, i != Bell && i != Version);
        if (i == Cost) line->addStretch(1);
        line->addWidget(m_cells[i]);
        connect(m_cells[i], &QAbstractButton::clicked, this, [this, i] { emit clicked(Cell(i)); });
    }
    m_cells[Version]->setContent({"", "Colibri Workbench"});
    m_cells[State]->setContent({"", "No model", "", Tone::Text3});
    m_cells[LinkBadge]->hide();
    m_cells[Serving]->hide();
    arrange();
}

void StatusBar::setWidthClass(int width) {
    m_width = width;
    arrange();
}

void StatusBar::setModelLoaded(bool on) {
    m_loaded = on;
    arrange();
}

void StatusBar::arrange() {
    const bool small = m_width < 1000, compact = m_width < 1280;
    m_cells[Device]->setVisible(!small && (!compact || !m_loaded));
    m_cells[Disk]->setVisible(m_loaded);
    m_cells[Gpu]->setVisible(!small);
    m_cells[Cost]->setVisible(m_loaded && !small);
    m_cells[Dropped]->setLeftLine(small);
    m_cells[Dropped]->setVisible(m_loaded);
    m_cells[Session]->setVisible(m_loaded && !small);
    m_cells[Bell]->setVisible(m_loaded && !small);
    m_cells[Version]->setVisible(!m_loaded);
}

void StatusBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg0));
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
