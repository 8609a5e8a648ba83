// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/view_state.h"

#include <algorithm>

namespace colibri::ui {
namespace {

constexpr double kMinSpan = 0.5, kMaxSpan = 24 * 3600;

}  // namespace

void ViewState::place() {
    // A session shorter than the range begins at the left edge instead of moving in from the right.
    const double lower = std::max(0.0, m_now - m_span);
    if (lower == m_lower) return;
    m_lower = lower;
    emit rangeChanged();
}

void ViewState::advance(double now) {
    m_now = now;
    if (m_following && !m_paused) place();
}

void ViewState::setSpan(double seconds) {
    seconds = std::clamp(seconds, kMinSpan, kMaxSpan);
    const double right = upper();
    m_span = seconds;
    m_lower = m_following ? std::max(0.0, m_now - m_span) : right - m_span;
    emit rangeChanged();
}

void ViewState::setRange(double lower, double upper) {
    const double span = std::clamp(upper - lower, kMinSpan, kMaxSpan);
    m_span = span;
    m_lower = std::clamp(lower, -span / 2, std::max(0.0, m_now - span / 2));
    stopFollowing();
    emit rangeChanged();
}

void ViewState::zoom(double factor, double around) {
    const double span = std::clamp(m_span * factor, kMinSpan, kMaxSpan);
    const double share = (around - m_lower) / m_span;
    setRange(around - share * span, around + (1 - share) * span);
}

void ViewState::pan(double seconds) { setRange(m_lower + seconds, upper() + seconds); }

void ViewState::follow() {
    const bool was = m_following && !m_paused;
    m_following = true;
    m_paused = false;
    place();
    if (!was) emit modeChanged();
}

void ViewState::stopFollowing() {
    if (!m_following) return;
    m_following = false;
    emit modeChanged();
}

void ViewState::setPaused(bool on) {
    if (on == m_paused) return;
    m_paused = on;
    if (!on && m_following) place();
    emit modeChanged();
}

void ViewState::setCursor(double t) {
    if (t == m_cursor || (!std::isfinite(t) && !std::isfinite(m_cursor))) return;
    m_cursor = t;
    emit cursorChanged();
}

void ViewState::setSlo(double ms) {
    ms = std::clamp(ms, 1.0, 10000.0);
    if (ms == m_sloMs) return;
    m_sloMs = ms;
    emit sloChanged();
}

void ViewState::reset() {
    m_span = kDefaultSpan;
    m_following = true;
    m_paused = false;
    m_lower = std::max(0.0, m_now - m_span);
    emit rangeChanged();
    emit modeChanged();
}

}  // namespace colibri::ui
