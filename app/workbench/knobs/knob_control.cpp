// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/knobs/knob_control.h"

#include <QAbstractItemView>
#include <QLabel>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/tooltip.h"
#include "app/workbench/widgets/typed_number.h"

namespace colibri::ui {
namespace {

constexpr int kPaceMs = 100;         // between two requests while dragging
constexpr int64_t kWideSpan = 1000;  // beyond this a linear track is too coarse

}  // namespace

SliderRange knobSliderRange(const KnobRow& row, const KnobLimits& limits, const ModelFacts* model) {
    SliderRange range;
    range.min = limits.min;
    range.max = std::max(limits.min, limits.max);
    range.step = row.step;
    range.defaultValue = limits.defaultValue;
    range.logarithmic = limits.max - limits.min > kWideSpan;
    if (row.id == KnobId::LinkLimit) {
        range.minText = "none";
        range.defaultText = "none";
    }
    // Below one token's set of experts an LRU cache reuses nothing.
    if (row.id == KnobId::ExpertCacheSize && model && model->topK > range.min)
        range.harmfulBelow = model->topK;
    return range;
}

KnobControl::KnobControl(const KnobRow& row, QWidget* parent) : QWidget(parent), m_row(row) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    setToolTip(explained(row.label, row.help));
    if (row.choices.empty())
        addSlider(column);
    else
        addChoices(column);
}

void KnobControl::addSlider(QVBoxLayout* column) {
    m_pace.setSingleShot(true);
    connect(&m_pace, &QTimer::timeout, this, [this] {
        if (!m_waiting) return;
        const int64_t value = *m_waiting;
        m_waiting.reset();
        m_pace.start(kPaceMs);
        emit requested(m_row.id, value, false);
    });
    m_slider = new SliderRow(m_row.label, m_row.unit);
    if (m_row.id == KnobId::LinkLimit) m_slider->setZeroText("none");
    m_slider->setParser([this](const QString& text, QString* error) { return parse(text, error); });
    connect(m_slider, &SliderRow::edited, this, &KnobControl::edited);
    column->addWidget(m_slider);
    column->addSpacing(5);
}

void KnobControl::addChoices(QVBoxLayout* column) {
    auto* line = new QHBoxLayout;
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(8);
    auto* label = new QLabel(m_row.label);
    label->setFont(type::body());
    label->setFixedHeight(28);
    line->addWidget(label);
    line->addStretch();
    QStringList choices;
    for (const char* choice : m_row.choices) choices << choice;
    const auto choose = [this](int i) { emit requested(m_row.id, i, true); };
    if (choices.size() <= 3) {
        m_segment = new Segment(choices);
        m_segment->setAccessibleName(m_row.label);
        connect(m_segment, &Segment::chosen, this, choose);
        line->addWidget(m_segment);
    } else {
        m_select = new Select;
        m_select->addItems(choices);
        m_select->setFixedWidth(150);
        m_select->setAccessibleName(m_row.label);
        connect(m_select, &QComboBox::activated, this, choose);
        line->addWidget(m_select);
    }
    column->addLayout(line);
    m_note = new Note;
    m_note->hide();
    column->addWidget(m_note);
    column->addSpacing(4);
}

// Text typed into the slider's field; nullopt, with the error, if it is not a value of the knob.
std::optional<int64_t> KnobControl::parse(const QString& text, QString* error) const {
    QString plain = text.trimmed();
    if (const auto whole = typedWhole(plain)) plain = QString::number(*whole);
    if (m_row.id == KnobId::LinkLimit && plain == "none") plain = "0";
    const auto value = parseKnobValue(m_row, plain.toStdString(), m_limits);
    if (value.ok()) return *value;
    const QString hint = str(value.status().hint());
    *error = str(value.status().message()).section(": ", 1) +
             (hint.isEmpty() ? QString() : ". " + hint) + ".";
    return std::nullopt;
}

void KnobControl::setLimits(const KnobLimits& limits, const ModelFacts* model) {
    m_limits = limits;
    if (m_slider) m_slider->setRange(knobSliderRange(m_row, limits, model));
}

