// SPDX-License-Identifier: Apache-2.0
// Weight types of the engine and their names in files and on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colibri {

// Values are stored in model.json by name, never by number.
enum class DType : uint8_t {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q4_K,
    Q5_K,
    Q6_K,
    MXFP4,
};
constexpr int kDTypeCount = 12;

// Columns of one block of activations, and of the smallest quantised block of weights.
constexpr int kBlock = 32;

// The quantised types are ggml's: whole blocks of columns of a row share scales.
constexpr bool isQuantised(DType type) {
    return type >= DType::Q8_0;
}

// Whether this program can encode the type; the others can only be read from GGUF files.
constexpr bool hasEncoder(DType type) {
    return type <= DType::Q4_0 || type == DType::MXFP4;
}

// One block of a row in files, which store row by row: columns and bytes. Plain types have one
// column and the size of a value. A row of a quantised type consists of whole blocks.
struct FileBlock {
    int cols, bytes;
};
FileBlock fileBlock(DType type);

std::string_view dtypeName(DType type);                     // "f32", "q8_0", ...
std::optional<DType> dtypeFromName(std::string_view name);  // exact, lower case
std::string encodableNames();                               // "f32, f16, ... or mxfp4"
double bitsPerWeight(DType type);  // of the packed layout: 32, 16, 16, 8.5, 4.5, ...

}  // namespace colibri
