// SPDX-License-Identifier: GPL-3.0-or-later
// KnobsPanel: config files, profiles and command lines.
#include "app/workbench/knobs/knobs_panel.h"
#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/base/machine.h"
#include "engine/knobs/knob_config.h"
#include "engine/knobs/knob_options.h"

namespace colibri::ui {

KnobValues KnobsPanel::requestedValues() const {
    KnobValues values;
    if (!m_source) return values;
    for (const KnobRow& row : knobTable())
        values[size_t(row.id)] = m_source->knobState(row.id).requested;
    return values;
}

QString KnobsPanel::configJson() const {
    const std::string model = m_source ? m_source->model()->name.toStdString() : "";
    return exactText(knobsToJson(requestedValues(), model, machineFingerprint()));
}

bool KnobsPanel::saveConfig(const QString& path, QString* error) const {
    const Status status = saveFile(path, configJson().toUtf8());
    if (!status.ok()) *error = str(status.text());
    return status.ok();
}

QString Applied::text() const {
    QString text = QString("%1 of %2 applied").arg(applied).arg(total);
    if (!needReload.isEmpty())
        text += "; " + needReload.join(", ").toLower() +
                (needReload.size() == 1 ? " needs a reload" : " need a reload");
    if (!outOfRange.isEmpty()) text += "; out of range: " + outOfRange.join(", ").toLower();
    return text;
}

// Applies the values as one step of undo. Those of knobs that are fixed at load are only requested.
Applied KnobsPanel::apply(const KnobValues& values) {
    Applied outcome;
    KnobStep changes;
    for (const KnobRow& row : knobTable()) {
        const auto& value = values[size_t(row.id)];
        if (!value || !m_source) continue;
        ++outcome.total;
        const KnobLimits limits = m_source->knobLimits(row.id);
        const KnobState state = m_source->knobState(row.id);
        if (*value < limits.min || *value > limits.max) {
            outcome.outOfRange << QString("%1 %2 (%3..%4)")
                                      .arg(str(knobTitle(row)), knobText(row, *value),
                                           knobText(row, limits.min), knobText(row, limits.max));
            continue;
        }
        changes.push_back({row.id, state.requested, *value});
        if (row.live || *value == state.effective)
            ++outcome.applied;
        else
            outcome.needReload << str(knobTitle(row));
    }
    applyTogether(changes, true);
    m_history.pushTogether(std::move(changes));
    updateProfileRow();
    return outcome;
}

std::optional<Applied> KnobsPanel::loadConfig(const QString& path, QString* error) {
    std::string model;
    const auto values = knobsFromFile(path.toStdString(), &model);
    if (!values.ok()) {
        *error = str(values.status().text());
        return std::nullopt;
    }
    Applied outcome = apply(*values);
    if (m_source && !model.empty() && str(model) != m_source->model()->name)
        outcome.model = str(model);
    return outcome;
}

void KnobsPanel::applyProfile(const QString& name) {
    const auto values = m_profiles.read(name);
    if (!values.ok()) {
        emit failed("The profile " + name + " could not be read", str(values.status().text()));
        return;
    }
    m_profiles.setCurrent(name);
    const Applied outcome = apply(*values);
    if (outcome.applied < outcome.total) emit applied("Profile " + name, outcome.text() + ".");
}

void KnobsPanel::saveProfile(const QString& name) {
    const Status status = m_profiles.write(name, configJson().toStdString());
    if (!status.ok()) {
        emit failed("The profile " + name + " was not saved", str(status.text()));
        return;
    }
    m_profiles.setCurrent(name);
    updateProfileRow();
    emit done("Profile saved", name);
}

void KnobsPanel::renameProfile(const QString& from, const QString& to) {
    const Status status = m_profiles.rename(from, to);
    if (!status.ok()) emit failed("The profile was not renamed", str(status.text()));
    updateProfileRow();
}

QStringList KnobsPanel::profileDifferences() const {
    QStringList lines;
    if (!m_source || m_profiles.current().isEmpty()) return lines;
    const KnobValues& values = m_profiles.currentValues();
    for (const KnobRow& row : knobTable()) {
        const auto& value = values[size_t(row.id)];
        const int64_t now = m_source->knobState(row.id).requested;
        if (row.live && value && *value != now)
            lines << QString("%1 %2, in the profile %3")
                         .arg(str(knobTitle(row)), knobText(row, now), knobText(row, *value));
    }
    return lines;
}

QString KnobsPanel::commandLine() const {
    if (!m_source) return {};
    QString line = "colibri chat " + shellQuoted(m_source->model()->folder);
    for (const KnobRow& row : knobTable()) {
        const KnobState state = m_source->knobState(row.id);
        if (state.requested == m_source->knobLimits(row.id).defaultValue) continue;
        line += " --" + str(knobOptionName(row)) + " " + str(knobValueText(row, state.requested));
    }
    return line;
}

}  // namespace colibri::ui
