// SPDX-License-Identifier: GPL-3.0-or-later
// Named sets of sampling values: a few common ones, what the model recommends, and the user's,
// which are kept in the settings.
#pragma once

#include <QString>
#include <QVector>
#include <optional>

#include "engine/runtime/engine.h"

namespace colibri::ui {

struct SamplingPreset {
    QString name;
    Sampling values;   // temperature, the cuts and the repetition penalty; the rest is not used
    bool own = false;  // the user's

    bool matches(const Sampling& sampling) const;
    void applyTo(Sampling* sampling) const;
};

// `recommended`: what the model's generation_config says, if it says anything; it is the first
// then.
QVector<SamplingPreset> samplingPresets(const std::optional<Sampling>& recommended);
// Replaces the user's preset of that name. False: the name is empty or one of the common ones.
bool savePreset(const QString& name, const Sampling& sampling);
void removePreset(const QString& name);

}  // namespace colibri::ui
