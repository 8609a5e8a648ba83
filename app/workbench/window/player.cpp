// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/player.h"

#include <algorithm>
#include <limits>

namespace colibri::ui {
namespace {

constexpr double kAtTurn = 0.5;     // seconds; a step back from so near goes to the turn before
constexpr double kLongestTick = 1;  // seconds of the clock; after a longer pause it continues there
constexpr double kPageMargin = 0.1;  // of the range, before the playhead after it left the range

}  // namespace

QString speedText(double speed) {
    return QString::number(speed) + "×";
}

Player::Player(RecordedSource* source, ViewState* view, QObject* parent)
    : QObject(parent), m_source(source), m_view(view) {
    m_view->setPlayhead(0);
    connect(m_view, &ViewState::seekWanted, this, &Player::seek);
}

Player::~Player() {
    m_view->setPlayhead(std::numeric_limits<double>::quiet_NaN());
}

void Player::setPlaying(bool on) {
    if (on == m_playing) return;
    if (on && m_time >= duration()) seek(0);
    m_playing = on;
    m_clock.start();
    emit changed();
}

void Player::setSpeed(int index) {
    index = std::clamp(index, 0, int(kPlayerSpeeds.size()) - 1);
    if (index == m_speed) return;
    m_speed = index;
    emit changed();
}

void Player::seek(double t) {
    t = std::clamp(t, 0.0, duration());
    if (t == m_time) return;
    const bool visible = m_time >= m_view->lower() && m_time <= m_view->upper();
    m_time = t;
    m_source->setTime(t);
    m_view->setPlayhead(t);
    // The range follows a playhead that leaves it; a range elsewhere stays where the user put it.
    if (visible && (t < m_view->lower() || t > m_view->upper())) {
        const double span = m_view->span(), lower = t - kPageMargin * span;
        m_view->setRange(lower, lower + span);
    }
    emit changed();
}

void Player::stepTurn(int direction) {
    const auto& requests = m_source->facts().requests;
    if (direction > 0) {
        for (const RecordedRequest& request : requests)
            if (request.admitted > m_time + 1e-3) return seek(request.admitted);
        return seek(duration());
    }
    for (auto it = requests.rbegin(); it != requests.rend(); ++it)
        if (it->admitted < m_time - kAtTurn) return seek(it->admitted);
    seek(0);
}

void Player::tick() {
    if (!m_playing) return;
    const double seconds = double(m_clock.restart()) / 1e3;
    advance(std::min(seconds, kLongestTick));
}

void Player::advance(double seconds) {
    if (!m_playing) return;
    const double to = m_time + seconds * kPlayerSpeeds[size_t(m_speed)];
    if (to >= duration()) m_playing = false;
    seek(to);
    if (!m_playing) emit changed();
}

}  // namespace colibri::ui
