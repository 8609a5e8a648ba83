// SPDX-License-Identifier: Apache-2.0
// Opens a GGUF file as a checkpoint; of a split one, any part stands for all.
#pragma once

#include <filesystem>

#include "engine/base/status.h"
#include "engine/convert/plan.h"

namespace colibri {

// Reads the headers only. Errors: BadInput (damaged), Unsupported (version, architecture, weight
// type, option by name).
Result<OpenedSource> openGgufSource(const std::filesystem::path& path);

}  // namespace colibri
