// SPDX-License-Identifier: Apache-2.0
// Weight types of the engine and their names in files and on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace colibri {

// Values are stored in model.json by name, never by number.
enum class DType : uint8_t { F32, F16, BF16, Q8_0, Q4_0 };

// Elements per quantisation block along the input dimension (1 for plain types).
// q8_0 and q4_0 follow ggml: 32 elements share one f16 scale.
constexpr int kBlock = 32;

std::string_view dtypeName(DType type);                       // "f32", "q8_0", ...
std::optional<DType> dtypeFromName(std::string_view name);    // exact, lower case
double bitsPerWeight(DType type);                             // 32, 16, 16, 8.5, 4.5

}  // namespace colibri
