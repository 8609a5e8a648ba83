// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

// The model folder to load for a path. For a flat folder this is its subfolder "container": the
// function packs it, streamed like any conversion, if it does not exist or the flat files have
// changed. Any other path is returned unchanged. Errors: those of convertModel.
Result<std::filesystem::path> loadableModel(const std::filesystem::path& path,
                                            const ProgressFn& progress, const CancelFlag* cancel);

}  // namespace colibri
