// SPDX-License-Identifier: GPL-3.0-or-later
// Undo and redo of knob changes, in the grain of the list of changes: a drag is one change, and so
// are steps of one knob that follow each other within kSameChangeSeconds. What was applied together
// (a reset, a profile, a config file) is one step of undo.
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
    // A change at `seconds` of any steady clock. `joins`: it may be a further step of the one
    // before; a drag never is. A change that ends where it began is none.
    void push(const KnobChange& change, double seconds, bool joins);
    void pushTogether(KnobStep changes);  // those that change nothing are left out
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
    size_t m_at = 0;           // steps before this are in force
    double m_lastStep = -1e9;  // seconds of the newest change
};

}  // namespace colibri::ui
