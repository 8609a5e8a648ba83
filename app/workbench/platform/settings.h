// SPDX-License-Identifier: GPL-3.0-or-later
// The program's settings: one ini file with a version, in the user's config folder. GUI thread
// only.
#pragma once

#include <QSettings>

namespace colibri::ui {

QSettings& settings();

// Whether the next loaded model samples the GPU's counters precisely, which locks its clocks.
constexpr const char* kPmSamplingKey = "pm_sampling";

}  // namespace colibri::ui
