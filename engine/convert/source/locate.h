// SPDX-License-Identifier: Apache-2.0
// Finds the checkpoint for the path that the user gave: resolves folders of the Hugging Face cache,
// and folders with one GGUF model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

struct Located {
    std::filesystem::path path;      // a folder with a checkpoint, or a file; else unchanged
    std::vector<std::string> notes;  // what was chosen, for the user
};

// A cache folder (models--org--name) resolves to the snapshot that refs/main names, or the newest
// one; a cache with one model to that model; a folder without config.json but with one GGUF model
// to that file. Any other path is returned unchanged. Errors (BadInput): a cache folder without a
// complete snapshot; several models in one folder, by name.
Result<Located> locateSource(const std::filesystem::path& path);

// Checks a path inside a cache folder, or a folder that a download wrote to: Ok, or BadInput with
// the missing files and what to do. It finds them by the names that the Hugging Face library uses
// during a download, and by dangling links.
Status unfinishedDownload(const std::filesystem::path& path);

// "org/name" of a path inside a cache folder; else empty.
std::string hubName(const std::filesystem::path& path);
// The cache folder itself (".../models--org--name") of a path inside it; else empty.
std::filesystem::path hubFolder(const std::filesystem::path& path);

}  // namespace colibri
