// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/marker_lane.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/plots/plot_data.h"
#include "profiler/record/effect.h"

namespace colibri::ui {

EffectLook effectLook(const Marker& marker) {
    EffectLook look;
    if (marker.effect == Marker::Effect::Measuring) {
        look.text = marker.settling ? "settling"
                                    : QString("measuring, %1 of %2 tokens").arg(marker.measured)
                                          .arg(marker.needed);
        return look;
    }
    if (marker.effect == Marker::Effect::NotMeasured) {
        look.text = "not measured";
        look.interval = QString::fromStdString(marker.reason);
        return look;
    }
    if (marker.effect != Marker::Effect::Known) return look;
    look.interval = "95 %: " + QString::fromStdString(effectInterval(marker));
    if (marker.low <= 0 && marker.high >= 0) {
        look.text = "no effect";
        return look;
    }
    const bool better = marker.change > 0;
    look.text = QString::fromStdString(effectFigure(marker)) + " tok/s";
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

void MarkerLane::setSnapshot(std::shared_ptr<const Snapshot> snapshot) {
    m_snapshot = std::move(snapshot);
    if (isVisible()) update();
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
            out.push_back({marker.t, m_snapshot->now, QString::fromStdString(marker.label)});
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

std::vector<MarkerLane::Flag> MarkerLane::flags() const {
    std::vector<Flag> out;
    if (!m_snapshot) return out;
    std::vector<Flag> automatic;
    for (const Marker& marker : m_snapshot->markers) {
        if (marker.kind == Marker::Kind::TurnStart || marker.kind == Marker::Kind::TurnEnd) continue;
        if (marker.t < m_view->lower() || marker.t > m_view->upper()) continue;
        Flag flag;
        flag.x = std::round(x(marker.t));
        if (marker.automatic) {
            flag.automatic = true;
            flag.name = "auto";
            flag.detail = clockText(marker.t, 1) + "  " +
                          typographic(QString::fromStdString(marker.label)) + "\nby the engine itself";
            if (!marker.reason.empty()) flag.detail += ", " + QString::fromStdString(marker.reason);
            automatic.push_back(flag);
            continue;
        }
        flag.name = typographic(QString::fromStdString(marker.label));
        flag.look = effectLook(marker);
        flag.effect = flag.look.text;
        flag.detail = clockText(marker.t, 1) + "  " + flag.name;
        if (!flag.effect.isEmpty()) flag.detail += "\n" + flag.effect;
        if (!flag.look.interval.isEmpty()) flag.detail += ", " + flag.look.interval;
        if (!marker.validity.empty()) {
            flag.detail += "\nfrom " + QString::fromStdString(marker.validity);
            if (marker.refining) flag.detail += "; more tokens make it narrower";
        }
        if (m_short) {
            flag.effect = flag.look.figure ? flag.look.text.section(" tok/s", 0, 0) : QString();
        } else if (flag.look.figure) {
            flag.effect += " (" + flag.look.interval + ")";
        }
        out.push_back(flag);
    }
    // From the newest to the oldest: an older flag that would reach into the next gives up its
    // effect first; flags without room for their name share one plate with their number.
    constexpr double kCountWidth = 30;
    std::vector<Flag> shown;
    double limit = width();
    bool counting = false;
    for (size_t i = out.size(); i-- > 0;) {
        Flag& flag = out[i];
        const QFont effectFont = flag.look.figure ? type::monoSmall() : type::caption();
        const double nameWidth = std::ceil(textWidth(type::caption(), flag.name)) + 14;
        double effectWidth = flag.effect.isEmpty()
                                 ? 0 : std::ceil(textWidth(effectFont, flag.effect)) + 10;
        double left = flag.x;
        if (i + 1 == out.size()) {       // the newest stays whole: it moves in from the edge
            left = std::max(0.0, std::min(left, limit - nameWidth - effectWidth - 2));
        } else if (left + nameWidth + effectWidth > limit) {
            effectWidth = 0;
            flag.effect.clear();
        }
        if (i + 1 < out.size() && left + nameWidth > limit) {
            if (!counting) {
                flag.rect = QRectF(limit - kCountWidth, 26, kCountWidth, 18);
                flag.name = "+1";
                limit = flag.rect.left() - 2;
                shown.push_back(flag);
                counting = true;
            } else {
                Flag& plate = shown.back();
                plate.name = QString("+%1").arg(plate.name.mid(1).toInt() + 1);
                plate.detail += "\n" + flag.detail;
            }
            continue;
        }
        counting = false;
        flag.rect = QRectF(left, 26, nameWidth + effectWidth, 18);
        limit = left - 2;
        shown.push_back(flag);
    }
    addAutomatic(shown, std::move(automatic));
    std::sort(shown.begin(), shown.end(),
              [](const Flag& a, const Flag& b) { return a.rect.left() < b.rect.left(); });
    return shown;
}

// What the engine does by itself stands only where the user's changes leave room. Several in one
// place are one tag.
void MarkerLane::addAutomatic(std::vector<Flag>& shown, std::vector<Flag> automatic) const {
    const double tag = std::ceil(textWidth(type::caption(), "auto")) + 10;
    Flag* last = nullptr;
    const size_t users = shown.size();
    shown.reserve(users + automatic.size());
    for (Flag& flag : automatic) {
        if (last && flag.x < last->rect.right() + 2) {
            last->detail += "\n" + flag.detail;
            continue;
        }
        flag.rect = QRectF(std::min(flag.x, width() - tag), 26, tag, 18);
        const bool taken = std::any_of(shown.begin(), shown.begin() + std::ptrdiff_t(users), [&](const Flag& other) {
            return other.rect.adjusted(-2, 0, 2, 0).intersects(flag.rect);
        });
        if (taken) continue;
        shown.push_back(std::move(flag));
        last = &shown.back();
    }
}

void MarkerLane::paintTurns(QPainter& p) {
    const double left = kPlotLeft, right = width() - kPlotRight;
    const std::vector<Turn> all = turns();
    for (size_t i = 0; i < all.size(); ++i) {
        const Turn& turn = all[i];
        const double a = std::max(left, std::round(x(turn.from)));
        const double b = std::min(right, std::round(x(turn.to)));
        if (b < left || a > right || b - a < 1) continue;
        fillBox(p, QRectF(a, 6, b - a, 14), tone(Tone::Bg3), Qt::transparent, 2);
        // Named only where the whole name stands clear of the turn that begins next.
        const double end = i + 1 < all.size() ? std::min(b, std::round(x(all[i + 1].from))) : b;
        const double name = textWidth(type::caption(), turn.name);
        if (end - a >= name + 10)
            drawText(p, QRectF(a + 5, 6, name + 2, 14), Qt::AlignVCenter, turn.name, type::caption(),
                     tone(Tone::Text2));
    }
}

void MarkerLane::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    paintTurns(p);
    if (m_view->hasCursor() && m_view->cursor() >= m_view->lower() &&
        m_view->cursor() <= m_view->upper()) {
        p.fillRect(QRectF(std::round(x(m_view->cursor())), 4, 1, height() - 4), tone(Tone::Accent));
    }
    for (const Flag& flag : flags()) {
        if (flag.automatic) {
            drawText(p, flag.rect, Qt::AlignCenter, flag.name, type::caption(), tone(Tone::Text3));
            p.fillRect(QRectF(flag.x, 42, 1, height() - 43), tone(Tone::Text3));
            continue;
        }
        QPen pen(tone(Tone::Text3), 1, Qt::CustomDashLine, Qt::FlatCap);
        pen.setDashPattern({2, 2});
        p.setPen(pen);
        p.drawLine(QPointF(flag.x + 0.5, 26), QPointF(flag.x + 0.5, height()));
        const QFont effectFont = flag.look.figure ? type::monoSmall() : type::caption();
        const double effectWidth = flag.effect.isEmpty()
                                       ? 0 : std::ceil(textWidth(effectFont, flag.effect)) + 10;
        const QRectF name(flag.rect.left(), 26, flag.rect.width() - effectWidth, 18);
        fillBox(p, name, tone(Tone::Bg2), tone(Tone::Line2), 2);
        drawText(p, name.adjusted(7, 0, 0, 0), Qt::AlignVCenter, flag.name, type::caption(),
                 tone(Tone::Text1));
        if (flag.effect.isEmpty()) continue;
        const QRectF effect(name.right(), 26, effectWidth, 18);
        fillBox(p, effect, tone(flag.look.ground), tone(flag.look.border), 2);
        drawText(p, effect, Qt::AlignCenter, flag.effect, effectFont, tone(flag.look.ink));
    }
}

void MarkerLane::wheelEvent(QWheelEvent* event) {
    const double w = width() - kPlotLeft - kPlotRight;
    const double t = m_view->lower() +
                     (event->position().x() - kPlotLeft) / w * m_view->span();
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
                QToolTip::showText(help->globalPos(), flag.detail, this);
                return true;
            }
        }
        QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

}  // namespace colibri::ui
