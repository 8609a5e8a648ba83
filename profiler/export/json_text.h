// SPDX-License-Identifier: Apache-2.0
// Text and numbers of JSON that is written piece by piece.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace colibri {

// A JSON string with its quotes; bytes that are not UTF-8 are replaced.
std::string jsonString(std::string_view text);

inline void appendInteger(std::string& out, int64_t value) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// The shortest decimal number with this value; `unknown` if it is not finite.
inline void appendReal(std::string& out, double value, std::string_view unknown = "null") {
    if (!std::isfinite(value)) {
        out += unknown;
        return;
    }
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace colibri
