// SPDX-License-Identifier: GPL-3.0-or-later
// Named sets of sampling values: common ones, those that the model recommends, and those of the
// user, which are stored in the settings. GUI thread only.
#pragma once

#include <QString>
#include <QVector>
#include <optional>

#include "engine/runtime/engine.h"

namespace colibri::ui {

struct SamplingPreset {
    QString name;
    Sampling values;   // only temperature, top-k, top-p, min-p and repetition penalty are used
    bool own = false;  // saved by the user

    bool matches(const Sampling& sampling) const;
    void applyTo(Sampling* sampling) const;
};

// `recommended`: the values of generation_config.json, if there are any; they are the first preset
// then.
QVector<SamplingPreset> samplingPresets(const std::optional<Sampling>& recommended);
// Saves a preset of the user, replacing one with the same name. False: the name is empty or that of
// a built-in preset.
bool savePreset(const QString& name, const Sampling& sampling);
void removePreset(const QString& name);

}  // namespace colibri::ui
