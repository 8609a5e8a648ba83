// SPDX-License-Identifier: GPL-3.0-or-later
// The session file of a loaded model.
#pragma once

#include <QThread>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {

// "" if nothing is recorded. Waits for the first snapshot, which names the file.
inline QString sessionPath(const SessionSource& source) {
    for (int i = 0; i < 1000; ++i) {
        const auto snapshot = source.snapshot();
        if (!snapshot) break;
        if (snapshot->now > 0) return exactText(snapshot->sessionFile);
        QThread::msleep(5);
    }
    return {};
}

}  // namespace colibri::ui
