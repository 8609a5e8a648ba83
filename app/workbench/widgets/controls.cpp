// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/controls.h"

#include <QAbstractItemView>
#include <QBoxLayout>
#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainterPath>
#include <QToolTip>
#include <cmath>

namespace colibri::ui {
namespace {

double iconGap(const QString& icon) {
    return icon.isEmpty() ? 0 : 6;
}

}  // namespace

// ---- Button

Button::Button(const QString& text, Kind kind, Size size, QWidget* parent)
    : QAbstractButton(parent),
      m_kind(kind),
      m_size(size),
      m_padding(size == Size::Dense  ? 9
                : size == Size::Main ? 21
                                     : 13) {
    setText(text);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void Button::setIconName(const QString& name) {
    m_icon = name;
    updateGeometry();
    update();
}
void Button::setKey(const QString& key) {
    m_key = key;
    updateGeometry();
    update();
}
void Button::setPadding(int px) {
    m_padding = px;
    updateGeometry();
}
void Button::setRound(bool on) {
    m_round = on;
    update();
}

QFont Button::textFont() const {
    const int px = m_size == Size::Dense ? 12 : 13;
    return uiFont(px, m_kind == Kind::Primary ? QFont::DemiBold : QFont::Medium);
}

QSize Button::sizeHint() const {
    double width = 2 * m_padding + textWidth(textFont(), text());
    if (!m_icon.isEmpty()) width += (m_size == Size::Dense ? 12 : 16) + (text().isEmpty() ? 0 : 6);
    if (!m_key.isEmpty()) width += 6 + keyPlateWidth(m_key);
    return {int(std::ceil(width)), int(m_size)};
}

void Button::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const bool hover = isEnabled() && underMouse(), pressed = isDown();
    QColor ground = tone(Tone::Bg2), border = tone(Tone::Line2), ink = tone(Tone::Text1);
    if (m_kind == Kind::Primary) {
        ground = tone(pressed ? Tone::AccentPressed : hover ? Tone::AccentHover : Tone::Accent);
        border = ground;
        ink = tone(Tone::OnAccent);
    } else if (m_kind == Kind::Quiet) {
        ground = border = Qt::transparent;
        ink = tone(hover ? Tone::Text1 : Tone::Text2);
    } else if (m_kind == Kind::Destructive) {
        border = ink = tone(Tone::Error);
    }
    if (m_kind != Kind::Primary && (hover || pressed)) ground = tone(Tone::Bg3);
    if (isCheckable() && isChecked()) {
        ground = tone(Tone::Tint);
        border = ink = tone(Tone::Accent);
    }
    if (!isEnabled()) {
        ground = Qt::transparent;
        border = m_kind == Kind::Quiet ? QColor(Qt::transparent) : tone(Tone::Line1);
        ink = tone(Tone::TextOff);
    }
    const double radius = m_round ? height() / 2.0 : 4;
    fillBox(p, rect(), ground, border, radius);
    if (hasFocus()) {
        if (m_kind == Kind::Primary) {  // an accent ring would not be visible
            fillBox(p, QRectF(rect()).adjusted(2, 2, -2, -2), Qt::transparent, ink, 3, 1);
        } else {
            focusRing(p, rect(), radius);
        }
    }
    const QFont font = textFont();
    const double content = sizeHint().width() - 2 * m_padding;
    double x = std::max(double(m_padding), std::round((this->width() - content) / 2));
    if (!m_icon.isEmpty()) {
        const double size = m_size == Size::Dense ? 12 : 16;
        paintIcon(p, m_icon, QRectF(x, std::round((height() - size) / 2), size, size), ink);
        x += size + 6;
    }
    const double key = m_key.isEmpty() ? 0 : 6 + keyPlateWidth(m_key);
    const double width = std::min(textWidth(font, text()), this->width() - m_padding - key - x);
    drawElided(p, QRectF(x, 0, width + 1, height()), Qt::AlignVCenter | Qt::AlignLeft, text(), font,
               ink);
    if (!m_key.isEmpty()) {
        const bool onAccent = m_kind == Kind::Primary;
        drawKeyPlate(p, x + width + 6, height() / 2.0, m_key, onAccent ? ink : tone(Tone::Text3),
                     onAccent ? ink : tone(Tone::Line2));
    }
}

// ---- IconButton

IconButton::IconButton(const QString& icon, const QString& name, int size, QWidget* parent)
    : QAbstractButton(parent), m_icon(icon), m_size(size) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedSize(size, size);
    describe(name);
}

