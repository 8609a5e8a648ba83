// SPDX-License-Identifier: GPL-3.0-or-later
// The strip below the top bar while a recorded session is shown: turn before, play, next turn,
// position, speed, scrubber, Export, Close session. GUI thread only.
#pragma once

#include <QWidget>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/window_class.h"
#include "app/workbench/window/player.h"

namespace colibri::ui {

// The track of a session with its turns and knob changes. Mouse: click or drag. Keys: those of
// PlayerBar.
class Scrubber : public QWidget {
    Q_OBJECT

public:
    explicit Scrubber(QWidget* parent = nullptr);
    void setPlayer(Player* player);  // nullptr: none
    double xOf(double t) const;      // px
    QSize sizeHint() const override { return {400, 56}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mouseReleaseEvent(QMouseEvent*) override;
    void wheelEvent(QWheelEvent*) override;
    bool event(QEvent*) override;

private:
    struct Change {  // knob changes that are drawn as one
        double x;
        QString text, detail;
    };
    double timeAt(double x) const;
    void layOut();
    void paintTurns(QPainter& p) const;
    void paintChanges(QPainter& p) const;

    Player* m_player = nullptr;
    bool m_dragging = false, m_wasPlaying = false;
    std::vector<Change> m_changes;
    int m_laidOutFor = -1;  // width of m_changes
};

class PlayerBar : public QWidget {
    Q_OBJECT

public:
    explicit PlayerBar(QWidget* parent = nullptr);
    void setPlayer(Player* player);  // nullptr: none, and the bar is hidden
    void setWindowClass(WindowClass windowClass);
    Scrubber* scrubber() const { return m_scrubber; }
    Button* playButton() const { return m_play; }
    Segment* speed() const { return m_speed; }
    Button* exportButton() const { return m_export; }
    Button* closeButton() const { return m_close; }
    QString positionText() const;  // "01:52.4 / 03:00"
    // Handles a key of the player: Space, arrows, Home, End, + and -. False: another key.
    bool handleKey(const QKeyEvent* event);

signals:
    void exportWanted();
    void closeWanted();

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    class Position;
    void refresh();

    Player* m_player = nullptr;
    IconButton *m_before, *m_next;
    Button* m_play;
    Position* m_position;
    Segment* m_speed;
    Select* m_speedList;  // in a narrow window
    Scrubber* m_scrubber;
    Button *m_export, *m_close;
    bool m_narrow = false;
};

}  // namespace colibri::ui
