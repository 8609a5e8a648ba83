// SPDX-License-Identifier: GPL-3.0-or-later
// What all plots, lanes and figures share: the visible time range, following, pause, the cursor,
// and the limit on ITL P99. GUI thread only.
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
    bool whole() const { return m_whole; }  // all of the session, growing with it
    // The end of what is shown: now, or the moment of the pause.
    double shownEnd() const { return m_paused ? m_pausedAt : m_now; }
    double cursor() const { return m_cursor; }  // NaN: none
    bool hasCursor() const { return std::isfinite(m_cursor); }
    double sloMs() const { return m_sloMs; }

    // The session's clock: moves the range while following. It stays where it is while nothing
    // happens, so that the last result can be read: `activity` is the newest moment of interest.
    void advance(double now, double activity);
    void advance(double now) { advance(now, now); }
    void setSpan(double seconds);  // length of the range; keeps following
    void showWhole();              // follows
    // Stops following. Kept inside the session: no time before zero, none to come.
    void setRange(double lower, double upper);
    void zoom(double factor, double around);
    void pan(double seconds);
    void follow();  // newest data at the right edge again
    void stopFollowing();
    void setPaused(bool on);
    void setCursor(double t);
    void setSlo(double ms);
    void reset();  // default span, following

    static constexpr double kDefaultSpan = 90;
    static constexpr double kLeastSlo = 1, kMostSlo = 10000;  // ms

signals:
    void rangeChanged();
    void modeChanged();  // following or paused
    void cursorChanged();
    void sloChanged();

private:
    void place();
    double latestLower() const;    // as far as the range can be moved
    double followedLower() const;  // where it is while following

    double m_pausedAt = 0;
    bool m_whole = false;
    double m_lower = 0, m_span = kDefaultSpan, m_now = 0;
    double m_activity = 0;
    double m_cursor = std::numeric_limits<double>::quiet_NaN();
    double m_sloMs = 40;
    bool m_following = true, m_paused = false;
};

}  // namespace colibri::ui