void IconButton::setIconName(const QString& icon) {
    m_icon = icon;
    update();
}
void IconButton::setIconSize(int px) {
    m_iconSize = px;
    update();
}
void IconButton::setRestTone(Tone tone) {
    m_rest = tone;
    update();
}

void IconButton::setDot(bool on) {
    if (m_dot == on) return;
    m_dot = on;
    update();
}

void IconButton::describe(const QString& name, const QString& shortcut) {
    setAccessibleName(name);
    setToolTip(shortcut.isEmpty() ? name : name + "  (" + shortcut + ")");
}

void IconButton::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const bool lit = isEnabled() && (underMouse() || isDown() || isChecked());
    if (lit) fillBox(p, rect(), tone(Tone::Bg3), Qt::transparent, 4);
    if (hasFocus()) focusRing(p, rect(), 4);
    const QColor ink = !isEnabled()                   ? tone(Tone::TextOff)
                       : lit && m_rest == Tone::Text2 ? tone(Tone::Text1)
                                                      : tone(m_rest);
    paintIcon(p, m_icon,
              QRectF(std::round((width() - m_iconSize) / 2.0),
                     std::round((height() - m_iconSize) / 2.0), m_iconSize, m_iconSize),
              ink);
    if (m_dot) {
        p.setRenderHint(QPainter::Antialiasing);
        p.setPen(Qt::NoPen);
        p.setBrush(tone(Tone::Warn));
        p.drawEllipse(QRectF(width() - 10, 4, 6, 6));
    }
}

// ---- LinkButton

LinkButton::LinkButton(const QString& text, const QFont& font, QWidget* parent)
    : QAbstractButton(parent) {
    setText(text);
    setFont(font);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

QSize LinkButton::sizeHint() const {
    return {int(std::ceil(textWidth(font(), text()))) + 2, 24};
}

void LinkButton::paintEvent(QPaintEvent*) {
    QPainter p(this);
    QFont look = font();
    look.setUnderline(underMouse());
    drawText(p, rect(), Qt::AlignVCenter | Qt::AlignHCenter, text(), look,
             isEnabled() ? tone(Tone::Accent) : tone(Tone::TextOff));
    if (hasFocus()) focusRing(p, rect(), 3);
}

// ---- TabButton

TabButton::TabButton(const QString& icon, const QString& text, bool dense, QWidget* parent)
    : QAbstractButton(parent), m_icon(icon), m_dense(dense) {
    setText(text);
    setCheckable(true);
    setAutoExclusive(true);
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

void TabButton::setShowIcon(bool on) {
    m_showIcon = on;
    updateGeometry();
    update();
}

QSize TabButton::sizeHint() const {
    const QFont font = uiFont(m_dense ? 12 : 13, QFont::Medium);
    const bool icon = m_showIcon && !m_icon.isEmpty();
    return {int(std::ceil(textWidth(font, text()))) + (m_dense ? 20 : 24) + (icon ? 22 : 0), 31};
}

void TabButton::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const QFont font = uiFont(m_dense ? 12 : 13, QFont::Medium);
    const QColor ink = tone(isChecked() || underMouse() ? Tone::Text1 : Tone::Text2);
    double x = m_dense ? 10 : 12;
    if (m_showIcon && !m_icon.isEmpty()) {
        paintIcon(p, m_icon, QRectF(x, std::round(height() / 2.0 - 8), 16, 16), ink);
        x += 22;
    }
    drawText(p, QRectF(x, 0, width() - x, height()), Qt::AlignVCenter, text(), font, ink);
    if (isChecked()) p.fillRect(QRectF(0, height() - 2, width(), 2), tone(Tone::Accent));
    if (hasFocus()) focusRing(p, QRectF(rect()).adjusted(1, 2, -1, -3), 4);
}

// ---- Segment

Segment::Segment(const QStringList& choices, QWidget* parent)
    : QWidget(parent),
      m_choices(choices),
      m_enabled(choices.size(), true),
      m_reasons(choices.size()) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void Segment::setCurrent(int index) {
    if (index == m_current) return;
    m_current = index;
    update();
}

void Segment::setChoiceEnabled(int index, bool on, const QString& reason) {
    m_enabled[index] = on;
    m_reasons[index] = reason;
    update();
}

void Segment::setMono(bool on) {
    m_mono = on;
    updateGeometry();
    update();
}

double Segment::cellWidth(int index) const {
    const QFont font = m_mono ? type::monoSmall() : type::denseMedium();
    return std::ceil(textWidth(font, m_choices[index])) + (m_mono ? 14 : 20) + (index ? 1 : 0);
}

QRectF Segment::cell(int index) const {
    double x = 1;
    for (int i = 0; i <= index; ++i) {
        const double w = cellWidth(i);
        if (i == index) return {x, 1, w, height() - 2.0};
        x += w;
    }
    return {};
}

QSize Segment::sizeHint() const {
    double width = 2;
    for (int i = 0; i < m_choices.size(); ++i) width += cellWidth(i);
    return {int(width), 24};
}

int Segment::indexAt(double x) const {
    for (int i = 0; i < m_choices.size(); ++i)
        if (x >= cell(i).left() && x < cell(i).right()) return i;
    return -1;
}

void Segment::choose(int index) {
    if (index < 0 || index >= m_choices.size() || !m_enabled[index] || index == m_current) return;
    m_current = index;
    update();
    emit chosen(index);
}

void Segment::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) choose(indexAt(event->position().x()));
}

