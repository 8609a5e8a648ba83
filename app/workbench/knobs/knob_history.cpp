// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/knob_history.h"

namespace colibri::ui {

void KnobHistory::push(const KnobChange& change) {
    if (change.from == change.to) return;
    m_changes.resize(m_at);
    m_changes.push_back(change);
    ++m_at;
    emit changed();
}

KnobChange KnobHistory::undo() {
    const KnobChange change = m_changes[--m_at];
    emit changed();
    return change;
}

KnobChange KnobHistory::redo() {
    const KnobChange change = m_changes[m_at++];
    emit changed();
    return change;
}

void KnobHistory::clear() {
    m_changes.clear();
    m_at = 0;
    emit changed();
}

}  // namespace colibri::ui
