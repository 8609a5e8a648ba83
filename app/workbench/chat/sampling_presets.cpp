// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/sampling_presets.h"

#include <QSettings>
#include <QUrl>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/settings.h"

namespace colibri::ui {
namespace {

constexpr char kPresetGroup[] = "sampling_presets";
constexpr char kRecommended[] = "Recommended by the model";

QString presetKey(const QString& name) {
    return QString::fromLatin1(QUrl::toPercentEncoding(name));
}

SamplingPreset commonPreset(const char* name, float temperature, int topK, float topP, float minP) {
    Sampling values;
    values.temperature = temperature;
    values.topK = topK;
    values.topP = topP;
    values.minP = minP;
    return {name, values};
}

QVector<SamplingPreset> commonPresets() {
    return {commonPreset("Greedy", 0, 0, 1, 0), commonPreset("Precise", 0.3f, 40, 0.9f, 0),
            commonPreset("Balanced", 0.7f, 0, 0.95f, 0),
            commonPreset("Creative", 1.1f, 0, 1, 0.05f)};
}

QVector<SamplingPreset> ownPresets() {
    QVector<SamplingPreset> out;
    QSettings& store = settings();
    store.beginGroup(kPresetGroup);
    for (const QString& key : store.childKeys()) {
        const QStringList v = store.value(key).toStringList();
        if (v.size() != 5) continue;
        SamplingPreset p =
            commonPreset("", v[0].toFloat(), v[1].toInt(), v[2].toFloat(), v[3].toFloat());
        p.values.repetitionPenalty = v[4].toFloat();
        p.name = QUrl::fromPercentEncoding(key.toLatin1());
        p.own = true;
        out << p;
    }
    store.endGroup();
    std::sort(out.begin(), out.end(),
              [](const auto& a, const auto& b) { return a.name.localeAwareCompare(b.name) < 0; });
    return out;
}

}  // namespace

bool SamplingPreset::matches(const Sampling& s) const {
    const auto same = [](float a, float b) { return std::lround(a * 100) == std::lround(b * 100); };
    if (!same(values.repetitionPenalty, s.repetitionPenalty)) return false;
    // Without temperature the other values have no effect.
    if (values.temperature <= 0 && s.temperature <= 0) return true;
    return same(values.temperature, s.temperature) && values.topK == s.topK &&
           same(values.topP, s.topP) && same(values.minP, s.minP);
}

void SamplingPreset::applyTo(Sampling* s) const {
    s->temperature = values.temperature;
    s->topK = values.topK;
    s->topP = values.topP;
    s->minP = values.minP;
    s->repetitionPenalty = values.repetitionPenalty;
}

QVector<SamplingPreset> samplingPresets(const std::optional<Sampling>& recommended) {
    QVector<SamplingPreset> out;
    if (recommended) out << SamplingPreset{kRecommended, *recommended};
    return out + commonPresets() + ownPresets();
}

bool savePreset(const QString& given, const Sampling& s) {
    const QString name = given.trimmed();
    const QVector<SamplingPreset> taken = samplingPresets(Sampling());
    const bool reserved = std::any_of(taken.begin(), taken.end(), [&](const SamplingPreset& p) {
        return !p.own && p.name.compare(name, Qt::CaseInsensitive) == 0;
    });
    if (name.isEmpty() || reserved) return false;
    const auto text = [](float v) { return QString::number(double(v), 'g', 6); };
    settings().setValue(QString(kPresetGroup) + "/" + presetKey(name),
                        QStringList{text(s.temperature), QString::number(s.topK), text(s.topP),
                                    text(s.minP), text(s.repetitionPenalty)});
    return true;
}

void removePreset(const QString& name) {
    settings().remove(QString(kPresetGroup) + "/" + presetKey(name));
}

}  // namespace colibri::ui
