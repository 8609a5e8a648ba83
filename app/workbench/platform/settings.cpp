// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/platform/settings.h"

#include <QStandardPaths>

namespace colibri::ui {

QSettings& settings() {
    constexpr int kVersion = 1;
    static QSettings store(
        QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation) + "/workbench.ini",
        QSettings::IniFormat);
    if (store.value("version").toInt() != kVersion) {
        store.clear();  // another version wrote it: defaults are safer than guesses
        store.setValue("version", kVersion);
    }
    return store;
}

}  // namespace colibri::ui
