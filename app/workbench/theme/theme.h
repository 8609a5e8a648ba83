// SPDX-License-Identifier: GPL-3.0-or-later
// Colours and fonts of the window: one table with a column for each theme. Widgets, plots and the
// heat map read it while painting, so a change of theme is one repaint. GUI thread only.
#pragma once

#include <QColor>
#include <QFont>
#include <QObject>
#include <QString>

namespace colibri::ui {

enum class Tone {
    Bg0,
    Bg1,
    Bg2,
    Bg3,
    Plot,
    Cell,
    Line1,
    Line2,
    Accent,
    AccentHover,
    AccentPressed,
    OnAccent,
    Tint,
    OkBg,
    WarnBg,
    ErrorBg,
    Scrim,
    Text1,
    Text2,
    Text3,
    TextOff,
    Ok,
    Warn,
    Error,
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    Count
};
inline Tone seriesTone(int n) {
    return Tone(int(Tone::S1) + (n - 1) % 8);
}  // n from 1

class Theme : public QObject {
    Q_OBJECT

public:
    enum class Mode { System, Light, Dark };

    static Theme& get();
    void install();  // style and style sheet of the application; call once

    Mode mode() const { return m_mode; }
    void setMode(Mode mode);
    bool dark() const { return m_dark; }
    bool highContrast() const { return m_highContrast; }
    void setHighContrast(bool on);

    QColor color(Tone tone) const;
    QColor sequential(double v) const;  // v in 0..1, low to high

signals:
    void changed();

protected:
    bool eventFilter(QObject* object, QEvent* event) override;

private:
    Theme() = default;
    void refresh();
    bool systemIsDark() const;

    Mode m_mode = Mode::System;
    bool m_dark = true;
    bool m_highContrast = false;
    bool m_installed = false;
};

inline QColor tone(Tone t) {
    return Theme::get().color(t);
}
QColor withAlpha(QColor color, double alpha);

// Fonts by role. Changing figures and columns of figures are monospaced. No font uses ligatures or
// contextual forms, so text is shown as written.
QFont uiFont(int px, int weight = QFont::Normal);
QFont monoFont(int px, int weight = QFont::Normal);
namespace type {
inline QFont title() {
    return uiFont(24, QFont::DemiBold);
}
inline QFont section() {
    return uiFont(15, QFont::DemiBold);
}
inline QFont chat() {
    return uiFont(14);
}
inline QFont body() {
    return uiFont(13);
}
inline QFont bodyMedium() {
    return uiFont(13, QFont::Medium);
}
inline QFont bodyBold() {
    return uiFont(13, QFont::DemiBold);
}
inline QFont dense() {
    return uiFont(12);
}
inline QFont denseMedium() {
    return uiFont(12, QFont::Medium);
}
inline QFont denseBold() {
    return uiFont(12, QFont::DemiBold);
}
inline QFont caption() {
    return uiFont(11);
}
inline QFont captionBold() {
    return uiFont(11, QFont::DemiBold);
}
inline QFont figure() {
    return monoFont(20, QFont::DemiBold);
}
inline QFont mono() {
    return monoFont(12);
}
inline QFont monoSmall() {
    return monoFont(11);
}
}  // namespace type

}  // namespace colibri::ui