void KnobControl::setProblems(const QStringList& problems) {
    m_problems = problems;
    if (m_slider) m_slider->setAvailable(problems.value(0).isEmpty());
    for (int i = 0; i < int(m_row.choices.size()); ++i) {
        const QString reason = problems.value(i);
        if (m_segment) {
            m_segment->setChoiceEnabled(i, reason.isEmpty(), reason);
        } else if (auto* model = qobject_cast<QStandardItemModel*>(m_select->model())) {
            model->item(i)->setEnabled(reason.isEmpty());
            model->item(i)->setToolTip(reason);
        }
    }
    updateNote();
}

// "bind, interleave n/a: this machine has one NUMA node."
QString KnobControl::problemText() const {
    if (m_slider) return m_problems.value(0).isEmpty() ? QString() : "n/a: " + m_problems[0] + ".";
    QStringList lines, written;
    for (const QString& reason : m_problems) {
        // The note about the effective value has the reason of the requested choice already.
        const bool requested = m_state.requested != m_state.effective &&
                               reason == m_problems.value(int(m_state.requested));
        if (reason.isEmpty() || requested || written.contains(reason)) continue;
        written << reason;
        QStringList names;
        for (int i = 0; i < m_problems.size(); ++i)
            if (m_problems[i] == reason) names << m_row.choices[size_t(i)];
        lines << names.join(", ") + " n/a: " + reason + ".";
    }
    return lines.join(' ');
}

QString KnobControl::note() const {
    return m_slider ? m_slider->noteText() : m_note->text();
}

void KnobControl::edited(int64_t value, bool final) {
    if (final) {
        m_waiting.reset();
        m_pace.stop();
        emit requested(m_row.id, value, true);
        return;
    }
    if (m_pace.isActive()) {
        m_waiting = value;
        return;
    }
    m_pace.start(kPaceMs);
    emit requested(m_row.id, value, false);
}

void KnobControl::setState(const KnobState& state) {
    m_state = state;
    if (m_slider) {
        if (!m_waiting) m_slider->setValue(state.requested);
        m_slider->setEffective(state.effective);
    } else if (m_segment) {
        m_segment->setCurrent(int(state.requested));
    } else if (m_select && !m_select->view()->isVisible()) {
        m_select->setCurrentIndex(int(state.requested));
    }
    updateNote();
}

void KnobControl::setEarlier(const QVector<int64_t>& values, const QStringList& texts) {
    if (m_slider) m_slider->slider()->setHistory(values, texts);
}

void KnobControl::setHint(const QString& hint) {
    m_hint = hint;
    updateNote();
}

void KnobControl::updateNote() {
    const bool differs = m_state.requested != m_state.effective;
    QString text = m_hint, icon;
    Tone ink = Tone::Text3;
    if (differs) {
        const QString reason = str(m_state.reason);
        text = QString("Effective %1%2")
                   .arg(knobText(m_row, m_state.effective),
                        reason.isEmpty() ? QString(".")
                                         : ": " + reason + (reason.endsWith('.') ? "" : "."));
        icon = "warn";
        ink = Tone::Text2;
    }
    // A choice knob whose effective value differs shows that reason only.
    if (const QString problem = differs && !m_slider ? QString() : problemText();
        !problem.isEmpty())
        text += (text.isEmpty() ? "" : " ") + problem;
    if (m_slider) {
        m_slider->setNote(text, icon, Tone::Warn, ink);
    } else {
        m_note->setNote(text, icon, Tone::Warn, ink);
        m_note->setVisible(!text.isEmpty() || m_reservesNote);
    }
}

void KnobControl::reserveNote(int lines) {
    m_reservesNote = lines > 0;
    if (m_slider) return m_slider->reserveNote(lines);
    m_note->reserve(lines);
    m_note->setVisible(m_reservesNote || !m_note->text().isEmpty());
}

int64_t KnobControl::shownValue() const {
    if (m_slider) return m_slider->value();
    return m_segment ? m_segment->current() : m_select->currentIndex();
}

void KnobControl::focusControl() {
    QWidget* target = m_slider    ? static_cast<QWidget*>(m_slider->field())
                      : m_segment ? static_cast<QWidget*>(m_segment)
                                  : static_cast<QWidget*>(m_select);
    target->setFocus(Qt::ShortcutFocusReason);
    if (m_slider) m_slider->field()->selectAll();
}

}  // namespace colibri::ui
