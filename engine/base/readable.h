// SPDX-License-Identifier: Apache-2.0
// Whether the system lets this program read a path.
#pragma once

#include <filesystem>

#include "engine/base/status.h"

namespace colibri {

// Ok if the file can be read or the folder listed, and if the path does not exist; else the
// system's reason: permissions, a loop of links, a failing disk.
Status checkReadable(const std::filesystem::path& path);

}  // namespace colibri
