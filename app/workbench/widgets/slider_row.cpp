// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/slider_row.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QRegularExpression>
#include <QStyle>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/typed_number.h"
#include "engine/base/format.h"

namespace colibri::ui {

// ---- NumberField

NumberField::NumberField(QWidget* parent) : QLineEdit(parent) {
    setProperty("field", "knob");
    setFont(type::mono());
    setFixedHeight(22);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    connect(this, &QLineEdit::textChanged, this, [this] { updateGeometry(); });
}

void NumberField::setUnit(const QString& unit) {
    if (unit == m_unit) return;
    m_unit = unit;
    const int room = unit.isEmpty() ? 0 : int(std::ceil(textWidth(type::caption(), unit))) + 4;
    setTextMargins(0, 0, room, 0);
    updateGeometry();
}

void NumberField::setShown(const QString& text) {
    if (hasFocus() && isModified() && text == m_shown) return;  // do not disturb typing
    m_shown = text;
    if (this->text() != text) setText(text);
    setError(false);
}

void NumberField::setError(bool on) {
    if (on == m_error) return;
    m_error = on;
    setProperty("error", on);
    style()->unpolish(this);
    style()->polish(this);
}

QSize NumberField::sizeHint() const {
    const double unit = m_unit.isEmpty() ? 0 : textWidth(type::caption(), m_unit) + 4;
    return {int(std::ceil(textWidth(type::mono(), text()) + unit)) + 15, 22};
}

void NumberField::paintEvent(QPaintEvent* event) {
    QLineEdit::paintEvent(event);
    if (m_unit.isEmpty()) return;
    QPainter p(this);
    drawText(p, QRectF(0, 0, width() - 7, height()), Qt::AlignRight | Qt::AlignVCenter, m_unit,
             type::caption(), tone(isEnabled() ? Tone::Text3 : Tone::TextOff));
}

void NumberField::keyPressEvent(QKeyEvent* event) {
    const int steps = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
    switch (event->key()) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
            emit applied(text());
            return;
        case Qt::Key_Escape:
            if (text() != m_shown || m_error) {
                setText(m_shown);
                setError(false);
                selectAll();
                emit restored();
                return;
            }
            break;
        case Qt::Key_Up:
            emit stepped(steps);
            return;
        case Qt::Key_Down:
            emit stepped(-steps);
            return;
        default:
            break;
    }
    QLineEdit::keyPressEvent(event);
}

void NumberField::wheelEvent(QWheelEvent* event) {
    if (!hasFocus() || event->angleDelta().y() == 0) return event->ignore();
    emit stepped(event->angleDelta().y() > 0 ? 1 : -1);
}

void NumberField::focusOutEvent(QFocusEvent* event) {
    QLineEdit::focusOutEvent(event);
    if (text() != m_shown) {  // not applied: shows the current value again
        setText(m_shown);
        setError(false);
        emit restored();
    }
}

// ---- Note

Note::Note(QWidget* parent) : QWidget(parent) {
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void Note::setNote(const QString& text, const QString& icon, Tone iconTone, Tone textTone) {
    if (text == m_text && icon == m_icon && textTone == m_textTone) return;
    m_text = text;
    m_icon = icon;
    m_iconTone = iconTone;
    m_textTone = textTone;
    if (m_reserved > 0) m_tallest = std::max(m_tallest, heightForWidth(width()));
    updateGeometry();
    update();
}

void Note::reserve(int lines) {
    m_reserved = lines;
    m_tallest = 0;
    updateGeometry();
}

void Note::resizeEvent(QResizeEvent* event) {
    if (event->size().width() != event->oldSize().width()) m_tallest = 0;
    updateGeometry();
}

int Note::heightForWidth(int width) const {
    const double left = m_icon.isEmpty() ? 0 : 17;
    const int needed = int(drawWrapped(nullptr, {}, width - left, m_text, type::caption(), 15, {}));
    return m_reserved > 0 ? std::max({needed, 15 * m_reserved, m_tallest}) : needed;
}

void Note::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const double left = m_icon.isEmpty() ? 0 : 17;
    if (!m_icon.isEmpty()) paintIcon(p, m_icon, QRectF(0, 1, 12, 12), tone(m_iconTone));
    drawWrapped(&p, {left, 0}, width() - left, m_text, type::caption(), 15, tone(m_textTone));
}

// ---- SliderRow

QString unitFor(const QString& unit, int64_t value) {
    static const QRegularExpression plural(
        "^(experts|layers|threads|rows|tokens|requests|reads)\\b");
    QString text = unit;
    const auto match = value == 1 ? plural.match(unit) : QRegularExpressionMatch();
    if (match.hasMatch()) text.remove(match.capturedEnd() - 1, 1);
    return text;
}

