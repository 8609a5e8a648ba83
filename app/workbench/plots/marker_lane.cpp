// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/marker_lane.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/widgets/tooltip.h"
#include "profiler/metrics/effect.h"

namespace colibri::ui {
namespace {

constexpr int kTurnTop = 6, kTurnHeight = 14, kFlagTop = 26, kFlagHeight = 18;
constexpr double kCountWidth = 26;  // px, of the plate of several flags: "+3"

}  // namespace

EffectLook effectLook(const Marker& marker) {
    EffectLook look;
    if (marker.effect == Marker::Effect::Measuring) {
        look.text =
            marker.settling
                ? "settling"
                : QString("measuring, %1 of %2 tokens").arg(marker.measured).arg(marker.needed);
        return look;
    }
    if (marker.effect == Marker::Effect::NotMeasured) {
        look.text = "not measured";
        look.interval = str(marker.reason);
        return look;
    }
    if (marker.effect != Marker::Effect::Known) return look;
    look.interval = "95 %: " + str(effectInterval(marker));
    if (marker.low <= 0 && marker.high >= 0) {
        look.text = "no effect";
        return look;
    }
    const bool better = marker.change > 0;
    look.text = str(effectFigure(marker)) + " tok/s";
    look.ink = look.border = better ? Tone::Ok : Tone::Error;
    look.ground = better ? Tone::OkBg : Tone::ErrorBg;
    look.figure = true;
    return look;
}

MarkerLane::MarkerLane(ViewState* view, QWidget* parent) : QWidget(parent), m_view(view) {
    setFixedHeight(48);
    setMouseTracking(true);
    setAccessibleName("Turns and changes");
}

void MarkerLane::setSnapshot(std::shared_ptr<const Snapshot> snapshot, bool moved) {
    // The bar of a running turn grows. If the range moved, the panel calls this with `moved`.
    const bool same = m_snapshot && snapshot && snapshot->running == 0 && !moved &&
                      sameMarkers(m_snapshot->markers, snapshot->markers);
    m_snapshot = std::move(snapshot);
    if (isVisible() && !same) update();
}

void MarkerLane::setShort(bool on) {
    m_short = on;
    update();
}

double MarkerLane::x(double t) const {
    const double w = width() - kPlotLeft - kPlotRight;
    return kPlotLeft + (t - m_view->lower()) / m_view->span() * w;
}

std::vector<MarkerLane::Turn> MarkerLane::turns() const {
    std::vector<Turn> out;
    if (!m_snapshot) return out;
    std::vector<uint64_t> requests;
    for (const Marker& marker : m_snapshot->markers) {
        if (marker.kind == Marker::Kind::TurnStart) {
            out.push_back({marker.t, m_snapshot->now, str(marker.label)});
            requests.push_back(marker.request);
        } else if (marker.kind == Marker::Kind::TurnEnd) {
            for (size_t i = requests.size(); i-- > 0;)
                if (requests[i] == marker.request) {
                    out[i].to = marker.t;
                    break;
                }
        }
    }
    return out;
}

std::optional<std::pair<double, double>> MarkerLane::lastTurn() const {
    const std::vector<Turn> all = turns();
    if (all.empty()) return std::nullopt;
    return std::pair(all.back().from, all.back().to);
}

std::vector<MarkerLane::Flag> MarkerLane::flags() const {
    if (!m_snapshot) return {};
    std::vector<Flag> users, automatic;
    for (const Marker& marker : m_snapshot->markers) {
        if (marker.kind == Marker::Kind::TurnStart || marker.kind == Marker::Kind::TurnEnd)
            continue;
        if (marker.t < m_view->lower() || marker.t > m_view->upper()) continue;
        Flag flag;
        flag.x = std::round(x(marker.t));
        flag.name = typographic(str(marker.label));
        flag.detail = clockText(marker.t, 1) + "  " + flag.name;
        if (marker.automatic) {
            flag.automatic = true;
            flag.name = "auto";
            flag.detail += "\nby the engine itself";
            if (!marker.reason.empty()) flag.detail += ", " + str(marker.reason);
            automatic.push_back(flag);
            continue;
        }
        flag.look = effectLook(marker);
        flag.effect = flag.look.text;
        if (!flag.effect.isEmpty()) flag.detail += "\n" + flag.effect;
        if (!flag.look.interval.isEmpty()) flag.detail += ", " + flag.look.interval;
        if (!marker.validity.empty()) {
            flag.detail += "\nfrom " + str(marker.validity);
            if (marker.refining) flag.detail += "; more tokens will narrow the interval";
        }
        if (m_short) {
            flag.effect = flag.look.figure ? flag.look.text.section(" tok/s", 0, 0) : QString();
        } else if (flag.look.figure) {
            flag.effect += " (" + flag.look.interval + ")";
        }
        users.push_back(flag);
    }
    std::vector<Flag> shown = layOutFlags(std::move(users));
    for (Flag& flag : layOutAutomatic(std::move(automatic))) shown.push_back(std::move(flag));
    std::sort(shown.begin(), shown.end(),
              [](const Flag& a, const Flag& b) { return a.rect.left() < b.rect.left(); });
    return shown;
}

// From the newest to the oldest: a flag that would overlap the next one loses its effect first,
// then its name. Flags without room for a plate share one with their number.
std::vector<MarkerLane::Flag> MarkerLane::layOutFlags(std::vector<Flag> users) const {
    std::vector<Flag> shown;
    double limit = width();
    Flag* several = nullptr;  // the last plate with a number; further flags may join it
    shown.reserve(users.size());
    for (size_t i = users.size(); i-- > 0;) {
        Flag& flag = users[i];
        const bool newest = i + 1 == users.size();
        const QFont effectFont = flag.look.figure ? type::monoSmall() : type::caption();
        const double nameWidth = std::ceil(textWidth(type::caption(), flag.name)) + 14;
        double effectWidth =
            flag.effect.isEmpty() ? 0 : std::ceil(textWidth(effectFont, flag.effect)) + 10;
        double left = flag.x;
        if (newest) {  // the newest one is always complete, so it moves in from the edge
            left = std::max(0.0, std::min(left, limit - nameWidth - effectWidth - 2));
        } else if (left + nameWidth + effectWidth > limit) {
            effectWidth = 0;
            flag.effect.clear();
        }
        double width = nameWidth + effectWidth;
        if (!newest && left + nameWidth > limit) {
            if (several && left + kCountWidth > several->rect.left()) {
                several->name = QString("+%1").arg(several->name.mid(1).toInt() + 1);
                several->detail = flag.detail + "\n" + several->detail;
                several->x = flag.x;
                continue;
            }
            flag.name = "+1";
            width = kCountWidth;
            left = std::min(left, limit - kCountWidth);
        }
        flag.rect = QRectF(left, kFlagTop, width, kFlagHeight);
        limit = left - 2;
        const bool counted = flag.name == "+1";
        shown.push_back(std::move(flag));
        several = counted ? &shown.back() : nullptr;
    }
    return shown;
}

// In the row of the turns, so that they take no room from changes by the user. Tags that overlap
// are merged.
std::vector<MarkerLane::Flag> MarkerLane::layOutAutomatic(std::vector<Flag> automatic) const {
    const double tag = std::ceil(textWidth(type::caption(), "auto")) + 8;
    std::vector<Flag> shown;
    for (Flag& flag : automatic) {
        if (!shown.empty() && flag.x < shown.back().rect.right() + 2) {
            shown.back().detail += "\n" + flag.detail;
            continue;
        }
        flag.rect = QRectF(std::min(flag.x, width() - tag), kTurnTop, tag, kTurnHeight);
        shown.push_back(std::move(flag));
    }
    return shown;
}

void MarkerLane::paintTurns(QPainter& p) const {
    const double left = kPlotLeft, right = width() - kPlotRight;
    const std::vector<Turn> all = turns();
    for (size_t i = 0; i < all.size(); ++i) {
        const Turn& turn = all[i];
        const double a = std::max(left, std::round(x(turn.from)));
        const double b = std::min(right, std::round(x(turn.to)));
        if (b < left || a > right || b - a < 1) continue;
        fillBox(p, QRectF(a, kTurnTop, b - a, kTurnHeight), tone(Tone::Bg3), Qt::transparent, 2);
        // With its name only if that does not overlap the next turn.
        const double end = i + 1 < all.size() ? std::min(b, std::round(x(all[i + 1].from))) : b;
        const double name = textWidth(type::caption(), turn.name);
        if (end - a >= name + 10)
            drawText(p, QRectF(a + 5, kTurnTop, name + 2, kTurnHeight), Qt::AlignVCenter, turn.name,
                     type::caption(), tone(Tone::Text2));
    }
}

void MarkerLane::paintEvent(QPaintEvent*) {
    QPainter p(this);
    paint(p, m_view->hasCursor());
}

void MarkerLane::paint(QPainter& p, bool cursor) const {
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    paintTurns(p);
    if (cursor && m_view->cursor() >= m_view->lower() && m_view->cursor() <= m_view->upper()) {
        p.fillRect(QRectF(std::round(x(m_view->cursor())), 4, 1, height() - 4), tone(Tone::Accent));
    }
    const std::vector<Flag> all = flags();
    for (const Flag& flag : all) {  // lines first, so that none crosses a plate
        QPen pen(tone(flag.automatic ? Tone::Line2 : Tone::Text3), 1, Qt::CustomDashLine,
                 Qt::FlatCap);
        pen.setDashPattern(flag.automatic ? QVector<qreal>{1, 3} : QVector<qreal>{2, 2});
        p.setPen(pen);
        const double top = flag.automatic ? kTurnTop + kTurnHeight : kFlagTop;
        p.drawLine(QPointF(flag.x + 0.5, top), QPointF(flag.x + 0.5, height()));
    }
    for (const Flag& flag : all) {
        if (flag.automatic) {
            fillBox(p, flag.rect, tone(Tone::Bg1), tone(Tone::Line2), 2);
            drawText(p, flag.rect, Qt::AlignCenter, flag.name, type::caption(), tone(Tone::Text3));
            continue;
        }
        const QFont effectFont = flag.look.figure ? type::monoSmall() : type::caption();
        const double effectWidth =
            flag.effect.isEmpty() ? 0 : std::ceil(textWidth(effectFont, flag.effect)) + 10;
        const QRectF name(flag.rect.left(), kFlagTop, flag.rect.width() - effectWidth, kFlagHeight);
        fillBox(p, name, tone(Tone::Bg2), tone(Tone::Line2), 2);
        drawText(p, name.adjusted(7, 0, 0, 0), Qt::AlignVCenter, flag.name, type::caption(),
                 tone(Tone::Text1));
        if (flag.effect.isEmpty()) continue;
        const QRectF effect(name.right(), kFlagTop, effectWidth, kFlagHeight);
        fillBox(p, effect, tone(flag.look.ground), tone(flag.look.border), 2);
        drawText(p, effect, Qt::AlignCenter, flag.effect, effectFont, tone(flag.look.ink));
    }
}

void MarkerLane::wheelEvent(QWheelEvent* event) {
    const double w = width() - kPlotLeft - kPlotRight;
    const double t = m_view->lower() + (event->position().x() - kPlotLeft) / w * m_view->span();
    if (event->angleDelta().y()) m_view->zoom(std::pow(0.85, event->angleDelta().y() / 120.0), t);
}

void MarkerLane::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || event->position().y() > 22) return;
    for (const Turn& turn : turns()) {
        if (event->position().x() >= x(turn.from) && event->position().x() <= x(turn.to)) {
            emit turnClicked(turn.from, turn.to);
            return;
        }
    }
}

bool MarkerLane::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        for (const Flag& flag : flags()) {
            if (flag.rect.contains(help->pos())) {
                QToolTip::showText(
                    help->globalPos(),
                    explained(flag.detail.section('\n', 0, 0), flag.detail.section('\n', 1)), this);
                return true;
            }
        }
        QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

}  // namespace colibri::ui
