// SPDX-License-Identifier: GPL-3.0-or-later
// A real, tiny model for tests of the window: a golden checkpoint converted to a container.
#pragma once

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QString>
#include <filesystem>
#include <functional>

#include "engine/convert/converter.h"

namespace colibri {

inline QString goldenModel(const char* name) {
    return QString(COLIBRI_GOLDEN_DIR "/models/") + name;
}

// Converts tests/golden/models/NAME into `dir`; the message of what failed, else "".
inline QString convertGolden(const char* name, const QString& dir, DType dtype = DType::F32) {
    ConvertOptions options;
    options.source = goldenModel(name).toStdString();
    options.target = dir.toStdString();
    options.dtype = dtype;
    const auto result = convertModel(options, {}, nullptr);
    return result ? QString() : QString::fromStdString(result.status().text());
}

// Runs the event loop until `done`, for at most a generous while.
inline bool waitUntil(const std::function<bool()>& done, int milliseconds = 30000) {
    QElapsedTimer timer;
    timer.start();
    while (!done()) {
        if (timer.elapsed() > milliseconds) return false;
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 20);
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    }
    return true;
}

}  // namespace colibri