SliderRow::SliderRow(const QString& label, const QString& unit, QWidget* parent)
    : QWidget(parent),
      m_label(new QLabel(label)),
      m_reset(new IconButton("reset", "Reset", 18)),
      m_field(new NumberField),
      m_slider(new Slider),
      m_note(new Note),
      m_unit(unit) {
    m_reset->setIconSize(12);
    m_reset->setRestTone(Tone::Accent);
    m_reset->setFocusPolicy(Qt::TabFocus);
    m_field->setUnit(unit);
    m_field->setAccessibleName(label + (unit.isEmpty() ? "" : ", " + unit));
    m_slider->setAccessibleName(label);
    m_label->setFont(type::body());
    auto* top = new QHBoxLayout;
    top->setContentsMargins(0, 0, 0, 0);
    top->setSpacing(4);
    top->addWidget(m_label);
    top->addWidget(m_reset);
    top->addStretch();
    top->addWidget(m_field);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    top->setSizeConstraint(QLayout::SetNoConstraint);
    column->addLayout(top);
    column->addWidget(m_slider);
    column->addWidget(m_note);
    m_label->setFixedHeight(24);
    m_note->hide();
    m_reset->hide();

    connect(m_slider, &Slider::edited, this, [this](int64_t value, bool final) {
        m_field->setModified(false);
        refresh();
        emit edited(value, final);
    });
    connect(m_reset, &QAbstractButton::clicked, this, [this] {
        if (m_slider->range().defaultValue) commit(*m_slider->range().defaultValue);
    });
    connect(m_field, &NumberField::applied, this, &SliderRow::applyText);
    connect(m_field, &NumberField::restored, this,
            [this] { setNote(m_noteText, m_noteIcon, m_noteIconTone, m_noteTextTone); });
    connect(m_field, &NumberField::stepped, this, [this](int steps) {
        commit(value() + steps * std::max<int64_t>(1, m_slider->range().step));
    });
}

void SliderRow::setRange(const SliderRange& range) {
    m_slider->setRange(range);
    refresh();
}

void SliderRow::setScale(int scale, int decimals) {
    m_scale = scale;
    m_decimals = decimals;
    refresh();
}

void SliderRow::setZeroText(const QString& text) {
    m_zeroText = text;
    refresh();
}

QString SliderRow::valueText(int64_t value) const {
    if (value == 0 && !m_zeroText.isEmpty()) return m_zeroText;
    if (m_scale == 1) return count(value);
    return str(formatFixed(double(value) / m_scale, m_decimals));
}

void SliderRow::setValue(int64_t value) {
    if (m_slider->dragging()) return;
    m_slider->setValue(value);
    refresh();
}

void SliderRow::setNote(const QString& text, const QString& icon, Tone iconTone, Tone textTone) {
    m_noteText = text;
    m_noteIcon = icon;
    m_noteIconTone = iconTone;
    m_noteTextTone = textTone;
    if (m_field->property("error").toBool()) return;  // the error stays until the text changes
    m_note->setNote(text, icon, iconTone, textTone);
    m_note->setVisible(!text.isEmpty() || m_reservesNote);
}

void SliderRow::reserveNote(int lines) {
    m_reservesNote = lines > 0;
    m_note->reserve(lines);
    m_note->setVisible(m_reservesNote || !m_noteText.isEmpty());
}

void SliderRow::setAvailable(bool on) {
    m_slider->setEnabled(on);
    m_field->setEnabled(on);
    m_reset->setEnabled(on);
}

void SliderRow::applyText(const QString& text) {
    QString error;
    std::optional<int64_t> value;
    if (m_parser) {
        value = m_parser(text, &error);
    } else {
        const SliderRange& range = m_slider->range();
        const auto number = typedNumber(text);
        // A fraction of a whole number is a typing error, so it is not rounded.
        const bool countable = m_scale > 1 || typedWhole(text);
        const double scaled = number ? std::round(*number * m_scale) : 0;
        if (!m_zeroText.isEmpty() && text.trimmed() == m_zeroText) {
            value = 0;
        } else if (number && countable && scaled >= double(range.min) &&
                   scaled <= double(range.max)) {
            value = int64_t(scaled);
        } else {
            error = QString("Use %1%2..%3.")
                        .arg(number && !countable ? "a whole number, " : "", valueText(range.min),
                             valueText(range.max));
        }
    }
    if (!value) {
        m_field->setError(true);
        m_note->setNote(error, "error", Tone::Error, Tone::Error);
        m_note->show();
        return;
    }
    commit(*value);
    m_field->selectAll();
}

void SliderRow::commit(int64_t value) {
    const SliderRange& range = m_slider->range();
    value = std::clamp(value, range.min, range.max);
    m_slider->setValue(value);
    m_field->setModified(false);
    m_field->setError(false);
    setNote(m_noteText, m_noteIcon, m_noteIconTone, m_noteTextTone);
    refresh();
    emit edited(value, true);
}

void SliderRow::refresh() {
    const int64_t shown = m_slider->value();
    m_field->setShown(valueText(shown));
    // "none" has no unit, and 1 needs the singular.
    const bool none = shown == 0 && !m_zeroText.isEmpty();
    m_field->setUnit(none ? QString() : m_scale == 1 ? unitFor(m_unit, shown) : m_unit);
    const auto& def = m_slider->range().defaultValue;
    m_reset->setVisible(def && *def != m_slider->value());
    if (def) m_reset->describe("Reset to default " + valueText(*def), "Ctrl+0");
}

}  // namespace colibri::ui
