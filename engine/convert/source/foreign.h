// SPDX-License-Identifier: Apache-2.0
// Files that are not what their name says: a git-lfs pointer, an error page that a download saved,
// a PyTorch pickle, an archive, another weight format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

enum class Expected { Safetensors, Gguf, Text };

constexpr size_t kForeignBytes = 512;  // of a file's beginning, enough to tell

// Ok when the beginning may be that of the expected kind; else what the file really is, with the
// remedy. `start`: the first bytes, at least kForeignBytes of them or all.
Status checkContent(std::string_view start, int64_t fileBytes, Expected expected,
                    const std::filesystem::path& path);
// The same, reading the file. Errors also when it cannot be read.
Status checkContent(const std::filesystem::path& path, Expected expected);

// A file or folder that is no checkpoint, named for what it is as far as that can be told.
Status notACheckpoint(const std::filesystem::path& path);

// Weights in a form that this program does not read: by the name of a file ("pytorch_model.bin").
bool isPickle(const std::filesystem::path& path);
Status pickleError(const std::filesystem::path& path);  // Unsupported, with the remedy

}  // namespace colibri
