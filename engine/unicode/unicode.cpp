// SPDX-License-Identifier: Apache-2.0
#include "engine/unicode/unicode.h"

#include <utf8proc.h>

#include <array>

namespace colibri::text {
namespace {

using Byte = unsigned char;

struct Lead {
    int length;  // bytes of the whole sequence; 0: not a leading byte
    Byte secondLow, secondHigh;
};

Lead leadOf(Byte byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {2, 0x80, 0xBF};
    if (byte < 0xF0) return {3, Byte(byte == 0xE0 ? 0xA0 : 0x80), Byte(byte == 0xED ? 0x9F : 0xBF)};
    if (byte < 0xF5) return {4, Byte(byte == 0xF0 ? 0x90 : 0x80), Byte(byte == 0xF4 ? 0x8F : 0xBF)};
    return {0, 0, 0};
}

utf8proc_category_t categoryOf(char32_t code) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

struct ByteAlphabet {
    std::array<char32_t, 256> letters{};
    std::array<int, 512> bytes{};

    ByteAlphabet() {
        bytes.fill(-1);
        char32_t next = 0x100;
        for (int b = 0; b < 256; ++b) {
            const bool printable =
                (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            letters[b] = printable ? char32_t(b) : next++;
            bytes[letters[b]] = b;
        }
    }
};

const ByteAlphabet& byteAlphabet() {
    static const ByteAlphabet alphabet;
    return alphabet;
}

}  // namespace

Utf8Step nextUtf8(std::string_view text, size_t at) {
    const Byte first = Byte(text[at]);
    const Lead lead = leadOf(first);
    if (lead.length == 1) return {first, 1, true, false};
    if (lead.length == 0) return {};
    char32_t code = first & (0xFFu >> (lead.length + 1));
    for (int i = 1; i < lead.length; ++i) {
        if (at + i >= text.size()) return {kReplacement, size_t(i), false, true};
        const Byte byte = Byte(text[at + i]);
        const bool fits =
            i == 1 ? byte >= lead.secondLow && byte <= lead.secondHigh : (byte & 0xC0) == 0x80;
        if (!fits) return {kReplacement, size_t(i), false, false};
        code = code << 6 | (byte & 0x3F);
    }
    return {code, size_t(lead.length), true, false};
}

size_t previousUtf8(std::string_view text, size_t end) {
    size_t at = end - 1;
    while (at > 0 && (Byte(text[at]) & 0xC0) == 0x80) --at;
    return at;
}

void appendUtf8(std::string& out, char32_t code) {
    if (code < 0x80) {
        out += char(code);
    } else if (code < 0x800) {
        out += {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
    } else if (code < 0x10000) {
        out +=
            {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
    } else {
        out += {char(0xF0 | code >> 18), char(0x80 | (code >> 12 & 0x3F)),
                char(0x80 | (code >> 6 & 0x3F)), char(0x80 | (code & 0x3F))};
    }
}

std::string toValidUtf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        if (step.valid) {
            out.append(text.substr(at, step.bytes));
        } else {
            appendUtf8(out, kReplacement);
        }
        at += step.bytes;
    }
    return out;
}

bool isValidUtf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        if (!step.valid) return false;
        at += step.bytes;
    }
    return true;
}

bool isAscii(std::string_view text) {
    for (char c : text) {
        if (Byte(c) >= 0x80) return false;
    }
    return true;
}

bool isWhiteSpace(char32_t code) {
    if (code < 0x80) return code == 0x20 || (code >= 0x09 && code <= 0x0D);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool isNumeric(char32_t code) {
    const auto category = categoryOf(code);
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool isPunctuation(char32_t code) {
    if (code < 0x80) {
        return (code >= 0x21 && code <= 0x2F) || (code >= 0x3A && code <= 0x40) ||
               (code >= 0x5B && code <= 0x60) || (code >= 0x7B && code <= 0x7E);
    }
    const auto category = categoryOf(code);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool isMark(char32_t code) {
    const auto category = categoryOf(code);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool isWordCharacter(char32_t code) {
    if (code < 0x80) {
        return code == '_' || (code >= '0' && code <= '9') ||
               ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
    }
    // Other_Alphabetic characters outside the categories below: circled and squared letters. Also
    // the joiners.
    if ((code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
        (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189) ||
        code == 0x200C || code == 0x200D) {
        return true;
    }
    const auto category = categoryOf(code);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
           category == UTF8PROC_CATEGORY_PC;
}

std::string_view trimWhiteSpace(std::string_view text, bool left, bool right) {
    while (left && !text.empty()) {
        const Utf8Step step = nextUtf8(text, 0);
        if (!isWhiteSpace(step.code)) break;
        text.remove_prefix(step.bytes);
    }
    while (right && !text.empty()) {
        const size_t at = previousUtf8(text, text.size());
        if (!isWhiteSpace(nextUtf8(text, at).code)) break;
        text = text.substr(0, at);
    }
    return text;
}

char32_t byteToLetter(unsigned char byte) {
    return byteAlphabet().letters[byte];
}

int letterToByte(char32_t letter) {
    return letter < 512 ? byteAlphabet().bytes[letter] : -1;
}

}  // namespace colibri::text
