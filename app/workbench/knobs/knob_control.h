// SPDX-License-Identifier: GPL-3.0-or-later
// One row of the knob table as a control: a slider for numbers, segments or a drop-down for
// choices. Shows the requested value, and the effective one with its reason if they differ. GUI
// thread only.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QWidget>
#include <optional>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/slider_row.h"

class QVBoxLayout;

namespace colibri::ui {

// The slider's range for a knob: limits of the model, logarithmic where the span is wide.
SliderRange knobSliderRange(const KnobRow& row, const KnobLimits& limits, const ModelFacts* model);

class KnobControl : public QWidget {
    Q_OBJECT

public:
    explicit KnobControl(const KnobRow& row, QWidget* parent = nullptr);
    const KnobRow& row() const { return m_row; }
    void setLimits(const KnobLimits& limits, const ModelFacts* model);
    // For each choice why it cannot work here, or "": such a choice is disabled, with the reason in
    // its tooltip and in the note. For a number a single reason why no value has an effect.
    void setProblems(const QStringList& problems);
    void setState(const KnobState& state);
    void setEarlier(const QVector<int64_t>& values, const QStringList& texts);
    void setHint(const QString& hint);  // cost or effect, below the slider
    int64_t shownValue() const;
    SliderRow* sliderRow() const { return m_slider; }
    Segment* segment() const { return m_segment; }
    Select* select() const { return m_select; }
    QString note() const;
    // Reserves lines for a note that changes without user input, so that the knobs below do not
    // move.
    void reserveNote(int lines);
    void focusControl();

signals:
    // While dragging at most 10 times a second; with `final` when the user releases the handle.
    void requested(colibri::KnobId id, int64_t value, bool final);

private:
    void addSlider(QVBoxLayout* column);
    void addChoices(QVBoxLayout* column);
    std::optional<int64_t> parse(const QString& text, QString* error) const;
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
    std::optional<int64_t> m_waiting;  // newest value of a drag, until m_pace runs out
};

}  // namespace colibri::ui
