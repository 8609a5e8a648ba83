// SPDX-License-Identifier: GPL-3.0-or-later
// One row of the knob table as a control: a slider for numbers, segments or a drop-down for
// choices. Shows the request, and the effective value with its reason where the two differ.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/slider_row.h"

namespace colibri::ui {

// The slider's range for a knob: limits of the model, logarithmic where the span is wide.
SliderRange knobSliderRange(const KnobRow& row, const KnobLimits& limits, const ModelFacts* model);

class KnobControl : public QWidget {
    Q_OBJECT

public:
    explicit KnobControl(const KnobRow& row, QWidget* parent = nullptr);
    const KnobRow& row() const { return m_row; }
    void setLimits(const KnobLimits& limits, const ModelFacts* model);
    // Why each choice cannot work here, "" where it can: such a choice is greyed, its reason is in
    // its tooltip and in the note. Of a number one reason, why no value would change anything.
    void setProblems(const QStringList& problems);
    void setState(const KnobState& state);
    void setEarlier(const QVector<int64_t>& values, const QStringList& texts);
    void setHint(const QString& hint);  // cost or effect, below the slider
    int64_t shownValue() const;
    SliderRow* sliderRow() const { return m_slider; }
    Segment* segment() const { return m_segment; }
    Select* select() const { return m_select; }
    QString note() const;
    // Lines kept under a knob whose note the engine changes by itself, so that the knobs below stay
    // where they are.
    void reserveNote(int lines);
    void focusControl();

signals:
    // Live while dragging, at most 10 times a second; final when the user lets go.
    void requested(int64_t value, bool final);

private:
    void edited(int64_t value, bool final);
    void updateNote();
    QString problemText() const;

    const KnobRow& m_row;
    SliderRow* m_slider = nullptr;
    Segment* m_segment = nullptr;
    Select* m_select = nullptr;
    Note* m_note = nullptr;
    KnobLimits m_limits;
    KnobState m_state;
    QString m_hint;
    QStringList m_problems;
    bool m_reservesNote = false;
    QTimer m_pace;
    std::optional<int64_t> m_waiting;  // value to apply when the pace allows
};

}  // namespace colibri::ui
