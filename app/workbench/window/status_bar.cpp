// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/status_bar.h"

#include <QHBoxLayout>
#include <cmath>

namespace colibri::ui {
namespace {

constexpr double kBarPad = 10, kBarGap = 6;

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

void StatusCell::setBrief(bool on) {
    if (on == m_brief) return;
    m_brief = on;
    updateGeometry();
    update();
}

QString StatusCell::shownText() const {
    return (label() + " " + value()).trimmed();
}

QSize StatusCell::sizeHint() const {
    double w = 2 * kBarPad - kBarGap + 1;
    const Content& c = m_content;
    if (c.dot != Tone::Count) w += 8 + kBarGap;
    if (!c.icon.isEmpty()) w += (c.icon == "mem" ? 16 : 12) + kBarGap;
    if (!label().isEmpty()) w += textWidth(type::dense(), label()) + kBarGap;
    if (hasBar()) w += 64 + kBarGap;
    if (!value().isEmpty()) w += textWidth(type::monoSmall(), value()) + kBarGap;
    return {int(std::ceil(w)), 23};
}

void StatusCell::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const Content& c = m_content;
    if (c.badge) p.fillRect(rect(), tone(Tone::WarnBg));
    if (underMouse()) p.fillRect(rect(), tone(Tone::Bg3));
    if (m_leftLine) p.fillRect(QRectF(0, 0, 1, height()), tone(Tone::Line1));
    if (m_rightLine) p.fillRect(QRectF(width() - 1, 0, 1, height()), tone(Tone::Line1));
    double x = kBarPad;
    const double h = height();
    if (c.dot != Tone::Count) {
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(Qt::NoPen);
        p.setBrush(tone(c.dot));
        p.drawEllipse(QRectF(x, std::round(h / 2 - 4), 8, 8));
        p.setRenderHint(QPainter::Antialiasing, false);
        x += 8 + kBarGap;
    }
    if (!c.icon.isEmpty()) {
        const double size = c.icon == "mem" ? 16 : 12;
        paintIcon(p, c.icon, QRectF(x, std::round(h / 2 - size / 2), size, size),
                  tone(c.badge ? Tone::Warn : Tone::Text2));
        x += size + kBarGap;
    }
    if (!label().isEmpty()) {
        const double w = textWidth(type::dense(), label());
        drawText(p, QRectF(x, 0, w, h), Qt::AlignVCenter, label(), type::dense(),
                 tone(c.badge ? Tone::Warn : Tone::Text2));
        x += w + kBarGap;
    }
    if (hasBar()) {
        const QRectF bar(x, std::round(h / 2 - 3), 64, 6);
        fillBox(p, bar, tone(Tone::Bg3), Qt::transparent, 1);
        QRectF used = bar;
        used.setWidth(64 * std::clamp(c.bar, 0.0, 1.0));
        fillBox(p, used,
                tone(c.bar >= 1    ? Tone::Error
                     : c.bar > 0.9 ? Tone::Warn
                                   : Tone::Text3),
                Qt::transparent, 1);
        x += 64 + kBarGap;
    }
    if (!value().isEmpty())
        drawText(p, QRectF(x, 0, width(), h), Qt::AlignVCenter, value(), type::monoSmall(),
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
    m_wanted[State] = m_wanted[Memory] = true;
    arrange();
}

void StatusBar::setWindowClass(WindowClass windowClass) {
    m_windowClass = windowClass;
    arrange();
}

void StatusBar::setModelLoaded(bool on) {
    m_loaded = on;
    arrange();
}

void StatusBar::arrange() {
    const bool small = m_windowClass == WindowClass::Small;
    const bool compact = m_windowClass <= WindowClass::Compact;
    m_wanted[Device] = !small && (!compact || !m_loaded);
    m_wanted[Disk] = m_loaded;
    m_wanted[Gpu] = !small;
    m_wanted[Cost] = m_loaded && !small;
    m_cells[Dropped]->setLeftLine(small);
    m_wanted[Dropped] = m_loaded;
    m_wanted[Session] = m_loaded && !small;
    m_wanted[Bell] = m_loaded && !small;
    m_wanted[Version] = !m_loaded;
    fit();
}

void StatusBar::setWanted(Cell cell, bool on) {
    if (m_wanted[cell] == on) return;
    m_wanted[cell] = on;
    fit();
}

void StatusBar::fit() {
    bool brief[CellCount] = {}, dropped[CellCount] = {};
    const auto needed = [&] {
        int sum = 8;
        for (int i = 0; i < CellCount; ++i) {
            if (!m_wanted[i] || dropped[i]) continue;
            m_cells[i]->setBrief(brief[i]);
            sum += m_cells[i]->sizeHint().width();
        }
        return sum;
    };
    // The most important cells are dropped last; badges are never dropped.
    struct Step {
        Cell cell;
        bool drop;
    };
    static constexpr Step kSteps[] = {
        {Session, false}, {Serving, false},   {Gpu, false}, {Memory, false}, {Device, true},
        {Cost, true},     {LinkBadge, false}, {Gpu, true},  {Session, true}, {Dropped, true},
        {Version, true},  {Bell, true},       {Disk, true}};
    for (const Step& step : kSteps) {
        if (needed() <= width()) break;
        if (!step.drop)
            brief[step.cell] = true;
        else if (!m_cells[step.cell]->content().badge)
            dropped[step.cell] = true;
    }
    for (int i = 0; i < CellCount; ++i) {
        m_cells[i]->setBrief(brief[i]);
        m_cells[i]->setVisible(m_wanted[i] && !dropped[i]);
    }
}

void StatusBar::resizeEvent(QResizeEvent*) {
    fit();
}

void StatusBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg0));
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
