// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/top_bar.h"

#include <QHBoxLayout>
#include <cmath>

#include "app/workbench/plots/plot_data.h"

namespace colibri::ui {
namespace {

constexpr double kWholeSession = 0;
struct RangeChoice {
    const char* text;
    double seconds;
};
constexpr RangeChoice kRanges[] = {{"0:10", 10},
                                   {"0:30", 30},
                                   {"1:30", 90},
                                   {"5:00", 300},
                                   {"15:00", 900},
                                   {"1:00:00", 3600},
                                   {"Whole session", kWholeSession}};

class Logo : public QWidget {
public:
    Logo() { setFixedSize(24, 28); }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        paintIcon(p, "logo", QRectF(4, 6, 16, 16), tone(Tone::Text2));
    }
};

}  // namespace

// ---- ModelChip

ModelChip::ModelChip(QWidget* parent) : QAbstractButton(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(28);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setModel({}, {});
}

void ModelChip::setModel(const QString& name, const QString& weights) {
    m_name = name;
    m_weights = weights;
    setAccessibleName(name.isEmpty() ? "No model loaded, model menu" : "Model " + name + ", menu");
    setToolTip(name.isEmpty() ? "Open a model" : name + "  " + weights);
    updateGeometry();
    update();
}

void ModelChip::setCompact(bool on) {
    m_compact = on;
    updateGeometry();
    update();
}

QSize ModelChip::sizeHint() const {
    const QString name = m_name.isEmpty() ? "No model loaded" : m_name;
    double w =
        1 + 8 + 16 + 8 + textWidth(m_name.isEmpty() ? type::body() : type::bodyMedium(), name);
    if (!m_compact && !m_weights.isEmpty()) w += 8 + textWidth(type::monoSmall(), m_weights);
    return {int(std::ceil(w + 8 + 12 + 8 + 1)), 28};
}

void ModelChip::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(underMouse() ? Tone::Bg3 : Tone::Bg1), tone(Tone::Line1), 4);
    if (hasFocus()) focusRing(p, rect(), 4);
    const bool none = m_name.isEmpty();
    const QColor ink = tone(none ? Tone::Text2 : Tone::Text1);
    paintIcon(p, "chip", QRectF(9, 6, 16, 16), ink);
    const QFont font = none ? type::body() : type::bodyMedium();
    const QString name = none ? "No model loaded" : m_name;
    const double suffix =
        m_compact || m_weights.isEmpty() ? 0 : 8 + textWidth(type::monoSmall(), m_weights);
    const double room = width() - 33 - suffix - 29;
    drawElided(p, QRectF(33, 0, room, 28), Qt::AlignVCenter, name, font, ink);
    if (suffix > 0) {
        const double x = 33 + std::min(room, textWidth(font, name)) + 8;
        drawText(p, QRectF(x, 0, suffix, 28), Qt::AlignVCenter, m_weights, type::monoSmall(),
                 tone(Tone::Text3));
    }
    paintIcon(p, "down", QRectF(width() - 21, 8, 12, 12), ink);
}

// ---- CommandField

CommandField::CommandField(QWidget* parent) : QAbstractButton(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedSize(212, 28);
    setAccessibleName("Commands");
}

void CommandField::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(underMouse() ? Tone::Bg3 : Tone::Bg2), tone(Tone::Line2), 4);
    if (hasFocus()) focusRing(p, rect(), 4);
    paintIcon(p, "search", QRectF(9, 6, 16, 16), tone(Tone::Text3));
    drawText(p, QRectF(33, 0, 100, 28), Qt::AlignVCenter, "Commands", type::body(),
             tone(Tone::Text3));
    const double w = keyPlateWidth("Ctrl+Shift+P");
    drawKeyPlate(p, width() - 9 - w, 14, "Ctrl+Shift+P", tone(Tone::Text3), tone(Tone::Line2));
}

// ---- RecordingMark

RecordingMark::RecordingMark(QWidget* parent) : QAbstractButton(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(28);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void RecordingMark::setState(bool on, double seconds, const QString& error) {
    const QString time = clockText(seconds, 0);
    if (on == m_on && time == m_time && error == m_error) return;
    const bool resized = time.size() != m_time.size() || on != m_on;
    m_on = on;
    m_time = time;
    m_error = error;
    setAccessibleName(on ? "Recording, " + time : "Not recording");
    setToolTip(!error.isEmpty() ? error
               : on ? "Every event is written to the session file. Click to copy its path."
                    : "This session is not written to a file");
    if (resized) updateGeometry();
    update();
}

QSize RecordingMark::sizeHint() const {
    const QString word = m_on ? "Recording" : "Not recording";
    return {int(std::ceil(5 + 8 + 8 + textWidth(type::body(), word) + 8 +
                          textWidth(type::monoSmall(), m_time) + 5)),
            28};
}

void RecordingMark::paintEvent(QPaintEvent*) {
    QPainter p(this);
    if (hasFocus()) focusRing(p, rect(), 4);
    p.setRenderHint(QPainter::Antialiasing);
    p.setPen(Qt::NoPen);
    p.setBrush(tone(m_on ? Tone::Error : Tone::Text3));
    p.drawEllipse(QRectF(5, 10, 8, 8));
    const QString word = m_on ? "Recording" : "Not recording";
    drawText(p, QRectF(21, 0, 200, 28), Qt::AlignVCenter, word, type::body(), tone(Tone::Text2));
    drawText(p, QRectF(29 + textWidth(type::body(), word), 0, 90, 28), Qt::AlignVCenter, m_time,
             type::monoSmall(), tone(Tone::Text1));
}

// ---- TopBar

class TopBar::Line : public QWidget {
public:
    Line() { setFixedSize(13, 20); }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(QRectF(6, 0, 1, height()), tone(Tone::Line1));
    }
};

