// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/sampling_panel.h"

#include <QCheckBox>
#include <QLabel>
#include <QRandomGenerator>
#include <QScrollArea>
#include <QSettings>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/text/chat_template.h"
#include "engine/text/template_args.h"

namespace colibri::ui {
namespace {

constexpr int kSeeds = 1'000'000, kMostTokens = 8192;

QString trimmed(double v) {
    return QString::number(v, 'g', 3);
}

// "\n" typed as two characters is a line break in a stop string.
QString escaped(QString text) {
    return text.replace('\n', "\\n");
}
QString unescaped(QString text) {
    return text.replace("\\n", "\n");
}

}  // namespace

QString ChatSettings::summary() const {
    QStringList parts;
    if (sampling.temperature <= 0) {
        parts << "greedy";
    } else {
        parts << "temp " + trimmed(sampling.temperature);
        if (sampling.topK > 0) parts << QString("top-k %1").arg(sampling.topK);
        if (sampling.topP < 1) parts << "top-p " + trimmed(sampling.topP);
        if (sampling.minP > 0) parts << "min-p " + trimmed(sampling.minP);
        parts << (randomSeed ? QString("random seed") : QString("seed %1").arg(sampling.seed));
    }
    return parts.join(", ");
}

QString ChatSettings::options() const {
    QString text = "--temperature " + trimmed(std::max(0.0f, sampling.temperature));
    if (sampling.temperature > 0) {
        if (sampling.topK > 0) text += QString(" --top-k %1").arg(sampling.topK);
        if (sampling.topP < 1) text += " --top-p " + trimmed(sampling.topP);
        if (sampling.minP > 0) text += " --min-p " + trimmed(sampling.minP);
        if (!randomSeed) text += QString(" --seed %1").arg(sampling.seed);
    }
    if (sampling.repetitionPenalty != 1)
        text += " --repetition-penalty " + trimmed(sampling.repetitionPenalty);
    text += QString(" --max-tokens %1").arg(maxTokens);
    for (const QString& stop : stops) text += " --stop " + shellQuoted(stop);
    for (const QString& arg : templateArgs) text += " --template-arg " + shellQuoted(arg);
    return text;
}

Sampling ChatSettings::drawn() const {
    Sampling next = sampling;
    if (randomSeed) next.seed = QRandomGenerator::global()->bounded(kSeeds);
    return next;
}

ChatSettings ChatSettings::load(const ChatSettings& defaults) {
    ChatSettings s = defaults;
    QSettings& store = settings();
    store.beginGroup("sampling");
    s.sampling.temperature = store.value("temperature", s.sampling.temperature).toFloat();
    s.sampling.topK = store.value("top_k", s.sampling.topK).toInt();
    s.sampling.topP = store.value("top_p", s.sampling.topP).toFloat();
    s.sampling.minP = store.value("min_p", s.sampling.minP).toFloat();
    s.sampling.repetitionPenalty =
        store.value("repetition", s.sampling.repetitionPenalty).toFloat();
    s.sampling.seed = store.value("seed", qulonglong(s.sampling.seed)).toULongLong();
    s.maxTokens = store.value("max_tokens", s.maxTokens).toInt();
    s.stops = store.value("stops", s.stops).toStringList();
    s.templateArgs = store.value("template_args", s.templateArgs).toStringList();
    s.randomSeed = store.value("random_seed", s.randomSeed).toBool();
    s.overflow = Overflow(
        std::clamp(store.value("overflow", int(s.overflow)).toInt(), 0, int(Overflow::CutMiddle)));
    store.endGroup();
    return s;
}

void ChatSettings::store(const ChatSettings& defaults) const {
    QSettings& store = settings();
    store.beginGroup("sampling");
    const auto keep = [&](const char* key, const auto& value, const auto& standard) {
        if (value == standard) {
            store.remove(key);
        } else {
            store.setValue(key, value);
        }
    };
    const Sampling& d = defaults.sampling;
    keep("temperature", sampling.temperature, d.temperature);
    keep("top_k", sampling.topK, d.topK);
    keep("top_p", sampling.topP, d.topP);
    keep("min_p", sampling.minP, d.minP);
    keep("repetition", sampling.repetitionPenalty, d.repetitionPenalty);
    keep("seed", qulonglong(sampling.seed), qulonglong(d.seed));
    keep("max_tokens", maxTokens, defaults.maxTokens);
    keep("stops", stops, defaults.stops);
    keep("template_args", templateArgs, defaults.templateArgs);
    keep("random_seed", randomSeed, defaults.randomSeed);
    keep("overflow", int(overflow), int(defaults.overflow));
    store.endGroup();
}

nlohmann::ordered_json ChatSettings::templateVariables() const {
    nlohmann::ordered_json out;
    for (const QString& arg : templateArgs) (void)addTemplateArg(arg.toStdString(), out);
    return out;
}

SamplingPanel::SamplingPanel(QWidget* window) : Popover(window), m_content(new QWidget) {
    setAccessibleName("Sampling");
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(1, 1, 1, 1);
    outer->setSpacing(0);
    auto* head = new PanelHead("Sampling");
    head->setLineBelow(false);
    auto* reset = new Button("Reset", Button::Kind::Quiet, Button::Size::Dense);
    reset->setIconName("reset");
    head->addWidget(reset);
    outer->addWidget(head);
    auto* scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setWidget(m_content);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    outer->addWidget(scroll);
    auto* column = new QVBoxLayout(m_content);
    column->setContentsMargins(12, 4, 12, 12);
    column->setSpacing(4);

    column->addLayout(makePresets());
    column->addWidget(m_presetName);
    m_temperature =
        addRow("Temperature", "", 100, 2, {0, 200, 5}, "0 = greedy: always the most likely token.");
    m_topK = addRow("Top-k", "tokens", 1, 0, {0, 200, 1}, "");
    m_topK->setZeroText("off");
    m_topP = addRow("Top-p", "", 100, 2, {1, 100, 1}, "");
    m_minP = addRow("Min-p", "", 100, 2, {0, 100, 1}, "");
    m_penalty = addRow("Repetition penalty", "", 100, 2, {100, 200, 1}, "1.00 = none.");
    SliderRange seed{0, kSeeds - 1, 1};
    m_seed = addRow("Seed", "", 1, 0, seed,
                    "The same seed and prompt give the same reply. Regenerating a reply uses the "
                    "next seed, which the figures of the reply show.");
    SliderRange most{1, kMostTokens, 16};
    most.logarithmic = true;
    m_maxTokens = addRow("Max tokens", "tokens", 1, 0, most, "");
    addTexts(column);
    connect(reset, &QAbstractButton::clicked, this, [this] {
        show(m_defaults);
        read();
        if (m_template->count() > 0) emit templateChosen(0);
    });
}

void SamplingPanel::addTexts(QVBoxLayout* column) {
    m_random = new QCheckBox("Use a new seed for every reply");
    column->insertWidget(column->indexOf(m_seed) + 1, m_random);
    column->addWidget(new QLabel("When the context is full"));
    m_overflow = new Segment({"Stop", "Drop oldest", "Cut middle"});
    m_overflow->setToolTip(
        "Stop: a message that does not fit is not sent.\n"
        "Drop oldest: the oldest turns are omitted from the prompt.\n"
        "Cut middle: the turns after the first one are omitted.\n"
        "The chat keeps all turns, and the reply says how many were omitted.");
    column->addWidget(m_overflow);
    column->addWidget(new QLabel("Stop strings, separated by |"));
    m_stops = new QLineEdit;
    m_stops->setPlaceholderText("none");
    m_stops->setAccessibleName("Stop strings, separated by vertical bars");
    column->addWidget(m_stops);
    connect(m_random, &QCheckBox::toggled, this, &SamplingPanel::read);
    connect(m_overflow, &Segment::chosen, this, &SamplingPanel::read);
    connect(m_stops, &QLineEdit::editingFinished, this, &SamplingPanel::read);
    addTemplate(column);
}

void SamplingPanel::addTemplate(QVBoxLayout* column) {
    column->addWidget(new QLabel("Chat template"));
    m_template = new Select;
    m_template->setAccessibleName("Chat template");
    m_template->setToolTip("How messages are rendered as the prompt. Saved per model.");
    column->addWidget(m_template);
    connect(m_template, &QComboBox::activated, this, &SamplingPanel::templateChosen);
    column->addWidget(new QLabel("Template arguments"));
    m_templateArgs = new QLineEdit;
    m_templateArgs->setPlaceholderText("none");
    m_templateArgs->setAccessibleName("Template arguments, separated by vertical bars");
    m_templateArgs->setToolTip(
        "Variables of the model's chat template, separated by |:\n"
        "enable_thinking=false | reasoning_effort=\"high\"\n"
        "Templates ignore unknown variables.");
    m_templateNote = new Note;
    m_templateNote->hide();
    column->addWidget(m_templateArgs);
    column->addWidget(m_templateNote);
    connect(m_templateArgs, &QLineEdit::editingFinished, this, &SamplingPanel::readTemplateArgs);
}

void SamplingPanel::setTemplates(const QStringList& names, int current) {
    m_template->clear();
    m_template->addItems(names);
    if (!names.isEmpty()) m_template->addItem("Edit...");
    m_template->setCurrentIndex(names.isEmpty() ? -1 : current);
    m_template->setEnabled(!names.isEmpty());
}

// ---- presets

QLayout* SamplingPanel::makePresets() {
    m_preset = new Select;
    m_preset->setPlaceholderText("Custom");
    m_preset->setPrefix("", "Preset", false);
    m_preset->setAccessibleName("Preset");
    m_savePreset = new IconButton("save", "Save these values as a preset");
    m_removePreset = new IconButton("trash", "Delete this preset");
    m_presetName = new QLineEdit;
    m_presetName->setPlaceholderText("Preset name, then Enter");
    m_presetName->setAccessibleName("Name of the preset");
    m_presetName->hide();
    auto* line = new QHBoxLayout;
    line->setSpacing(4);
    line->addWidget(m_preset, 1);
    line->addWidget(m_removePreset);
    line->addWidget(m_savePreset);
    connect(m_preset, &QComboBox::activated, this, &SamplingPanel::choosePreset);
    connect(m_savePreset, &QAbstractButton::clicked, this, [this] {
        m_presetName->setVisible(m_presetName->isHidden());
        if (!m_presetName->isHidden()) m_presetName->setFocus();
    });
    connect(m_removePreset, &QAbstractButton::clicked, this, [this] {
        const int at = m_preset->currentIndex();
        if (at >= 0 && at < m_presets.size() && m_presets[at].own) removePreset(m_presets[at].name);
        showPresets();
    });
    connect(m_presetName, &QLineEdit::returnPressed, this, &SamplingPanel::namePreset);
    return line;
}

void SamplingPanel::setRecommended(const std::optional<Sampling>& sampling) {
    m_recommended = sampling;
}

void SamplingPanel::showPresets() {
    m_presets = samplingPresets(m_recommended);
    m_preset->clear();
    int current = -1;
    for (const SamplingPreset& preset : m_presets) {
        if (preset.matches(m_settings.sampling) && current < 0) current = m_preset->count();
        m_preset->addItem(preset.name);
    }
    m_preset->setCurrentIndex(current);
    m_removePreset->setVisible(current >= 0 && m_presets[current].own);
    m_savePreset->setEnabled(current < 0);
}

void SamplingPanel::choosePreset(int index) {
    if (index < 0 || index >= m_presets.size()) return;
    ChatSettings chosen = m_settings;
    m_presets[index].applyTo(&chosen.sampling);
    show(chosen);
    read();
}

void SamplingPanel::namePreset() {
    if (!savePreset(m_presetName->text(), m_settings.sampling)) {
        m_presetName->selectAll();  // it is the name of a built-in preset
        return;
    }
    m_presetName->clear();
    m_presetName->hide();
    showPresets();
}

QSize SamplingPanel::sizeHint() const {
    return {300, 34 + m_content->minimumSizeHint().expandedTo(m_content->sizeHint()).height() + 2};
}

SliderRow* SamplingPanel::addRow(const QString& label, const QString& unit, int scale, int decimals,
                                 SliderRange range, const QString& note) {
    auto* row = new SliderRow(label, unit);
    row->setScale(scale, decimals);
    const auto text = [&](int64_t v) {
        return scale == 1 ? QString() : QString::number(double(v) / scale, 'f', decimals);
    };
    range.minText = text(range.min);
    range.maxText = text(range.max);
    row->setRange(range);
    if (!note.isEmpty()) row->setNote(note);
    static_cast<QVBoxLayout*>(m_content->layout())->addWidget(row);
    connect(row, &SliderRow::edited, this, [this](int64_t, bool) { read(); });
    return row;
}

// A reply cannot be longer than the context.
void SamplingPanel::setContextLength(int64_t tokens) {
    SliderRange range = m_maxTokens->slider()->range();
    range.max = tokens > 0 ? tokens : kMostTokens;
    if (range.defaultValue) range.defaultValue = std::min(*range.defaultValue, range.max);
    m_maxTokens->setRange(range);
    m_maxTokens->setNote(tokens > 0 ? QString("For one reply; prompt and reply share the context.")
                                    : QString());
    show(m_settings);
}

void SamplingPanel::setSettings(const ChatSettings& settings, const ChatSettings& defaults) {
    m_settings = settings;
    m_defaults = defaults;
    const auto withDefault = [](SliderRow* row, int64_t value, int scale, int decimals) {
        SliderRange range = row->slider()->range();
        range.defaultValue = value;
        range.defaultText =
            scale == 1 ? QString() : QString::number(double(value) / scale, 'f', decimals);
        row->setRange(range);
    };
    const Sampling& d = defaults.sampling;
    withDefault(m_temperature, std::lround(d.temperature * 100), 100, 2);
    withDefault(m_topK, d.topK, 1, 0);
    withDefault(m_topP, std::lround(d.topP * 100), 100, 2);
    withDefault(m_minP, std::lround(d.minP * 100), 100, 2);
    withDefault(m_penalty, std::lround(d.repetitionPenalty * 100), 100, 2);
    withDefault(m_seed, int64_t(d.seed), 1, 0);
    withDefault(m_maxTokens, defaults.maxTokens, 1, 0);
    show(settings);
    showPresets();
}

void SamplingPanel::show(const ChatSettings& settings) {
    m_showing = true;
    const Sampling& s = settings.sampling;
    m_temperature->setValue(std::lround(s.temperature * 100));
    m_topK->setValue(s.topK);
    m_topP->setValue(std::lround(s.topP * 100));
    m_minP->setValue(std::lround(s.minP * 100));
    m_penalty->setValue(std::lround(s.repetitionPenalty * 100));
    m_seed->setValue(int64_t(s.seed));
    m_maxTokens->setValue(
        std::min<int64_t>(settings.maxTokens, m_maxTokens->slider()->range().max));
    m_random->setChecked(settings.randomSeed);
    m_seed->setAvailable(!settings.randomSeed);
    m_overflow->setCurrent(int(settings.overflow));
    QStringList stops;
    for (const QString& stop : settings.stops) stops << escaped(stop);
    m_stops->setText(stops.join('|'));
    m_templateArgs->setText(settings.templateArgs.join(" | "));
    m_templateNote->hide();
    m_presetName->hide();
    m_showing = false;
}

void SamplingPanel::read() {
    if (m_showing) return;
    Sampling& s = m_settings.sampling;
    s.temperature = float(m_temperature->value()) / 100;
    s.topK = int(m_topK->value());
    s.topP = float(m_topP->value()) / 100;
    s.minP = float(m_minP->value()) / 100;
    s.repetitionPenalty = float(m_penalty->value()) / 100;
    s.seed = uint64_t(m_seed->value());
    m_settings.maxTokens = int(m_maxTokens->value());
    m_settings.randomSeed = m_random->isChecked();
    m_seed->setAvailable(!m_settings.randomSeed);
    m_settings.overflow = Overflow(m_overflow->current());
    m_settings.stops.clear();
    for (const QString& stop : m_stops->text().split('|', Qt::SkipEmptyParts))
        m_settings.stops << unescaped(stop);
    showPresets();
    emit changed();
}

// Invalid arguments stay in the field, with the error; the former ones remain effective.
void SamplingPanel::readTemplateArgs() {
    QStringList args;
    nlohmann::ordered_json variables;
    Status status;
    for (const QString& part : m_templateArgs->text().split('|', Qt::SkipEmptyParts)) {
        if (part.trimmed().isEmpty()) continue;
        args << part.trimmed();
        if (status.ok()) status = addTemplateArg(args.back().toStdString(), variables);
    }
    if (status.ok()) status = checkTemplateArgs(variables);
    m_templateNote->setVisible(!status.ok());
    if (!status.ok()) {
        m_templateNote->setNote(str(status.text()), "error", Tone::Error, Tone::Text1);
        return;
    }
    m_settings.templateArgs = args;
    emit changed();
}

}  // namespace colibri::ui
