// SPDX-License-Identifier: GPL-3.0-or-later
// The knobs dock, made from the knob table: profile row, groups of controls, and the list of
// changes with their measured effect. GUI thread only.
#pragma once

#include <QWidget>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/workbench/backend/snapshot_view.h"
#include "app/workbench/knobs/knob_control.h"
#include "app/workbench/knobs/knob_history.h"
#include "app/workbench/knobs/profiles.h"

class QLabel;
class QScrollArea;
class QVBoxLayout;

namespace colibri::ui {

class ChangesList;

// The result of applying a config file or a profile.
struct Applied {
    int applied = 0, total = 0;
    QStringList needReload;  // labels of knobs that take effect at the next load
    QStringList outOfRange;  // rejected: "cache size 80 (1..64)"
    QString model;           // of the config, if it is not the loaded one
    QString text() const;    // "1 of 2 applied; context length needs a reload"
};

class KnobsPanel : public QWidget, public SnapshotView {
    Q_OBJECT

public:
    explicit KnobsPanel(QWidget* parent = nullptr);
    void setSource(SessionSource* source);  // nullptr: no model
    void tick(const std::shared_ptr<const Snapshot>& newest) override;
    KnobControl* control(KnobId id) const;
    KnobHistory* history() { return &m_history; }
    void setHeadVisible(bool on);

    // Changes a knob: undo history, engine, display. All changes by the window use it. `final`
    // false: a step of a drag; the whole drag is one change.
    void request(KnobId id, int64_t value, bool final = true);
    void undo();
    void redo();
    void resetAll();

    KnobValues requestedValues() const;
    QString configJson() const;
    bool saveConfig(const QString& path, QString* error) const;
    // nullopt, with the error, if the file cannot be read.
    std::optional<Applied> loadConfig(const QString& path, QString* error);
    Profiles* profiles() { return &m_profiles; }
    void applyProfile(const QString& name);
    void saveProfile(const QString& name);
    void renameProfile(const QString& from, const QString& to);
    QStringList profileDifferences() const;  // "cache size 9, in the profile 12"
    QString commandLine() const;             // of `colibri chat` with the same model and knobs

signals:
    void loadPageWanted();     // to change knobs that are fixed at load
    void saveProfileWanted();  // the window asks for a name
    void renameProfileWanted(const QString& name);
    void applied(const QString& what, const QString& detail);  // only some, or needs a reload
    void exportWanted();
    void importWanted();
    void failed(const QString& what, const QString& why);
    void done(const QString& what, const QString& detail);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    void build();
    void addGroup(const QString& name, const std::vector<const KnobRow*>& rows);
    QWidget* buildHead();
    QWidget* buildProfileRow();
    Applied apply(const KnobValues& values);
    void applyTogether(const KnobStep& changes, bool forward);
    QStringList problemsOf(const KnobRow& row) const;
    void showGroups();
    void updateStates(const Snapshot& snapshot);
    void showState(KnobId id, const KnobState& state);
    void updateHints(const Snapshot& snapshot);
    void showEarlier(KnobControl* knob, const Snapshot& snapshot);
    void updateProfileRow();
    void showMenu();

    SessionSource* m_source = nullptr;
    KnobHistory m_history;
    Profiles m_profiles;
    QWidget* m_head = nullptr;
    QScrollArea* m_scroll;
    QLabel* m_empty = nullptr;
    QLabel* m_dense = nullptr;  // why a dense model has fewer knobs
    std::vector<std::pair<QString, QWidget*>> m_groupWidgets;
    QElapsedTimer m_clock;
    QVBoxLayout* m_groups;
    std::vector<KnobControl*> m_controls;
    std::vector<std::pair<KnobId, QWidget*>> m_atLoad;
    IconButton *m_undo = nullptr, *m_redo = nullptr, *m_reset = nullptr, *m_more = nullptr;
    Select* m_profile = nullptr;
    Button* m_save = nullptr;
    ChangesList* m_changes;
    std::array<std::optional<int64_t>, kKnobCount> m_dragStart;
    std::array<double, kKnobCount> m_requestedAt{};  // session time of the last request, s
    double m_statesAt = -1;                          // Snapshot::knobsAt of the states shown
    bool m_adjusting = false;
};

}  // namespace colibri::ui
