// SPDX-License-Identifier: GPL-3.0-or-later
// Plays a recorded session: the position, the speed, and steps to the turns. It moves the playhead
// of the plots and the time of the source. GUI thread only.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <array>

#include "app/workbench/backend/recorded_source.h"
#include "app/workbench/plots/view_state.h"

namespace colibri::ui {

constexpr std::array<double, 8> kPlayerSpeeds{0.25, 0.5, 1, 2, 4, 8, 16, 32};
constexpr int kNormalSpeed = 2;   // index of 1
QString speedText(double speed);  // "0.25×"

class Player : public QObject {
    Q_OBJECT

public:
    Player(RecordedSource* source, ViewState* view, QObject* parent = nullptr);
    ~Player() override;  // removes the playhead

    RecordedSource* source() const { return m_source; }
    double time() const { return m_time; }
    double duration() const { return m_source->duration(); }
    bool playing() const { return m_playing; }
    int speed() const { return m_speed; }  // index in kPlayerSpeeds
    void setPlaying(bool on);              // at the end it begins again
    void togglePlaying() { setPlaying(!m_playing); }
    void setSpeed(int index);
    void seek(double t);
    void step(double seconds) { seek(m_time + seconds); }
    void stepTurn(int direction);  // to the beginning of the turn before or after
    // Moves by the time since the last call, or by `seconds` of the clock.
    void tick();
    void advance(double seconds);

    static constexpr double kStep = 1;  // seconds of a step

signals:
    void changed();  // time, speed, or whether it plays

private:
    RecordedSource* m_source;
    ViewState* m_view;
    double m_time = 0;
    int m_speed = kNormalSpeed;
    bool m_playing = false;
    QElapsedTimer m_clock;  // since the last tick() while it plays
};

}  // namespace colibri::ui
