// SPDX-License-Identifier: Apache-2.0
// Detects files that are not what their name says: a git-lfs pointer, a saved error page,
// a PyTorch pickle, an archive, another weight format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

enum class Expected { Safetensors, Gguf, Text };

constexpr size_t kForeignBytes = 512;  // at the start of a file, enough to decide

// Ok if the start may be that of the expected kind; else an error that says what the file is and
// what to do. `start`: at least the first kForeignBytes bytes, or all.
Status checkContent(std::string_view start, int64_t fileBytes, Expected expected,
                    const std::filesystem::path& path);
// The same, but reads the file. Also fails if it cannot be read.
Status checkContent(const std::filesystem::path& path, Expected expected);

// The error for a file or folder that is not a checkpoint; says what it is if that is known.
Status notACheckpoint(const std::filesystem::path& path);

// Whether a file name ("pytorch_model.bin") is that of weights in an unsupported format.
bool isPickle(const std::filesystem::path& path);
Status pickleError(const std::filesystem::path& path);  // Unsupported, with the remedy

}  // namespace colibri
