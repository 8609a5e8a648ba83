// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/theme/theme.h"
#include "app/workbench/theme/style.h"

#include <QApplication>
#include <QEvent>
#include <QFile>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#ifdef Q_OS_LINUX
#include <dlfcn.h>
#endif

// Resources of a static library must be registered explicitly; the macro works only outside of
// namespaces.
static void registerResources() {
    Q_INIT_RESOURCE(help);
    Q_INIT_RESOURCE(icons);
    Q_INIT_RESOURCE(themes);
}

namespace colibri::ui {
namespace {

// Qt lets FreeType thicken the stems of CFF fonts such as Inter. That assumes gamma-correct
// blending; the raster painter blends linearly, so light text on a dark background would look bold.
// Both functions are in libraries that QtGui has loaded; if one is missing, nothing changes.
void plainStems() {
#ifdef Q_OS_LINUX
    using Library = void* (*)();
    using SetProperty = int (*)(void*, const char*, const char*, const void*);
    const auto library = reinterpret_cast<Library>(dlsym(RTLD_DEFAULT, "_Z14qt_getFreetypev"));
    const auto set = reinterpret_cast<SetProperty>(dlsym(RTLD_DEFAULT, "FT_Property_Set"));
    const unsigned char plain = 1;  // FT_Bool
    if (library && set) set(library(), "cff", "no-stem-darkening", &plain);
#endif
}

struct Row {
    Tone tone;
    const char* name;  // as in the style sheet: @bg0
    const char* dark;
    const char* light;
};

constexpr Row kPalette[] = {
    {Tone::Bg0, "bg0", "#111518", "#e9edf0"},
    {Tone::Bg1, "bg1", "#191e22", "#f6f8f9"},
    {Tone::Bg2, "bg2", "#22282d", "#ffffff"},
    {Tone::Bg3, "bg3", "#2d353b", "#e2e7ea"},
    {Tone::Plot, "plot", "#14181b", "#ffffff"},
    {Tone::Cell, "cell", "#22282d", "#e9edf0"},
    {Tone::Line1, "line1", "#2b3238", "#d5dbe0"},
    {Tone::Line2, "line2", "#414b53", "#a9b3bb"},
    {Tone::Accent, "accent", "#3cb9a9", "#0a7468"},
    {Tone::AccentHover, "accentH", "#56cbbc", "#08645a"},
    {Tone::AccentPressed, "accentP", "#2a9a8c", "#065249"},
    {Tone::OnAccent, "onacc", "#05211d", "#ffffff"},
    {Tone::Tint, "tint", "#1b3836", "#d7eeea"},
    {Tone::OkBg, "okbg", "#1d3022", "#dff1e2"},
    {Tone::WarnBg, "warnbg", "#332b16", "#faefd3"},
    {Tone::ErrorBg, "errbg", "#3a2120", "#fbe3e1"},
    {Tone::Scrim, "scrim", "#8c0a0d0f", "#5928323a"},
    {Tone::Text1, "text1", "#e6eaed", "#161b1f"},
    {Tone::Text2, "text2", "#b1bac1", "#434e57"},
    {Tone::Text3, "text3", "#98a2aa", "#5c6770"},
    {Tone::TextOff, "textd", "#5f6971", "#98a2aa"},
    {Tone::Ok, "ok", "#6fc07c", "#26753a"},
    {Tone::Warn, "warn", "#e5bd4f", "#855600"},
    {Tone::Error, "error", "#f37e76", "#b93029"},
    {Tone::S1, "s1", "#4fa8f0", "#2a72d4"},
    {Tone::S2, "s2", "#e9a23b", "#d07a1e"},
    {Tone::S3, "s3", "#4f9d74", "#1f7a55"},
    {Tone::S4, "s4", "#b5719f", "#a8458c"},
    {Tone::S5, "s5", "#f0e28a", "#6b6600"},
    {Tone::S6, "s6", "#66e0ec", "#1496b4"},
    {Tone::S7, "s7", "#8070d2", "#45208a"},
    {Tone::S8, "s8", "#bd5730", "#7d2410"},
};
static_assert(std::size(kPalette) == size_t(Tone::Count));

using Ramp = std::array<QRgb, 9>;
constexpr Ramp kSequentialDark = {0xff1b273e, 0xff233f5b, 0xff255877, 0xff21758f, 0xff1c939d,
                                  0xff35b1a3, 0xff6dcca0, 0xffb0e09d, 0xffecf2a8};
constexpr Ramp kSequentialLight = {0xfff0f6d0, 0xffbee3b9, 0xff81cfb3, 0xff4bb6b2, 0xff2699ac,
                                   0xff197ba3, 0xff1c5e8d, 0xff1b4374, 0xff182a5a};

// sRGB interpolation between the nine stops.
QColor rampColor(const Ramp& ramp, double v) {
    const double at = std::clamp(std::isfinite(v) ? v : 0.0, 0.0, 1.0) * (ramp.size() - 1);
    const size_t i = std::min(size_t(at), ramp.size() - 2);
    const double f = at - double(i);
    const auto mix = [&](int a, int b) { return int(std::lround(a + (b - a) * f)); };
    return QColor(mix(qRed(ramp[i]), qRed(ramp[i + 1])), mix(qGreen(ramp[i]), qGreen(ramp[i + 1])),
                  mix(qBlue(ramp[i]), qBlue(ramp[i + 1])));
}

QFont makeFont(const QStringList& families, int px, int weight) {
    QFont font;
    font.setFamilies(families);
    font.setPixelSize(px);
    font.setWeight(QFont::Weight(weight));
    font.setHintingPreference(QFont::PreferNoHinting);
    // Contextual forms would draw 0x10 as 0×10 and -> as an arrow.
    font.setStyleStrategy(QFont::PreferNoShaping);
    return font;
}

}  // namespace

Theme& Theme::get() {
    static Theme theme;
    return theme;
}

void Theme::install() {
    if (m_installed) return;
    m_installed = true;
    registerResources();
    plainStems();
    QApplication::setStyle(new ThemedStyle);
    QApplication::setFont(type::body());
    QToolTip::setFont(type::dense());
    qApp->installEventFilter(this);
    refresh();
}

void Theme::setMode(Mode mode) {
    m_mode = mode;
    refresh();
}

void Theme::setHighContrast(bool on) {
    m_highContrast = on;
    refresh();
}

bool Theme::systemIsDark() const {
    return QGuiApplication::palette().color(QPalette::Window).lightness() < 128;
}

void Theme::refresh() {
    m_dark = m_mode == Mode::Dark || (m_mode == Mode::System && systemIsDark());
    if (!m_installed) return;
    QFile file(":/themes/workbench.qss");
    if (!file.open(QIODevice::ReadOnly)) return;
    QString sheet = QString::fromUtf8(file.readAll());
    sheet.replace("@mode", m_dark ? "dark" : "light");
    // Longest names first, so that @accentH is not read as @accent.
    std::array<Row, std::size(kPalette)> rows;
    std::copy(std::begin(kPalette), std::end(kPalette), rows.begin());
    std::sort(rows.begin(), rows.end(),
              [](const Row& a, const Row& b) { return strlen(a.name) > strlen(b.name); });
    for (const Row& row : rows)
        sheet.replace("@" + QString(row.name), color(row.tone).name(QColor::HexRgb));
    qApp->setStyleSheet(sheet);
    emit changed();
}

QColor Theme::color(Tone t) const {
    if (m_highContrast && t == Tone::Line2) t = Tone::Text3;
    const Row& row = kPalette[size_t(t)];
    return QColor(m_dark ? row.dark : row.light);
}

QColor Theme::sequential(double v) const {
    return rampColor(m_dark ? kSequentialDark : kSequentialLight, v);
}

bool Theme::eventFilter(QObject* object, QEvent* event) {
    // Qt before 6.5 does not report the colour scheme, so the palette of the system decides.
    if (event->type() == QEvent::ApplicationPaletteChange && m_mode == Mode::System &&
        object == qApp && systemIsDark() != m_dark) {
        refresh();
    }
    return QObject::eventFilter(object, event);
}

QColor withAlpha(QColor color, double alpha) {
    color.setAlphaF(float(alpha));
    return color;
}

QFont uiFont(int px, int weight) {
    static const QStringList families = {"Inter", "Noto Sans", "DejaVu Sans"};
    return makeFont(families, px, weight);
}

QFont monoFont(int px, int weight) {
    static const QStringList families = {"JetBrains Mono", "Noto Sans Mono", "DejaVu Sans Mono"};
    QFont font = makeFont(families, px, weight);
    font.setStyleHint(QFont::Monospace, QFont::PreferNoShaping);
    return font;
}

}  // namespace colibri::ui
