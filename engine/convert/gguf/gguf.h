// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file (versions 2 and 3, little endian): typed key/value metadata, then the
// table of tensors, then the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/source.h"

namespace colibri {

// Integers of every width become int64 (a larger uint64 becomes the maximum), arrays of numbers
// become vectors of double. Arrays of arrays are skipped.
using GgufValue = std::variant<std::monostate, int64_t, double, bool, std::string,
                               std::vector<std::string>, std::vector<double>>;

struct GgufHeader {
    int version = 0;
    std::map<std::string, GgufValue> metadata;
    std::vector<SourceTensor> tensors;  // shapes outermost first, absolute offsets

    // nullptr: absent or of another type. number() also accepts integers.
    const std::string* text(const std::string& key) const;
    const std::vector<std::string>* texts(const std::string& key) const;
    const std::vector<double>* numbers(const std::string& key) const;
    std::optional<double> number(const std::string& key) const;
    std::optional<int64_t> integer(const std::string& key) const;
    std::optional<bool> flag(const std::string& key) const;
};

// Pure; takes the start of the file. `needMore` is set if the header extends past `start` and may
// continue in the file. Errors: BadInput (damaged, with byte), Unsupported (version).
Result<GgufHeader> parseGgufHeader(std::span<const std::byte> start, int64_t fileBytes,
                                   const std::string& where, bool& needMore);

// Reads as much of the file as its header needs (at most 512 MiB).
Result<GgufHeader> readGgufHeader(const File& file, int64_t fileBytes);

}  // namespace colibri