// "Recorded" and the date of the session.
class TopBar::RecordedTag : public QWidget {
public:
    RecordedTag() {
        setFixedHeight(28);
        setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    }
    void setDate(const QString& date) {
        m_date = date;
        setAccessibleName("Recorded session, " + date);
        setToolTip("A session file is shown, not a running model");
        updateGeometry();
        update();
    }
    QSize sizeHint() const override {
        const double date = m_date.isEmpty() ? 0 : 10 + textWidth(type::monoSmall(), m_date);
        return {int(std::ceil(boxWidth() + date)) + 1, 28};
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        fillBox(p, QRectF(0, 2, boxWidth(), 24), tone(Tone::Tint), Qt::transparent, 3);
        paintIcon(p, "clock", QRectF(8, 8, 12, 12), tone(Tone::Accent));
        drawText(p, QRectF(26, 2, 100, 24), Qt::AlignVCenter, kWord, type::dense(),
                 tone(Tone::Accent));
        drawText(p, QRectF(boxWidth() + 10, 2, 200, 24), Qt::AlignVCenter, m_date,
                 type::monoSmall(), tone(Tone::Text2));
    }

private:
    static constexpr const char* kWord = "Recorded";
    static double boxWidth() { return 26 + std::ceil(textWidth(type::dense(), kWord)) + 8; }
    QString m_date;
};

TopBar::TopBar(ViewState* view, QWidget* parent) : QWidget(parent), m_view(view) {
    setFixedHeight(40);
    makeRangeControls();
    makeButtons();
    layOut();
    connectRangeControls();
    connect(m_commands, &QAbstractButton::clicked, this, &TopBar::commandsWanted);
    connect(m_search, &QAbstractButton::clicked, this, &TopBar::commandsWanted);
    connect(m_docks, &QAbstractButton::clicked, this, &TopBar::docksWanted);
    connect(m_theme, &QAbstractButton::clicked, this, &TopBar::themeWanted);
    connect(m_help, &QAbstractButton::clicked, this, &TopBar::helpWanted);
    setWindowClass(WindowClass::Normal);
    refreshMode();
    refreshTheme();
}

// Pause, follow and time range.
void TopBar::makeRangeControls() {
    m_pause = new IconButton("pause", "Pause the plots; recording continues", 28);
    m_pause->describe("Pause the plots; recording continues", "Ctrl+P");
    m_pause->setCheckable(true);
    m_follow = new Button("Follow", Button::Kind::Default, Button::Size::Dense);
    m_follow->setIconName("follow");
    m_follow->setCheckable(true);
    m_follow->setToolTip("Keep the newest data in view  (End)");
    m_followIcon = new IconButton("follow", "Follow the newest data");
    m_followIcon->setCheckable(true);
    m_range = new Select;
    for (const RangeChoice& choice : kRanges) m_range->addItem(choice.text, choice.seconds);
    m_range->setCurrentIndex(2);
    m_range->setAccessibleName("Visible time range");
}

void TopBar::makeButtons() {
    m_menu = new IconButton("menu", "Menu", 28);
    m_menu->describe("Menu", "F10");
    m_logo = new Logo;
    m_chip = new ModelChip;
    m_recording = new RecordingMark;
    m_recordedTag = new RecordedTag;
    m_commands = new CommandField;
    m_search = new IconButton("search", "Commands", 28);
    m_search->describe("Commands", "Ctrl+Shift+P");
    m_docks = new IconButton("knob", "Knobs, Serve and Load test", 28);
    m_docks->describe("Knobs, Serve and Load test", "Ctrl+K");
    m_theme = new IconButton("sun", "Switch theme", 28);
    m_bell = new IconButton("bell", "Messages", 28);
    m_help = new IconButton("help", "Keyboard sheet", 28);
    m_help->describe("Keyboard sheet", "F1");
    m_lineA = new Line;
    m_lineB = new Line;
}

