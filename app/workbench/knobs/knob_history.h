// SPDX-License-Identifier: GPL-3.0-or-later
// Undo and redo of knob changes, with the steps of the list of changes: a drag is one change, as
// are steps of one knob within kSameChangeSeconds. Changes that are applied together (reset,
// profile, config file) are one step. GUI thread only.
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
using KnobStep = std::vector<KnobChange>;  // applied together; not empty

class KnobHistory : public QObject {
    Q_OBJECT

public:
    explicit KnobHistory(QObject* parent = nullptr) : QObject(parent) {}
    // Adds a change at `seconds` of any steady clock. `joins`: it may be combined with the previous
    // one; a drag never is. A change without a difference is ignored.
    void push(const KnobChange& change, double seconds, bool joins);
    void pushTogether(KnobStep changes);  // changes without a difference are ignored
    bool canUndo() const { return m_at > 0; }
    bool canRedo() const { return m_at < m_steps.size(); }
    const KnobStep* next() const { return canUndo() ? &m_steps[m_at - 1] : nullptr; }
    KnobStep undo();  // REQUIRES: canUndo()
    KnobStep redo();  // REQUIRES: canRedo()
    void clear();

signals:
    void changed();

private:
    std::vector<KnobStep> m_steps;
    size_t m_at = 0;           // number of steps that are effective
    double m_lastStep = -1e9;  // seconds of the newest change
};

}  // namespace colibri::ui
