// SPDX-License-Identifier: Apache-2.0
// A GGUF model in one file, or split into several named NAME-00001-of-00003.gguf.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/gguf/gguf.h"
#include "engine/convert/source/source.h"

namespace colibri {

struct GgufParts {
    GgufHeader header;  // metadata of the first part, tensors of all
    std::string name;   // file name without the part number
};

// `path` may be any part. Adds all files to the checkpoint; the tensors refer to their files, but
// are not added. Errors: those of readGgufHeader; BadInput naming missing parts, or a part whose
// content does not match its name.
Result<GgufParts> openGgufParts(const std::filesystem::path& path, Checkpoint& checkpoint);

}  // namespace colibri
