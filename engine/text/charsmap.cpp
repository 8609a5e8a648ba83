// SPDX-License-Identifier: Apache-2.0
#include "engine/text/charsmap.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

constexpr size_t kTooLong = 6;  // bytes; a longer grapheme is not replaced as a whole

std::optional<std::string> fromBase64(std::string_view text) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
        uint32_t value;
        if (c >= 'A' && c <= 'Z') {
            value = uint32_t(c - 'A');
        } else if (c >= 'a' && c <= 'z') {
            value = uint32_t(c - 'a') + 26;
        } else if (c >= '0' && c <= '9') {
            value = uint32_t(c - '0') + 52;
        } else if (c == '+' || c == '/') {
            value = c == '+' ? 62 : 63;
        } else {
            return std::nullopt;
        }
        bits = bits << 6 | value;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += char(bits >> count & 0xFF);
    }
    return out;
}

uint32_t littleEndian(std::string_view bytes) {
    uint32_t value = 0;
    for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

uint32_t offsetOf(uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
}
bool endsHere(uint32_t unit) {
    return unit >> 8 & 1;
}
uint32_t labelOf(uint32_t unit) {
    return unit & 0x800000FF;
}

}  // namespace

Result<std::unique_ptr<Normalizer>> Charsmap::make(const JsonNode& node) {
    const Result<std::string> encoded = node.text("precompiled_charsmap");
    if (!encoded) return encoded.status();
    const JsonNode where = node.at("precompiled_charsmap");
    const std::optional<std::string> bytes = fromBase64(*encoded);
    if (!bytes) return where.bad("not base64");
    if (bytes->size() < 4) return where.bad("truncated");
    const size_t treeBytes = littleEndian(*bytes);
    if (treeBytes % 4 != 0 || treeBytes > bytes->size() - 4) return where.bad("truncated");
    auto map = std::make_unique<Charsmap>();
    for (size_t at = 4; at < 4 + treeBytes; at += 4) {
        map->m_units.push_back(littleEndian(std::string_view(*bytes).substr(at)));
    }
    map->m_replacements = bytes->substr(4 + treeBytes);
    if (!isValidUtf8(map->m_replacements)) return where.bad("replacements that are not UTF-8");
    size_t begin = 0, longest = 1;
    for (size_t end = 0; end <= map->m_replacements.size(); ++end) {
        if (end < map->m_replacements.size() && map->m_replacements[end] != 0) continue;
        longest = std::max(longest, end - begin);
        begin = end + 1;
    }
    map->m_growth = double(longest);
    return {std::move(map)};
}

bool Charsmap::replace(std::string_view part, std::string& out) const {
    if (m_units.empty()) return false;
    size_t at = offsetOf(m_units[0]);
    for (char c : part) {
        const auto byte = static_cast<unsigned char>(c);
        at ^= byte;
        if (byte == 0 || at >= m_units.size() || labelOf(m_units[at]) != byte) return false;
        const uint32_t unit = m_units[at];
        at ^= offsetOf(unit);
        if (!endsHere(unit)) continue;
        if (at >= m_units.size()) return false;
        const size_t begin = m_units[at] & 0x7FFFFFFF;
        if (begin > m_replacements.size()) return false;
        const size_t end = std::min(m_replacements.find('\0', begin), m_replacements.size());
        const auto text = std::string_view(m_replacements).substr(begin, end - begin);
        if (!isValidUtf8(text)) return false;  // begins within a character
        out += text;
        return true;
    }
    return false;
}

void Charsmap::apply(std::string& text) const {
    std::string out;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
        Utf8Step step = nextUtf8(text, begin);
        end = begin + step.bytes;
        utf8proc_int32_t state = 0, code = utf8proc_int32_t(step.code);
        while (end < text.size()) {
            step = nextUtf8(text, end);
            const auto next = utf8proc_int32_t(step.code);
            if (utf8proc_grapheme_break_stateful(code, next, &state)) break;
            code = next;
            end += step.bytes;
        }
        const auto whole = std::string_view(text).substr(begin, end - begin);
        if (whole.size() < kTooLong && replace(whole, out)) continue;
        for (size_t at = begin; at < end;) {
            const size_t bytes = nextUtf8(text, at).bytes;
            const auto part = std::string_view(text).substr(at, bytes);
            if (!replace(part, out)) out += part;
            at += bytes;
        }
    }
    text = std::move(out);
}

}  // namespace colibri::text
