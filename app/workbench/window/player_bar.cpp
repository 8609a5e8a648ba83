// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/player_bar.h"

#include <QHBoxLayout>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/tooltip.h"
#include "profiler/metrics/effect.h"

namespace colibri::ui {
namespace {

constexpr int kHeight = 56, kPlayerTrackY = 30, kSide = 8, kPlayerTurnTop = 7, kTurnHigh = 14;
constexpr int kLabelTop = kPlayerTrackY + 10;
constexpr double kPlayerTogether = 12;  // px; changes that are closer are drawn as one

QStringList speedNames() {
    QStringList names;
    for (const double speed : kPlayerSpeeds) names << speedText(speed);
    return names;
}

// "cache 6 → 8": short, since several stand side by side.
QString shortChange(const Marker& marker) {
    const KnobRow& row = knobRow(marker.knob);
    const QString name =
        marker.knob == KnobId::ExpertCacheSize ? "cache" : QString(row.label).toLower();
    return name + " " + str(knobChangeText(marker.knob, marker.from, marker.to));
}

}  // namespace

// ---- Scrubber

Scrubber::Scrubber(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setFixedHeight(kHeight);
    setMinimumWidth(120);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setAccessibleName("Position in the session");
}

void Scrubber::setPlayer(Player* player) {
    m_player = player;
    m_laidOutFor = -1;
    m_dragging = false;
    update();
}

double Scrubber::xOf(double t) const {
    const double length = m_player ? m_player->duration() : 0;
    const double share = length > 0 ? t / length : 0;
    return kSide + share * (width() - 2 * kSide);
}

double Scrubber::timeAt(double x) const {
    if (!m_player || width() <= 2 * kSide) return 0;
    return std::clamp((x - kSide) / (width() - 2 * kSide), 0.0, 1.0) * m_player->duration();
}

// Names of changes are shown where there is room; close ones are counted.
void Scrubber::layOut() {
    if (m_laidOutFor == width()) return;
    m_laidOutFor = width();
    m_changes.clear();
    for (const Marker& marker : m_player->source()->facts().markers) {
        if (marker.kind != Marker::Kind::Knob || marker.automatic) continue;
        const double x = std::round(xOf(marker.t));
        const QString text = shortChange(marker);
        QString detail = clockText(marker.t, 0) + "  " + typographic(str(marker.label));
        if (const EffectLook look = effectLook(marker); !look.text.isEmpty())
            detail += ", " + look.text;
        if (!m_changes.empty() && x - m_changes.back().x < kPlayerTogether) {
            Change& before = m_changes.back();
            before.detail += "\n" + detail;
            before.text = count(before.detail.count('\n') + 1) + " changes";
        } else {
            m_changes.push_back({x, text, detail});
        }
    }
}

void Scrubber::paintTurns(QPainter& p) const {
    const auto& requests = m_player->source()->facts().requests;
    double drawn = -1;  // the right edge of what is drawn, so that thousands of turns stay quick
    for (size_t i = 0; i < requests.size(); ++i) {
        const double a = std::round(xOf(requests[i].admitted));
        const double b = std::max(a + 1, std::round(xOf(requests[i].done)));
        if (b <= drawn) continue;
        fillBox(p, QRectF(a, kPlayerTurnTop, b - a, kTurnHigh), tone(Tone::Bg3), Qt::transparent,
                2);
        drawn = b;
        const QString name = "turn " + count(int64_t(i + 1));
        const double next = i + 1 < requests.size() ? xOf(requests[i + 1].admitted) : width();
        if (std::min(b, next) - a >= textWidth(type::caption(), name) + 10)
            drawText(p, QRectF(a + 6, kPlayerTurnTop, b - a, kTurnHigh), Qt::AlignVCenter, name,
                     type::caption(), tone(Tone::Text2));
    }
}

void Scrubber::paintChanges(QPainter& p) const {
    p.setRenderHint(QPainter::Antialiasing, false);
    QPen pen(tone(Tone::Text3), 1, Qt::CustomDashLine, Qt::FlatCap);
    pen.setDashPattern({2, 2});
    // The ends of the track have their times; a name must not overlap them or the next name.
    const double first = kSide + textWidth(type::monoSmall(), "0:00:00") + 6;
    const double last = width() - kSide - textWidth(type::monoSmall(), "0:00:00") - 6;
    for (size_t i = 0; i < m_changes.size(); ++i) {
        const Change& change = m_changes[i];
        p.setPen(pen);
        p.drawLine(QPointF(change.x + 0.5, kPlayerTurnTop),
                   QPointF(change.x + 0.5, kPlayerTrackY + 5));
        p.setPen(Qt::NoPen);
        p.setBrush(tone(Tone::Text2));
        p.setRenderHint(QPainter::Antialiasing, true);
        p.drawPolygon(QPolygonF({{change.x - 4, double(kPlayerTrackY + 14)},
                                 {change.x + 5, double(kPlayerTrackY + 14)},
                                 {change.x + 0.5, double(kPlayerTrackY + 8)}}));
        p.setRenderHint(QPainter::Antialiasing, false);
        const double w = textWidth(type::caption(), change.text), left = change.x + 9;
        const double next = i + 1 < m_changes.size() ? m_changes[i + 1].x - 6 : last;
        if (left < first || left + w > std::min(next, last)) continue;
        drawText(p, QRectF(left, kLabelTop, w, 14), Qt::AlignVCenter, change.text, type::caption(),
                 tone(Tone::Text2));
    }
}

void Scrubber::paintEvent(QPaintEvent*) {
    if (!m_player) return;
    layOut();
    QPainter p(this);
    paintTurns(p);
    const double left = xOf(0), right = xOf(m_player->duration());
    const double at = std::round(xOf(m_player->time()));
    fillBox(p, QRectF(left, kPlayerTrackY, right - left, 4), tone(Tone::Bg3), Qt::transparent, 2);
    fillBox(p, QRectF(left, kPlayerTrackY, at - left, 4), tone(Tone::Accent), Qt::transparent, 2);
    paintChanges(p);
    const QString end = clockText(m_player->duration(), 0);
    drawText(p, QRectF(left, kLabelTop, 80, 14), Qt::AlignVCenter, clockText(0, 0),
             type::monoSmall(), tone(Tone::Text3));
    drawText(p, QRectF(right - 80, kLabelTop, 80, 14), Qt::AlignVCenter | Qt::AlignRight, end,
             type::monoSmall(), tone(Tone::Text3));
    p.fillRect(QRectF(at, kPlayerTurnTop - 2, 1, kPlayerTrackY - kPlayerTurnTop),
               tone(Tone::Accent));
    const QRectF handle(at - 4, kPlayerTrackY - 6, 9, 16);
    fillBox(p, handle, tone(Tone::Text1), tone(Tone::Bg1), 2, 1.5);
    if (hasFocus()) focusRing(p, handle.adjusted(-4, -4, 4, 4), 4);
}

void Scrubber::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_player) return;
    m_dragging = true;
    m_wasPlaying = m_player->playing();
    m_player->setPlaying(false);  // until the handle is released
    m_player->seek(timeAt(event->position().x()));
}

