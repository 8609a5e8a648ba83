// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/view_state.h"

#include <algorithm>
#include <utility>

namespace colibri::ui {
namespace {

constexpr double kMinSpan = 0.5, kMaxSpan = 24 * 3600, kLeastWhole = 10;
constexpr double kIdleTail = 2;  // seconds shown after the newest event

}  // namespace

// A session shorter than the range begins at the left edge instead of moving in from the right.
double ViewState::latestLower() const {
    return std::max(0.0, shownEnd() - m_span);
}

double ViewState::followedLower() const {
    const double end = m_whole ? shownEnd() : std::min(shownEnd(), m_activity + kIdleTail);
    return std::max(0.0, end - m_span);
}

void ViewState::moveToFollowed() {
    const double span = m_whole ? std::clamp(m_now, kLeastWhole, kMaxSpan) : m_span;
    const bool resized = std::exchange(m_span, span) != span;
    const double lower = followedLower();
    if (std::exchange(m_lower, lower) == lower && !resized) return;
    emit rangeChanged();
}

void ViewState::advance(double now, double activity) {
    m_now = now;
    m_activity = activity;
    if (m_following && !m_paused) moveToFollowed();
}

void ViewState::setSpan(double seconds) {
    const double right = upper();
    m_whole = false;
    m_span = std::clamp(seconds, kMinSpan, kMaxSpan);
    m_lower = m_following ? followedLower() : std::clamp(right - m_span, 0.0, latestLower());
    emit rangeChanged();
}

void ViewState::showWhole() {
    m_whole = true;
    follow();
    emit rangeChanged();
}

void ViewState::setRange(double lower, double upper) {
    const double longest = std::min(kMaxSpan, std::max({m_span, kDefaultSpan, m_now}));
    m_whole = false;
    m_span = std::clamp(upper - lower, kMinSpan, longest);
    m_lower = std::clamp(lower, 0.0, latestLower());
    stopFollowing();
    emit rangeChanged();
}

void ViewState::zoom(double factor, double around) {
    const double span = std::clamp(m_span * factor, kMinSpan, kMaxSpan);
    const double share = (around - m_lower) / m_span;
    setRange(around - share * span, around + (1 - share) * span);
}

void ViewState::pan(double seconds) {
    setRange(m_lower + seconds, upper() + seconds);
}

void ViewState::follow() {
    const bool was = m_following && !m_paused;
    m_following = true;
    m_paused = false;
    moveToFollowed();
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
    m_pausedAt = m_now;
    if (!on && m_following) moveToFollowed();
    emit modeChanged();
}

void ViewState::setCursor(double t) {
    if (t == m_cursor || (!std::isfinite(t) && !std::isfinite(m_cursor))) return;
    m_cursor = t;
    emit cursorChanged();
}

void ViewState::setPlayhead(double t) {
    if (t == m_playhead || (!std::isfinite(t) && !hasPlayhead())) return;
    m_playhead = t;
    emit cursorChanged();
}

void ViewState::seek(double t) {
    if (hasPlayhead()) emit seekWanted(std::clamp(t, 0.0, m_now));
}

void ViewState::setSlo(double ms) {
    ms = std::clamp(ms, kLeastSlo, kMostSlo);
    if (ms == m_sloMs) return;
    m_sloMs = ms;
    emit sloChanged();
}

void ViewState::reset() {
    m_whole = hasPlayhead();
    m_span = m_whole ? std::clamp(m_now, kLeastWhole, kMaxSpan) : kDefaultSpan;
    m_following = true;
    m_paused = false;
    m_lower = followedLower();
    emit rangeChanged();
    emit modeChanged();
}

}  // namespace colibri::ui
