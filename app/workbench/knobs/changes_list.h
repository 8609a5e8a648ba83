// SPDX-License-Identifier: GPL-3.0-or-later
// The newest knob changes of the user, with time, measured effect and an Undo button; for a
// recorded session those around its time, with a button that goes there. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

class ChangesList : public QWidget {
    Q_OBJECT

public:
    explicit ChangesList(QWidget* parent = nullptr);
    void setSnapshot(const Snapshot* snapshot);
    int shown() const { return int(m_rows.size()); }
    void setPanelHeight(
        int height);  // px, height of the knobs panel: a short one shows fewer changes

signals:
    void undoWanted(KnobId knob, int64_t value);
    void goToWanted(double t);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    struct Row {
        Marker marker;
        Button* button = nullptr;  // Undo or Go to
    };
    std::vector<Marker> chosen(const Snapshot& snapshot) const;
    void makeRows(const std::vector<Marker>& markers);
    Tone ink(const Marker& marker, Tone tone) const;
    int ownLine(const Marker& marker) const;  // extra px if the change needs a line of its own
    int rowTop(size_t row) const;             // px; row m_rows.size(): the total height
    void layOut();

    std::vector<Row> m_rows;
    size_t m_most = 2;
    bool m_recorded = false;
    double m_now = 0;                            // of a recorded session
    bool m_idle = false, m_paintedIdle = false;  // no request is running, so nothing is measured
};

}  // namespace colibri::ui
