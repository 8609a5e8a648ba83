// SPDX-License-Identifier: GPL-3.0-or-later
// Buttons and choices of the window. They paint themselves with the theme's colours, and show one
// focus ring for keyboard and mouse. GUI thread only.
#pragma once

#include <QAbstractButton>
#include <QComboBox>
#include <QStringList>
#include <QVector>

#include "app/workbench/widgets/paint.h"

class QVBoxLayout;

namespace colibri::ui {

class Button : public QAbstractButton {
    Q_OBJECT

public:
    enum class Kind { Default, Primary, Quiet, Destructive };
    enum class Size { Dense = 24, Normal = 28, Main = 32 };

    explicit Button(const QString& text, Kind kind = Kind::Default, Size size = Size::Normal,
                    QWidget* parent = nullptr);
    void setIconName(const QString& name);
    void setKey(const QString& key);  // keyboard plate at the right
    void setPadding(int px);
    void setRound(bool on);  // pill
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    QFont textFont() const;

    Kind m_kind;
    Size m_size;
    QString m_icon, m_key;
    int m_padding;
    bool m_round = false;
};

class IconButton : public QAbstractButton {
    Q_OBJECT

public:
    // `name` is the accessible name and, with its shortcut, the tooltip.
    IconButton(const QString& icon, const QString& name, int size = 24, QWidget* parent = nullptr);
    void setIconName(const QString& icon);
    void setIconSize(int px);  // 16 in bars, 12 in text
    void setRestTone(Tone tone);
    void setHitWidth(int px) { setFixedWidth(px); }
    void setDot(bool on);  // a dot in the warning colour: something is new
    void describe(const QString& name, const QString& shortcut = {});
    QSize sizeHint() const override { return {m_size, m_size}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    QString m_icon;
    int m_size, m_iconSize = 16;
    Tone m_rest = Tone::Text2;
    bool m_dot = false;
};

// A link: text in the accent colour, such as "Diagnose" or "Try again".
class LinkButton : public QAbstractButton {
    Q_OBJECT

public:
    LinkButton(const QString& text, const QFont& font, QWidget* parent = nullptr);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
};

// A tab of the top bar or of a pane: icon, text, and a 2 px line in the accent colour below the
// current one.
class TabButton : public QAbstractButton {
    Q_OBJECT

public:
    TabButton(const QString& icon, const QString& text, bool dense, QWidget* parent = nullptr);
    void setShowIcon(bool on);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    QString m_icon;
    bool m_dense, m_showIcon = true;
};

// A few choices side by side. Arrow keys move the choice; a disabled choice has the reason in its
// tooltip.
class Segment : public QWidget {
    Q_OBJECT

public:
    explicit Segment(const QStringList& choices, QWidget* parent = nullptr);
    int current() const { return m_current; }
    int count() const { return int(m_choices.size()); }
    void setCurrent(int index);
    void setMono(bool on);  // small figures
    void setChoiceEnabled(int index, bool on, const QString& reason = {});
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void chosen(int index);

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool event(QEvent*) override;

private:
    int indexAt(double x) const;
    void choose(int index);
    double cellWidth(int index) const;
    QRectF cell(int index) const;

    QStringList m_choices;
    QVector<bool> m_enabled;
    QStringList m_reasons;
    int m_current = 0, m_hover = -1;
    bool m_mono = false;
};

// A drop-down, 24 px high. Shows an optional icon and label before the value, and a muted word
// after it.
class Select : public QComboBox {
    Q_OBJECT

public:
    explicit Select(QWidget* parent = nullptr);
    void setPrefix(const QString& icon, const QString& label, bool monoValue);
    void setSuffix(const QString& text);
    // The visible text: the choice, or the placeholder if no choice is current.
    QString shownText() const { return currentIndex() < 0 ? placeholderText() : currentText(); }
    QString label() const { return m_label; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {40, 24}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void wheelEvent(QWheelEvent*)
        override;  // ignored without the focus, so that scrolling past changes nothing

private:
    QString m_icon, m_label, m_suffix, m_drawn;
    bool m_mono = false, m_fitCurrent = false;
};

// The head of a group, with a chevron that folds the group.
class FoldButton : public QAbstractButton {
    Q_OBJECT

public:
    explicit FoldButton(const QString& text, QWidget* parent = nullptr);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
};

// A column without margins and gaps, as the layout of `widget`.
QVBoxLayout* plainColumn(QWidget* widget);

}  // namespace colibri::ui
