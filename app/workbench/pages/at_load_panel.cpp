// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/at_load_panel.h"

#include <QGridLayout>
#include <QHBoxLayout>

#include "app/workbench/pages/load_facts.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/base/format.h"
#include "engine/runtime/engine.h"

namespace colibri::ui {
namespace {}  // namespace

AtLoadPanel::AtLoadPanel(QWidget* parent) : QWidget(parent), m_grid(new QGridLayout(this)) {
    m_grid->setContentsMargins(20, 8, 20, 8);
    m_grid->setHorizontalSpacing(40);
    m_grid->setVerticalSpacing(4);
    addSlider(knobRow(KnobId::ExpertCacheSize));
    for (const KnobRow& row : knobTable()) {
        if (row.live) continue;
        row.choices.empty() ? addSlider(row) : addSegment(row);
    }
    layOut();
}

void AtLoadPanel::addSlider(const KnobRow& row) {
    auto* slider = new SliderRow(row.label, row.unit);
    slider->setToolTip(row.help);
    connect(slider, &SliderRow::edited, this,
            [this, id = row.id](int64_t value, bool) { set(id, value); });
    m_controls.push_back({row.id, slider, slider});
}

void AtLoadPanel::addSegment(const KnobRow& row) {
    auto* widget = new QWidget;
    widget->setToolTip(row.help);
    widget->setFixedHeight(32);
    auto* line = new QHBoxLayout(widget);
    line->setContentsMargins(0, 0, 0, 4);
    line->setSpacing(8);
    line->addWidget(new TextLine(row.label, type::body(), Tone::Text1, 18));
    line->addStretch(1);
    auto* note = new TextLine("", type::caption(), Tone::Text3, 14);
    line->addWidget(note);
    QStringList choices;
    for (const char* choice : row.choices) choices << choice;
    if (row.id == KnobId::Device) {
        for (QString& choice : choices) choice = choice.toUpper();
        // The choice is shown although it is not available, with the reason.
        if (!choices.contains("CUDA")) choices << "CUDA";
    }
    auto* segment = new Segment(choices);
    segment->setAccessibleName(row.label);
    for (qsizetype i = qsizetype(row.choices.size()); i < choices.size(); ++i)
        segment->setChoiceEnabled(int(i), false);
    line->addWidget(segment);
    connect(segment, &Segment::chosen, this, [this, id = row.id](int index) { set(id, index); });
    m_controls.push_back({row.id, widget, nullptr, segment, note});
}

void AtLoadPanel::layOut() {
    while (m_grid->count()) delete m_grid->takeAt(0);
    for (int i = 0; i < 2; ++i) m_grid->setColumnStretch(i, i < m_columns ? 1 : 0);
    m_grid->setHorizontalSpacing(m_columns > 1 ? 40 : 0);
    for (qsizetype i = 0; i < m_controls.size(); ++i)
        m_grid->addWidget(m_controls[i].widget, int(i) / m_columns, int(i) % m_columns,
                          Qt::AlignTop);
}

void AtLoadPanel::setColumns(int columns) {
    if (columns == m_columns) return;
    m_columns = columns;
    layOut();
}

void AtLoadPanel::setModel(const ContainerInfo& info, const KnobValues& knobs) {
    m_info = info;
    m_knobs = knobs;
    for (const Control& control : m_controls) {
        const KnobRow& row = knobRow(control.id);
        const KnobLimits limits = knobLimitsFor(control.id, info);
        int64_t value = knobs[size_t(control.id)].value_or(limits.defaultValue);
        value = std::clamp(value, limits.min, std::max(limits.min, limits.max));
        m_knobs[size_t(control.id)] = value;
        if (control.segment) {
            control.segment->setCurrent(int(value));
            continue;
        }
        SliderRange range;
        range.min = limits.min;
        range.max = limits.max;
        range.step = row.step;
        range.defaultValue = limits.defaultValue;
        range.logarithmic = limits.max > 64 * std::max<int64_t>(1, limits.min);
        if (control.id == KnobId::ExpertCacheSize) {
            range.logarithmic = false;
            range.harmfulBelow =
                info.config.topK;  // an LRU cache below one token's experts reuses nothing
        }
        control.slider->setRange(range);
        control.slider->setValue(value);
    }
    refreshNotes();
}

void AtLoadPanel::set(KnobId id, int64_t value) {
    if (m_knobs[size_t(id)] == value) return;
    m_knobs[size_t(id)] = value;
    refreshNotes();
    emit changed();
}

void AtLoadPanel::setLimit(int64_t bytes) {
    m_limit = bytes;
    refreshNotes();
}

void AtLoadPanel::setGpuReason(const QString& reason) {
    m_gpuReason = reason;
    refreshNotes();
}

void AtLoadPanel::refreshNotes() {
    if (m_info.config.numLayers == 0) return;
    const MemoryEstimate estimate = estimateMemory(m_info, loadShape(m_info, m_knobs));
    for (const Control& control : m_controls) {
        if (control.slider) {
            const std::string problem =
                knobProblemFor(control.id, *m_knobs[size_t(control.id)], m_info);
            control.slider->setEnabled(problem.empty());
            control.slider->setNote(problem.empty() ? QString() : "n/a: " + str(problem));
            if (!problem.empty()) continue;
        }
        if (control.id == KnobId::ExpertCacheSize) {
            QString note = sizeText(double(estimate.expertCache)) + ".";
            if (m_limit > 0) {
                const int64_t most = largestCache(m_info, m_knobs, m_limit);
                note += most >= m_info.config.numExperts
                            ? QString(" All experts fit under the limit.")
                        : most > 0 ? QString(" At most %1 fit under the limit.").arg(count(most))
                                   : QString(" No expert fits under the limit.");
            }
            if (*m_knobs[size_t(control.id)] < m_info.config.topK)
                note += QString(" One token uses %1 per layer.").arg(m_info.config.topK);
            control.slider->setNote(note);
        } else if (control.id == KnobId::ContextLength) {
            const int64_t length = std::max<int64_t>(1, *m_knobs[size_t(control.id)]);
            const double each = double(estimate.kvCache) / double(length);
            control.slider->setNote(sizeText(double(estimate.kvCache)) + ", " + sizeText(each) +
                                    " per token.");
        } else if (control.id == KnobId::Device && !m_gpuReason.isEmpty()) {
            control.note->setText("CUDA n/a: " + m_gpuReason);
            control.segment->setChoiceEnabled(1, false, "CUDA n/a: " + m_gpuReason);
        }
    }
}

SliderRow* AtLoadPanel::slider(KnobId id) const {
    for (const Control& control : m_controls)
        if (control.id == id) return control.slider;
    return nullptr;
}

Segment* AtLoadPanel::segment(KnobId id) const {
    for (const Control& control : m_controls)
        if (control.id == id) return control.segment;
    return nullptr;
}

}  // namespace colibri::ui
