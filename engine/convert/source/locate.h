// SPDX-License-Identifier: Apache-2.0
// From the path that someone gave to the checkpoint that is meant: folders of the Hugging Face
// cache, and folders that hold one GGUF model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

struct Located {
    std::filesystem::path path;      // a folder with a checkpoint, or a file; else as given
    std::vector<std::string> notes;  // what was chosen, for the user
};

// A cache folder (models--org--name) is the snapshot that refs/main names, or the newest one. A
// cache with one model is that model. A folder without config.json in which one GGUF model lies is
// that file. Everything else is given back. Errors (BadInput): a cache folder without a whole
// snapshot; several models in one folder, by name.
Result<Located> locateSource(const std::filesystem::path& path);

// Of a path inside a cache folder, or of a folder that a download wrote into: Ok, or which files
// are still to come (BadInput, with the remedy). They are known by the names that the Hugging Face
// library gives them while it writes, and by links that lead nowhere.
Status unfinishedDownload(const std::filesystem::path& path);

// "org/name" of a path inside a cache folder; else empty.
std::string hubName(const std::filesystem::path& path);
// The cache folder itself (".../models--org--name") of a path inside it; else empty.
std::filesystem::path hubFolder(const std::filesystem::path& path);

}  // namespace colibri
