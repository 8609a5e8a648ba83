// SPDX-License-Identifier: Apache-2.0
#include "engine/base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace colibri {
namespace {

// The character at the beginning of a text that is not empty; bytes 0: not UTF-8.
struct Character {
    uint32_t code = 0;
    size_t bytes = 0;
};

Character characterOf(std::string_view text) {
    const auto lead = uint8_t(text[0]);
    const size_t bytes = lead < 0x80             ? 1
                         : (lead & 0xe0) == 0xc0 ? 2
                         : (lead & 0xf0) == 0xe0 ? 3
                         : (lead & 0xf8) == 0xf0 ? 4
                                                 : 0;
    if (bytes == 0 || text.size() < bytes) return {};
    uint32_t code = bytes == 1 ? lead : lead & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        const auto next = uint8_t(text[i]);
        if ((next & 0xc0) != 0x80) return {};
        code = code << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (code < kLowest[bytes] || surrogate || code > 0x10ffff) return {};
    return {code, bytes};
}

bool acts(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(std::string_view text, bool keepLines) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character c = characterOf(text);
        const size_t bytes = std::max<size_t>(c.bytes, 1);
        const bool line = keepLines && (c.code == '\n' || c.code == '\t');
        char code[16];
        if (c.bytes == 0) {
            std::snprintf(code, sizeof code, "\\x%02x", unsigned(uint8_t(text[0])));
            out += code;
        } else if (acts(c.code) && !line) {
            std::snprintf(code, sizeof code, "\\u%04x", unsigned(c.code));
            out += code;
        } else {
            out += text.substr(0, bytes);
        }
        text.remove_prefix(bytes);
    }
    return out;
}

}  // namespace

std::string printable(std::string_view text) {
    return escaped(text, false);
}

std::string printableLines(std::string_view text) {
    return escaped(text, true);
}

}  // namespace colibri
