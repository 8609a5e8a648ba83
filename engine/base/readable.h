// SPDX-License-Identifier: Apache-2.0
// Whether the system lets this program read what stands at a path.
#pragma once

#include <filesystem>

#include "engine/base/status.h"

namespace colibri {

// Ok when a file can be read or a folder be looked into, and when nothing is there; else why the
// system refuses: permissions, links in a circle, a disk that fails.
Status checkReadable(const std::filesystem::path& path);

}  // namespace colibri
