// SPDX-License-Identifier: Apache-2.0
// The header of a .safetensors file: 8 bytes of length (little endian), JSON, then the data.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/source.h"

namespace colibri {

// Pure; takes the start of the file (at least the whole header) and the file's size. Tensors have
// absolute offsets. Errors (BadInput): a length past the file or over 32 MiB, not JSON, a
// duplicate name, an unknown dtype, a shape that does not match the byte count, data that overlaps,
// has gaps or extends past the end.
Result<std::vector<SourceTensor>> parseSafetensorsHeader(std::span<const std::byte> start,
                                                         int64_t fileBytes,
                                                         const std::string& where);

// Reads the header of a file and adds its tensors.
Status addSafetensorsFile(const std::filesystem::path& path, Checkpoint& checkpoint);

}  // namespace colibri