void Scrubber::mouseMoveEvent(QMouseEvent* event) {
    if (m_dragging && m_player) m_player->seek(timeAt(event->position().x()));
}

void Scrubber::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_dragging) return;
    m_dragging = false;
    if (m_player && m_wasPlaying) m_player->setPlaying(true);
}

void Scrubber::wheelEvent(QWheelEvent* event) {
    if (!m_player || !event->angleDelta().y()) return;
    m_player->step(event->angleDelta().y() > 0 ? -Player::kStep : Player::kStep);
    event->accept();
}

bool Scrubber::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || !m_player) return QWidget::event(event);
    auto* help = static_cast<QHelpEvent*>(event);
    QString text = clockText(timeAt(help->pos().x()), 1);
    for (const Change& change : m_changes)
        if (std::abs(change.x - help->pos().x()) < kPlayerTogether / 2) text = change.detail;
    QToolTip::showText(help->globalPos(),
                       explained(text,
                                 "Left, Right: one second. Shift+Left, Shift+Right: the turn "
                                 "before or after. Home, End: the ends. Space: play."),
                       this);
    return true;
}

// ---- PlayerBar

// The time in large figures, and the length.
class PlayerBar::Position : public QWidget {
public:
    Position() { setFixedHeight(28); }
    void setTimes(double at, double length) {
        const QString now = clockText(at, 1), all = "/ " + clockText(length, 0);
        if (now == m_now && all == m_all) return;
        const bool resized = now.size() != m_now.size() || all != m_all;
        m_now = now;
        m_all = all;
        setAccessibleName("Position " + text());
        if (resized) updateGeometry();
        update();
    }
    QString text() const { return m_now + " " + m_all; }
    QSize sizeHint() const override {
        return {int(std::ceil(textWidth(font(), m_now) + 6 + textWidth(type::monoSmall(), m_all))),
                28};
    }
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        drawSpans(p, rect(),
                  {{m_now, Tone::Text1, font()}, {m_all, Tone::Text3, type::monoSmall()}}, 6);
    }

private:
    static QFont font() { return monoFont(15, QFont::DemiBold); }
    QString m_now, m_all;
};

