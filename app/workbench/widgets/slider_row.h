// SPDX-License-Identifier: GPL-3.0-or-later
// A number as label, field and slider in two rows, with range, default and note. Values are int64
// in steps; a scale converts them to the decimals shown (scale 100: 70 is shown as "0.70"). GUI
// thread only.
#pragma once

#include <QLineEdit>
#include <QVector>
#include <QWidget>
#include <cstdint>
#include <functional>
#include <optional>

#include "app/workbench/widgets/paint.h"

class QLabel;

namespace colibri::ui {

class IconButton;

struct SliderRange {
    int64_t min = 0, max = 100, step = 1;
    std::optional<int64_t> defaultValue;
    bool logarithmic = false;
    std::optional<int64_t> harmfulBelow;    // the track below has the error colour
    QString minText, maxText, defaultText;  // "": the number
};

// The track and handle. Mouse: drag, click, or wheel with the focus. Keys: arrows, Shift for ten
// steps, PageUp, PageDown, Home, End, Ctrl+0 for the default.
class Slider : public QWidget {
    Q_OBJECT

public:
    explicit Slider(QWidget* parent = nullptr);
    void setRange(const SliderRange& range);
    const SliderRange& range() const { return m_range; }
    int64_t value() const { return m_value; }
    void setValue(int64_t value);  // emits no signal
    void setEffective(std::optional<int64_t> value);
    void setHistory(const QVector<int64_t>& values, const QStringList& texts);
    bool dragging() const { return m_dragging; }
    QSize sizeHint() const override { return {200, 32}; }
    double xOf(int64_t value) const;  // px, centre of the handle

signals:
    void edited(int64_t value, bool final);  // final: after release, key or wheel

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mouseReleaseEvent(QMouseEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool event(QEvent*) override;

private:
    int64_t valueAt(double x) const;
    double share(int64_t value) const;  // 0..1 along the track
    void change(int64_t value, bool final);
    void paintScale(QPainter& p);

    SliderRange m_range;
    int64_t m_value = 0;
    std::optional<int64_t> m_effective;
    QVector<int64_t> m_history;
    QStringList m_historyTexts;
    bool m_dragging = false;
};

// The field for the exact value, as wide as its text, with the unit after it. Enter applies, Esc
// restores.
class NumberField : public QLineEdit {
    Q_OBJECT

public:
    explicit NumberField(QWidget* parent = nullptr);
    void setUnit(const QString& unit);
    void setShown(const QString& text);  // the value that Esc restores
    void setError(bool on);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void applied(const QString& text);
    void restored();  // the typed text and its error were discarded
    void stepped(int steps);

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    void focusOutEvent(QFocusEvent*) override;

private:
    QString m_unit, m_shown;
    bool m_error = false;
};

// A note of 11 px below a control, with an optional icon; it wraps.
class Note : public QWidget {
    Q_OBJECT

public:
    explicit Note(QWidget* parent = nullptr);
    void setNote(const QString& text, const QString& icon = {}, Tone iconTone = Tone::Text3,
                 Tone textTone = Tone::Text3);
    QString text() const { return m_text; }
    // Keeps a height of so many lines, and later that of the tallest text so far, so that the
    // widgets below do not move when the text changes.
    void reserve(int lines);
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override { return {100, heightForWidth(width() > 40 ? width() : 260)}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    QString m_text, m_icon;
    int m_reserved = 0;  // lines; 0: none
    int m_tallest = 0;   // px, of all texts at this width
    Tone m_iconTone = Tone::Text3, m_textTone = Tone::Text3;
};

// The unit in the number of the value: "1 thread", "2 threads", "1 expert / layer".
QString unitFor(const QString& unit, int64_t value);

class SliderRow : public QWidget {
    Q_OBJECT

public:
    SliderRow(const QString& label, const QString& unit, QWidget* parent = nullptr);
    void setRange(const SliderRange& range);
    void setScale(int scale, int decimals);  // shown = value / scale
    void setValue(int64_t value);
    int64_t value() const { return m_slider->value(); }
    void setEffective(std::optional<int64_t> value) { m_slider->setEffective(value); }
    void setNote(const QString& text, const QString& icon = {}, Tone iconTone = Tone::Text3,
                 Tone textTone = Tone::Text3);
    const QString& noteText() const { return m_noteText; }
    void reserveNote(int lines);            // see Note::reserve()
    void setZeroText(const QString& text);  // shown instead of 0, such as "none"
    // Parses typed text; by default a number in the range.
    using Parser = std::function<std::optional<int64_t>(const QString&, QString* error)>;
    void setParser(Parser parser) { m_parser = std::move(parser); }
    void setAvailable(bool on);
    Slider* slider() const { return m_slider; }
    NumberField* field() const { return m_field; }
    QString valueText(int64_t value) const;

signals:
    void edited(int64_t value, bool final);

private:
    void applyText(const QString& text);
    void commit(int64_t value);
    void refresh();

    QLabel* m_label;
    IconButton* m_reset;
    NumberField* m_field;
    Slider* m_slider;
    Note* m_note;
    QString m_unit, m_zeroText, m_noteText, m_noteIcon;
    Tone m_noteIconTone = Tone::Text3, m_noteTextTone = Tone::Text3;
    int m_scale = 1, m_decimals = 0;
    bool m_reservesNote = false;
    Parser m_parser;
};

}  // namespace colibri::ui
