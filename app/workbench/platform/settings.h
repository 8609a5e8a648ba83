// SPDX-License-Identifier: GPL-3.0-or-later
// The program's settings: one ini file with a version, in the user's config folder. GUI thread
// only.
#pragma once

#include <QSettings>

namespace colibri::ui {

QSettings& settings();

}  // namespace colibri::ui
