// SPDX-License-Identifier: GPL-3.0-or-later
// The state that plots, marker lanes and figures share: visible time range, following, pause,
// cursor, playhead, and the limit on ITL P99. Times are seconds of the session. GUI thread only.
#pragma once

#include <QObject>
#include <cmath>
#include <limits>

namespace colibri::ui {

class ViewState : public QObject {
    Q_OBJECT

public:
    explicit ViewState(QObject* parent = nullptr) : QObject(parent) {}

    double lower() const { return m_lower; }
    double upper() const { return m_lower + m_span; }
    double span() const { return m_span; }
    double now() const { return m_now; }
    bool following() const { return m_following; }
    bool paused() const { return m_paused; }
    bool whole() const { return m_whole; }  // the whole session is visible, and grows
    // The end of the shown data: now, or the moment of the pause.
    double shownEnd() const { return m_paused ? m_pausedAt : m_now; }
    // The time below the pointer or keyboard cursor, else the playhead. NaN: none.
    double cursor() const { return std::isfinite(m_cursor) ? m_cursor : m_playhead; }
    bool hasCursor() const { return std::isfinite(cursor()); }
    // The time that a recorded session shows; NaN: a live session.
    double playhead() const { return m_playhead; }
    bool hasPlayhead() const { return std::isfinite(m_playhead); }
    double sloMs() const { return m_sloMs; }

    // Advances the clock of the session, and the range while following. The range stops some
    // seconds after `activity`, the time of the newest event, so that the last result can be read.
    void advance(double now, double activity);
    void advance(double now) { advance(now, now); }
    void setSpan(double seconds);  // of the range; keeps following
    void showWhole();              // the whole session; follows
    // Stops following. The range stays within the session.
    void setRange(double lower, double upper);
    void zoom(double factor, double around);
    void pan(double seconds);
    void follow();  // keeps the newest data at the right edge
    void stopFollowing();
    void setPaused(bool on);
    void setCursor(double t);
    void setSlo(double ms);
    // Default span, and follows; the whole of a recorded session.
    void reset();
    void setPlayhead(double t);
    void seek(double t);  // asks the player to go there; does nothing in a live session

    static constexpr double kDefaultSpan = 90;
    static constexpr double kLeastSlo = 1, kMostSlo = 10000;  // ms

signals:
    void rangeChanged();
    void modeChanged();  // following or paused
    void cursorChanged();
    void sloChanged();
    void seekWanted(double t);

private:
    void moveToFollowed();
    double latestLower() const;    // the largest possible lower end
    double followedLower() const;  // the lower end while following

    double m_pausedAt = 0;
    bool m_whole = false;
    double m_lower = 0, m_span = kDefaultSpan, m_now = 0;
    double m_activity = 0;
    double m_cursor = std::numeric_limits<double>::quiet_NaN();
    double m_playhead = std::numeric_limits<double>::quiet_NaN();
    double m_sloMs = 40;
    bool m_following = true, m_paused = false;
};

}  // namespace colibri::ui