void Segment::mouseMoveEvent(QMouseEvent* event) {
    m_hover = indexAt(event->position().x());
    update();
}

void Segment::leaveEvent(QEvent*) {
    m_hover = -1;
    update();
}

void Segment::keyPressEvent(QKeyEvent* event) {
    const int step = event->key() == Qt::Key_Left || event->key() == Qt::Key_Up      ? -1
                     : event->key() == Qt::Key_Right || event->key() == Qt::Key_Down ? 1
                                                                                     : 0;
    if (!step) return QWidget::keyPressEvent(event);
    for (int i = m_current + step; i >= 0 && i < m_choices.size(); i += step) {
        if (m_enabled[i]) return choose(i);
    }
}

bool Segment::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const int i = indexAt(help->pos().x());
        if (i >= 0 && !m_reasons[i].isEmpty()) {
            QToolTip::showText(help->globalPos(), m_reasons[i], this);
            return true;
        }
    }
    return QWidget::event(event);
}

void Segment::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Bg1), Qt::transparent, 4);
    for (int i = 0; i < m_choices.size(); ++i) {
        const QRectF c = cell(i);
        const bool on = i == m_current, off = !m_enabled[i] || !isEnabled();
        if (on || (i == m_hover && !off)) {
            p.save();
            QPainterPath clip;
            clip.addRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 3, 3);
            p.setClipPath(clip);
            p.fillRect(c, tone(on ? Tone::Bg3 : Tone::Bg2));
            p.restore();
        }
        if (i) p.fillRect(QRectF(c.left(), 1, 1, height() - 2), tone(Tone::Line1));
        const QColor ink = off && !on ? tone(Tone::TextOff) : tone(on ? Tone::Text1 : Tone::Text2);
        drawText(p, c.adjusted(i ? 1 : 0, 0, 0, 0), Qt::AlignCenter, m_choices[i],
                 m_mono ? type::monoSmall()
                 : on   ? type::denseMedium()
                        : type::dense(),
                 ink);
    }
    fillBox(p, rect(), Qt::transparent, tone(Tone::Line2), 4);
    if (hasFocus()) focusRing(p, rect(), 4);
}

// ---- Select