PlayerBar::PlayerBar(QWidget* parent)
    : QWidget(parent),
      m_before(new IconButton("left", "Turn before", 28)),
      m_next(new IconButton("right", "Next turn", 28)),
      m_play(new Button("")),
      m_position(new Position),
      m_speed(new Segment(speedNames())),
      m_speedList(new Select),
      m_scrubber(new Scrubber),
      m_export(new Button("Export", Button::Kind::Default, Button::Size::Dense)),
      m_close(new Button("Close session", Button::Kind::Default, Button::Size::Dense)) {
    setFixedHeight(kHeight);
    setAccessibleName("Player");
    m_before->describe("Turn before", "Shift+Left");
    m_next->describe("Next turn", "Shift+Right");
    m_play->setFixedSize(36, 28);
    m_play->setPadding(10);
    m_play->setCheckable(true);
    m_export->setIconName("save");
    m_export->setToolTip("Export this session as a trace, as series or as a report");
    m_close->setToolTip("Back to the live window; the file stays as it is");
    m_speed->setMono(true);
    m_speed->setAccessibleName("Speed");
    m_speed->setToolTip("Speed  (+ and −)");
    m_speedList->addItems(speedNames());
    m_speedList->setAccessibleName("Speed");
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(10, 0, 12, 1);
    line->setSpacing(4);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_before, m_play, m_next})
        line->addWidget(widget);
    line->addSpacing(6);
    line->addWidget(m_position);
    line->addSpacing(10);
    line->addWidget(m_speed);
    line->addWidget(m_speedList);
    line->addSpacing(8);
    line->addWidget(m_scrubber, 1);
    line->addSpacing(12);
    line->addWidget(m_export);
    line->addWidget(m_close);
    connect(m_before, &QAbstractButton::clicked, this, [this] { m_player->stepTurn(-1); });
    connect(m_next, &QAbstractButton::clicked, this, [this] { m_player->stepTurn(1); });
    connect(m_play, &QAbstractButton::clicked, this, [this] { m_player->togglePlaying(); });
    connect(m_speed, &Segment::chosen, this, [this](int i) { m_player->setSpeed(i); });
    connect(m_speedList, &QComboBox::activated, this, [this](int i) { m_player->setSpeed(i); });
    connect(m_export, &QAbstractButton::clicked, this, &PlayerBar::exportWanted);
    connect(m_close, &QAbstractButton::clicked, this, &PlayerBar::closeWanted);
    // The keys of the player work while a button of the bar has the focus.
    for (QWidget* widget :
         std::initializer_list<QWidget*>{m_before, m_play, m_next, m_export, m_close})
        widget->installEventFilter(this);
    hide();
}

void PlayerBar::setPlayer(Player* player) {
    m_player = player;
    m_scrubber->setPlayer(player);
    setVisible(player != nullptr);
    if (!player) return;
    connect(player, &Player::changed, this, &PlayerBar::refresh);
    refresh();
}

void PlayerBar::setWindowClass(WindowClass windowClass) {
    m_narrow = windowClass <= WindowClass::Compact;
    m_speed->setVisible(!m_narrow);
    m_speedList->setVisible(m_narrow);
    m_export->setVisible(!m_narrow);
    m_close->setVisible(!m_narrow);
}

QString PlayerBar::positionText() const {
    return m_position->text();
}

void PlayerBar::refresh() {
    if (!m_player) return;
    m_position->setTimes(m_player->time(), m_player->duration());
    m_play->setIconName(m_player->playing() ? "pause" : "play");
    m_play->setChecked(m_player->playing());
    const QString name = m_player->playing() ? "Pause" : "Play";
    m_play->setAccessibleName(name);
    m_play->setToolTip(name + "  (Space)");
    m_speed->setCurrent(m_player->speed());
    m_speedList->setCurrentIndex(m_player->speed());
    m_scrubber->update();
}

bool PlayerBar::handleKey(const QKeyEvent* event) {
    if (!m_player || event->modifiers() & (Qt::ControlModifier | Qt::AltModifier)) return false;
    const bool shift = event->modifiers() & Qt::ShiftModifier;
    switch (event->key()) {
        case Qt::Key_Space:
            m_player->togglePlaying();
            return true;
        case Qt::Key_Left:
            shift ? m_player->stepTurn(-1) : m_player->step(-Player::kStep);
            return true;
        case Qt::Key_Right:
            shift ? m_player->stepTurn(1) : m_player->step(Player::kStep);
            return true;
        case Qt::Key_Home:
            m_player->seek(0);
            return true;
        case Qt::Key_End:
            m_player->seek(m_player->duration());
            return true;
        case Qt::Key_Plus:
        case Qt::Key_Equal:
            m_player->setSpeed(m_player->speed() + 1);
            return true;
        case Qt::Key_Minus:
            m_player->setSpeed(m_player->speed() - 1);
            return true;
        default:
            return false;
    }
}

void PlayerBar::keyPressEvent(QKeyEvent* event) {
    if (!handleKey(event)) QWidget::keyPressEvent(event);
}

// Buttons use the arrows to move the focus, and Space to click.
bool PlayerBar::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() != Qt::Key_Space && handleKey(key)) return true;
    }
    return QWidget::eventFilter(object, event);
}

void PlayerBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
