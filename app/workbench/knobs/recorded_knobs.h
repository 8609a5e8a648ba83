// SPDX-License-Identifier: GPL-3.0-or-later
// The knobs of a recorded session at its time: values on read-only tracks, and the list of changes,
// which leads to their times. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/backend/snapshot_view.h"

class QVBoxLayout;

namespace colibri::ui {

class ChangesList;
class PanelHead;
class RecordedKnob;

class RecordedKnobs : public QWidget, public SnapshotView {
    Q_OBJECT

public:
    explicit RecordedKnobs(QWidget* parent = nullptr);
    void setSource(SessionSource* source);  // nullptr: none
    void tick(const std::shared_ptr<const Snapshot>& newest) override;
    QString valueText(KnobId id) const;  // "8 experts / layer", as shown
    ChangesList* changes() const { return m_changes; }

signals:
    void goToWanted(double t);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    void build();

    SessionSource* m_source = nullptr;
    PanelHead* m_head;
    QVBoxLayout* m_groups;
    std::vector<std::pair<QString, QWidget*>> m_groupWidgets;
    std::vector<RecordedKnob*> m_knobs;
    ChangesList* m_changes;
};

}  // namespace colibri::ui
