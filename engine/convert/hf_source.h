// SPDX-License-Identifier: Apache-2.0
// Opens a Hugging Face checkpoint: a folder, or one .safetensors file beside its config.json.
#pragma once

#include <filesystem>

#include "engine/base/status.h"
#include "engine/convert/plan.h"

namespace colibri {

// Reads headers and small files only. Errors: BadInput (no config.json, no or missing shards,
// broken headers), Unsupported (family, quantisation, PyTorch .bin files).
Result<OpenedSource> openHfSource(const std::filesystem::path& path);

}  // namespace colibri
