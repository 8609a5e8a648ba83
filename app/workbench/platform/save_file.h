// SPDX-License-Identifier: GPL-3.0-or-later
// How the window writes every file of its own: whole or not at all, with the error to be told.
#pragma once

#include <QByteArray>
#include <QString>

#include "engine/base/status.h"

namespace colibri::ui {

// Replaces the file with `bytes`. After an error (a full disk, no permission) the file is as it was
// before, and the status names path and reason.
Status saveFile(const QString& path, const QByteArray& bytes);

}  // namespace colibri::ui