Select::Select(QWidget* parent) : QComboBox(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(24);
    view()->setFont(type::dense());
    connect(this, &QComboBox::currentIndexChanged, this, [this] { updateGeometry(); });
}

void Select::setPrefix(const QString& icon, const QString& label, bool monoValue) {
    if (m_fitCurrent && m_icon == icon && m_label == label && m_mono == monoValue &&
        m_drawn == shownText())
        return;
    m_drawn = shownText();
    m_icon = icon;
    m_label = label;
    m_mono = monoValue;
    m_fitCurrent = true;  // otherwise the width is that of the longest choice
    updateGeometry();
    update();
}

void Select::setSuffix(const QString& text) {
    if (text == m_suffix) return;
    m_suffix = text;
    updateGeometry();
    update();
}

QSize Select::sizeHint() const {
    double width = 2 + 14 + 18;
    if (!m_icon.isEmpty()) width += 12 + iconGap(m_icon);
    if (!m_label.isEmpty()) width += textWidth(type::dense(), m_label) + 6;
    const QFont font = m_mono ? type::monoSmall() : type::dense();
    if (!m_suffix.isEmpty()) width += textWidth(type::dense(), m_suffix) + 6;
    double widest = textWidth(font, shownText());
    for (int i = 0; i < count() && !m_fitCurrent; ++i)
        widest = std::max(widest, textWidth(font, itemText(i)));
    return {int(std::ceil(width + widest)), 24};
}

void Select::wheelEvent(QWheelEvent* event) {
    if (hasFocus()) {
        QComboBox::wheelEvent(event);
    } else {
        event->ignore();
    }
}

void Select::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const bool lit = isEnabled() && underMouse();
    fillBox(p, rect(), tone(lit ? Tone::Bg3 : Tone::Bg2),
            tone(isEnabled() ? Tone::Line2 : Tone::Line1), 4);
    if (hasFocus()) focusRing(p, rect(), 4);
    double x = 9;
    const QColor ink = isEnabled() ? tone(Tone::Text1) : tone(Tone::TextOff);
    if (!m_icon.isEmpty()) {
        paintIcon(p, m_icon, QRectF(x, 6, 12, 12), ink);
        x += 18;
    }
    if (!m_label.isEmpty()) {
        const double w = textWidth(type::dense(), m_label);
        drawText(p, QRectF(x, 0, w, height()), Qt::AlignVCenter, m_label, type::dense(), ink);
        x += w + 6;
    }
    const QFont font = m_mono ? type::monoSmall() : type::dense();
    const double room = width() - x - 24;
    drawElided(p, QRectF(x, 0, room, height()), Qt::AlignVCenter, shownText(), font, ink);
    x += std::min(room, textWidth(font, shownText())) + 6;
    if (!m_suffix.isEmpty() && x < width() - 24) {
        drawElided(p, QRectF(x, 0, width() - x - 24, height()), Qt::AlignVCenter, m_suffix,
                   type::dense(), tone(Tone::Text3));
    }
    paintIcon(p, "down", QRectF(width() - 19, 6, 12, 12), ink);
}

// ---- FoldButton

FoldButton::FoldButton(const QString& text, QWidget* parent) : QAbstractButton(parent) {
    setText(text);
    setCheckable(true);
    setChecked(true);
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(16);
    setAccessibleName(text);
}

QSize FoldButton::sizeHint() const {
    return {int(std::ceil(textWidth(type::captionBold(), text()))) + 20, 16};
}

void FoldButton::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const QColor ink = tone(underMouse() ? Tone::Text1 : Tone::Text3);
    paintIcon(p, isChecked() ? "down" : "right", QRectF(0, 2, 12, 12), ink);
    drawText(p, QRectF(16, 0, width() - 16, height()), Qt::AlignVCenter, text(),
             type::captionBold(), ink);
    if (hasFocus()) focusRing(p, QRectF(rect()).adjusted(-1, -1, 1, 1), 3);
}

QVBoxLayout* plainColumn(QWidget* widget) {
    auto* column = new QVBoxLayout(widget);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

}  // namespace colibri::ui
