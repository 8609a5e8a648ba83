// SPDX-License-Identifier: GPL-3.0-or-later
// The newest knob changes of the user with time and measured effect, each with Undo.
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
    void setPanelHeight(int height);  // of the panel it stands in: in a short one it shows less

signals:
    void undoWanted(KnobId knob, int64_t value);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    struct Row {
        Marker marker;
        Button* undo = nullptr;
    };
    int ownLine(const Marker& marker) const;  // px more, where the change takes a line
    int rowTop(size_t row) const;             // of m_rows.size(): the height of all
    void place();

    std::vector<Row> m_rows;
    size_t m_most = 2;
    bool m_idle = false, m_paintedIdle = false;  // no request runs: nothing is being measured
};

}  // namespace colibri::ui