void TopBar::layOut() {
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(8, 0, 8, 1);
    line->setSpacing(4);
    m_tabsLayout = new QHBoxLayout;
    m_tabsLayout->setSpacing(0);
    m_tabsLayout->setContentsMargins(8, 0, 0, 0);
    line->addWidget(m_menu);
    line->addWidget(m_logo);
    line->addWidget(m_chip, 0, Qt::AlignVCenter);
    line->addLayout(m_tabsLayout);
    line->addStretch(1);
    for (QWidget* w : std::initializer_list<QWidget*>{
             m_pause, m_follow, m_followIcon, m_range, m_lineA, m_recording, m_recordedTag, m_lineB,
             m_commands, m_search, m_docks, m_theme, m_bell, m_help}) {
        if (w == m_follow) line->addSpacing(2);
        line->addWidget(w);
        if (w == m_follow) line->addSpacing(2);
    }
}

void TopBar::connectRangeControls() {
    connect(m_pause, &QAbstractButton::clicked, m_view, &ViewState::setPaused);
    const auto follow = [this] {
        if (m_view->following() && !m_view->paused())
            m_view->stopFollowing();
        else
            m_view->follow();
        refreshMode();
    };
    connect(m_follow, &QAbstractButton::clicked, this, follow);
    connect(m_followIcon, &QAbstractButton::clicked, this, follow);
    connect(m_range, &QComboBox::activated, this, [this](int i) {
        const double span = m_range->itemData(i).toDouble();
        if (span == kWholeSession)
            m_view->showWhole();
        else
            m_view->setSpan(span);
        refreshRange();
    });
    connect(m_view, &ViewState::modeChanged, this, &TopBar::refreshMode);
    connect(m_view, &ViewState::rangeChanged, this, &TopBar::refreshRange);
}

void TopBar::addTab(const QString& key, const QString& icon, const QString& title) {
    auto* tab = new TabButton(icon, title, false);
    connect(tab, &QAbstractButton::clicked, this, [this, key] { emit tabChosen(key); });
    tab->setShowIcon(m_windowClass != WindowClass::Small);
    m_tabsLayout->addWidget(tab);
    m_tabs.emplace_back(key, tab);
}

void TopBar::setCurrentTab(const QString& key) {
    for (const auto& [name, tab] : m_tabs) {
        tab->setAutoExclusive(false);
        tab->setChecked(name == key);
        tab->setAutoExclusive(true);
    }
}

void TopBar::setSessionVisible(bool on) {
    m_session = on;
    setWindowClass(m_windowClass);
}

void TopBar::setRecorded(const QString& date) {
    m_recorded = !date.isNull();
    m_recordedTag->setDate(date);
    setWindowClass(m_windowClass);
}

void TopBar::setWindowClass(WindowClass windowClass) {
    m_windowClass = windowClass;
    const bool small = windowClass == WindowClass::Small,
               narrow = windowClass <= WindowClass::Compact;
    m_logo->setVisible(!small);
    m_chip->setCompact(small);
    for (const auto& [key, tab] : m_tabs) tab->setShowIcon(!small);
    const bool live = m_session && !m_recorded;
    m_pause->setVisible(live && !small);
    m_follow->setVisible(live && !small);
    m_followIcon->setVisible(live && small);
    m_range->setVisible(m_session);
    refreshRange();
    m_lineA->setVisible(m_session && !small);
    m_recording->setVisible(live && !small);
    m_recordedTag->setVisible(m_session && m_recorded);
    m_lineB->setVisible(m_session && !small);
    m_commands->setVisible(!narrow);
    m_commands->setFixedWidth(windowClass == WindowClass::Large ? 320 : 212);
    m_search->setVisible(narrow);
    // In other windows the docks are visible or in a tab.
    m_docks->setVisible(m_session && windowClass == WindowClass::Compact);
    m_theme->setVisible(!small);
    m_help->setVisible(!small);
}

void TopBar::setDot(bool on) {
    m_bell->setDot(on);
}

// "Last 1:30" while following, else "Range 0:42". The length need not be one of the choices.
void TopBar::refreshRange() {
    const bool whole = m_view->whole(), small = m_windowClass == WindowClass::Small;
    m_range->setCurrentIndex(m_range->findData(whole ? kWholeSession : m_view->span()));
    const double span = m_view->span();
    m_range->setPlaceholderText(span < 10 ? QString::number(span, 'f', 1) + " s"
                                          : clockText(span, 0));
    m_range->setSuffix(whole && m_recorded ? clockText(m_view->now(), 0) : QString());
    m_range->setPrefix(small ? "" : "clock",
                       small || whole        ? ""
                       : m_view->following() ? "Last"
                                             : "Range",
                       !small);
}

void TopBar::refreshMode() {
    refreshRange();
    const bool on = m_view->following() && !m_view->paused();
    m_follow->setChecked(on);
    m_followIcon->setChecked(on);
    m_pause->setChecked(m_view->paused());
    m_pause->setIconName(m_view->paused() ? "play" : "pause");
}

void TopBar::refreshTheme() {
    const bool dark = Theme::get().dark();
    m_theme->setIconName(dark ? "sun" : "moon");
    m_theme->describe(dark ? "Light theme" : "Dark theme", "Ctrl+Shift+L");
}

void TopBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg0));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
