// SPDX-License-Identifier: GPL-3.0-or-later
// Undo and redo of knob changes. A drag is one change: begin() remembers the value it started at.
#pragma once

#include <QObject>
#include <cstdint>
#include <vector>

#include "engine/knobs/knobs.h"

namespace colibri::ui {

struct KnobChange {
    KnobId knob = KnobId::Count;
    int64_t from = 0, to = 0;
};

class KnobHistory : public QObject {
    Q_OBJECT

public:
    explicit KnobHistory(QObject* parent = nullptr) : QObject(parent) {}
    void push(const KnobChange& change);          // no-op when from == to
    bool canUndo() const { return m_at > 0; }
    bool canRedo() const { return m_at < m_changes.size(); }
    const KnobChange* next() const { return canUndo() ? &m_changes[m_at - 1] : nullptr; }
    const KnobChange* nextRedo() const { return canRedo() ? &m_changes[m_at] : nullptr; }
    KnobChange undo();                            // REQUIRES: canUndo()
    KnobChange redo();                            // REQUIRES: canRedo()
    void clear();

signals:
    void changed();

private:
    std::vector<KnobChange> m_changes;
    size_t m_at = 0;                              // changes before this are in force
};

}  // namespace colibri::ui
