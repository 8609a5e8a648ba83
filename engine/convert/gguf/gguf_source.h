// SPDX-License-Identifier: Apache-2.0
// Opens a GGUF file as a checkpoint; any part of a split model opens the whole model.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/source/opened_source.h"

namespace colibri {

// Reads the headers only. Errors: BadInput (damaged), Unsupported (version, architecture, weight
// type, option by name).
// `chatTemplate`: as in chooseTemplate.
Result<OpenedSource> openGgufSource(const std::filesystem::path& path,
                                    const std::string& chatTemplate);

}  // namespace colibri
