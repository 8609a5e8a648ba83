// SPDX-License-Identifier: Apache-2.0
// Opens a Hugging Face checkpoint: a folder, or one .safetensors file beside its config.json.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/source/opened_source.h"

namespace colibri {

// Reads headers and small files only. Errors: BadInput (no config.json, no or missing shards,
// broken headers), Unsupported (family, quantisation, pickles, adapters).
// `chatTemplate`: as in chooseTemplate.
Result<OpenedSource> openHfSource(const std::filesystem::path& path,
                                  const std::string& chatTemplate);

}  // namespace colibri
