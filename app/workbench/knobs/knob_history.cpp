// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/knob_history.h"

#include "profiler/metrics/knob_changes.h"

namespace colibri::ui {

void KnobHistory::push(const KnobChange& change, double seconds, bool joins) {
    const bool close = seconds - m_lastStep < kSameChangeSeconds;
    m_lastStep = seconds;
    const bool further = joins && close && m_at > 0 && m_at == m_steps.size() &&
                         m_steps.back().size() == 1 && m_steps.back()[0].knob == change.knob;
    if (!further) return pushTogether({change});
    m_steps.back()[0].to = change.to;
    if (m_steps.back()[0].from == change.to) {
        m_steps.pop_back();
        --m_at;
    }
    emit changed();
}

void KnobHistory::pushTogether(KnobStep changes) {
    std::erase_if(changes, [](const KnobChange& change) { return change.from == change.to; });
    if (changes.empty()) return;
    m_steps.resize(m_at);
    m_steps.push_back(std::move(changes));
    ++m_at;
    emit changed();
}

KnobStep KnobHistory::undo() {
    const KnobStep changes = m_steps[--m_at];
    m_lastStep = -1e9;  // the next change is not combined with it
    emit changed();
    return changes;
}

KnobStep KnobHistory::redo() {
    const KnobStep changes = m_steps[m_at++];
    m_lastStep = -1e9;
    emit changed();
    return changes;
}

void KnobHistory::clear() {
    m_steps.clear();
    m_at = 0;
    emit changed();
}

}  // namespace colibri::ui
