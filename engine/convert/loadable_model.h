// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

// The model folder to load for a path. A flat folder is packed once into its subfolder "container",
// streamed like any conversion, and again if its files change; any other path is returned
// unchanged. Errors: those of convertModel.
Result<std::filesystem::path> loadableModel(const std::filesystem::path& path,
                                            const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri
