// SPDX-License-Identifier: GPL-3.0-or-later
// Writes files completely or not at all. All files of the window are written this way.
#pragma once

#include <QByteArray>
#include <QString>

#include "engine/base/status.h"

namespace colibri::ui {

// Replaces the file with `bytes`. After an error (full disk, no permission) the old file is
// unchanged, and the status names path and reason. Blocks; any thread.
Status saveFile(const QString& path, const QByteArray& bytes);

}  // namespace colibri::ui
