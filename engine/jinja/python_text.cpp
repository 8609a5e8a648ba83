// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/python_text.h"

#include <string.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/jinja/case_tables.h"

namespace colibri::jinja {

using text::appendUtf8;
using text::nextUtf8;
using text::previousUtf8;
using text::Utf8Step;

namespace {

utf8proc_category_t categoryOf(char32_t code) {
    return utf8proc_category(utf8proc_int32_t(code));
}

bool within(std::span<const CodeRange> ranges, char32_t code) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), code,
                         [](char32_t c, const CodeRange& range) { return c < range.first; });
    return after != ranges.begin() && code <= std::prev(after)->last;
}

const CaseMapping* mappingOf(std::span<const CaseMapping> table, char32_t code) {
    const auto found =
        std::lower_bound(table.begin(), table.end(), code,
                         [](const CaseMapping& row, char32_t c) { return row.code < c; });
    return found != table.end() && found->code == code ? &*found : nullptr;
}

void appendMapped(std::u32string& out, std::span<const CaseMapping> table, char32_t code,
                  utf8proc_int32_t (*simple)(utf8proc_int32_t)) {
    if (const CaseMapping* mapping = mappingOf(table, code)) {
        for (char32_t to : mapping->to) {
            if (to != 0) out += to;
        }
    } else {
        out += char32_t(simple(utf8proc_int32_t(code)));
    }
}

void appendUpper(std::u32string& out, char32_t code) {
    appendMapped(out, upperMappings(), code, utf8proc_toupper);
}
void appendTitle(std::u32string& out, char32_t code) {
    appendMapped(out, titleMappings(), code, utf8proc_totitle);
}

bool isCased(char32_t code) {
    return isLower(code) || isUpper(code) || isTitle(code);
}

bool isCaseIgnorable(char32_t code) {
    constexpr char32_t others[] = {'\'', '.',  ':',  '^',    '`',    0xA8,   0xAD,  0xAF,
                                   0xB4, 0xB7, 0xB8, 0x2018, 0x2019, 0x2024, 0x2027};
    if (std::find(std::begin(others), std::end(others), code) != std::end(others)) return true;
    const auto category = categoryOf(code);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
           category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
           (category == UTF8PROC_CATEGORY_SK && code > 0x7F);
}

// Whether a sigma is at the end of a word, where its lower case differs.
bool isFinalSigma(std::u32string_view text, size_t at) {
    size_t before = at;
    while (before > 0 && isCaseIgnorable(text[before - 1])) --before;
    if (before == 0 || !isCased(text[before - 1])) return false;
    size_t after = at + 1;
    while (after < text.size() && isCaseIgnorable(text[after])) ++after;
    return after == text.size() || !isCased(text[after]);
}

void appendLower(std::u32string& out, std::u32string_view text, size_t at) {
    if (text[at] == 0x3A3) {
        out += isFinalSigma(text, at) ? char32_t(0x3C2) : char32_t(0x3C3);
    } else {
        appendMapped(out, lowerMappings(), text[at], utf8proc_tolower);
    }
}

template <typename Change>
std::string changed(std::string_view text, Change change) {
    const std::u32string codes = toCodePoints(text);
    spend(codes.size() / 4);
    std::u32string out;
    out.reserve(codes.size());
    for (size_t i = 0; i < codes.size(); ++i) change(out, codes, i);
    return toUtf8(out);
}

bool isLineEnd(char32_t code) {
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

}  // namespace

size_t codePointCount(std::string_view text) {
    spend(text.size() / 16);
    return size_t(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t codePointCount(const StringObject& text) {
    return text.ascii ? text.text.size() : codePointCount(text.text);
}

std::u32string toCodePoints(std::string_view text) {
    spend(text.size() / 8);
    std::u32string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        out += step.code;
        at += step.bytes;
    }
    return out;
}

std::string toUtf8(std::u32string_view codes) {
    spend(codes.size() / 8);
    std::string out;
    out.reserve(codes.size());
    for (char32_t code : codes) appendUtf8(out, code);
    return out;
}

size_t byteOffset(const StringObject& text, size_t codePoint) {
    if (text.ascii) return codePoint;
    spend(codePoint / 4);
    size_t at = 0;
    for (; codePoint > 0 && at < text.text.size(); --codePoint) at += nextUtf8(text.text, at).bytes;
    return at;
}

std::vector<Value> charactersOf(const TracedText& text) {
    std::vector<Value> out;
    for (size_t at = 0; at < text.text.size();) {
        const size_t bytes = nextUtf8(text.text, at).bytes;
        out.push_back(Value::string(text.slice(at, at + bytes)));
        at += bytes;
    }
    return out;
}

TracedText partOf(const TracedText& whole, std::string_view part) {
    const auto begin = part.empty() ? 0 : size_t(part.data() - whole.text.data());
    return whole.slice(begin, begin + part.size());
}

bool isSpace(char32_t code) {
    return text::isWhiteSpace(code) || (code >= 0x1C && code <= 0x1F);
}

bool isAlpha(char32_t code) {
    const auto category = categoryOf(code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool isDecimal(char32_t code) {
    return categoryOf(code) == UTF8PROC_CATEGORY_ND;
}
bool isDigit(char32_t code) {
    return isDecimal(code) || within(digitRanges(), code);
}
bool isNumericCode(char32_t code) {
    return text::isNumeric(code) || within(numericRanges(), code);
}
bool isLower(char32_t code) {
    return categoryOf(code) == UTF8PROC_CATEGORY_LL || within(otherLowerRanges(), code);
}
bool isUpper(char32_t code) {
    return categoryOf(code) == UTF8PROC_CATEGORY_LU || within(otherUpperRanges(), code);
}
bool isTitle(char32_t code) {
    return categoryOf(code) == UTF8PROC_CATEGORY_LT;
}

bool isPrintable(char32_t code) {
    if (code == ' ') return true;
    const auto category = categoryOf(code);
    return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

bool isIdentifier(std::string_view text) {
    if (text.empty()) return false;
    spend(text.size() / 2);
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        const auto category = categoryOf(step.code);
        const bool start =
            step.code == '_' || isAlpha(step.code) || category == UTF8PROC_CATEGORY_NL;
        const bool inside = start || category == UTF8PROC_CATEGORY_MN ||
                            category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ND ||
                            category == UTF8PROC_CATEGORY_PC || step.code == 0xB7;
        if (!(at == 0 ? start : inside)) return false;
        at += step.bytes;
    }
    return true;
}

std::string upper(std::string_view text) {
    return changed(text,
                   [](auto& out, const auto& codes, size_t i) { appendUpper(out, codes[i]); });
}

std::string lower(std::string_view text) {
    return changed(text,
                   [](auto& out, const auto& codes, size_t i) { appendLower(out, codes, i); });
}

std::string title(std::string_view text) {
    bool inWord = false;
    return changed(text, [&](auto& out, const auto& codes, size_t i) {
        inWord ? appendLower(out, codes, i) : appendTitle(out, codes[i]);
        inWord = isCased(codes[i]);
    });
}

std::string capitalize(std::string_view text) {
    return changed(text, [](auto& out, const auto& codes, size_t i) {
        i == 0 ? appendTitle(out, codes[i]) : appendLower(out, codes, i);
    });
}

std::string swapCase(std::string_view text) {
    return changed(text, [](auto& out, const auto& codes, size_t i) {
        if (isUpper(codes[i])) {
            appendLower(out, codes, i);
        } else if (isLower(codes[i])) {
            appendUpper(out, codes[i]);
        } else {
            out += codes[i];
        }
    });
}

std::string caseFold(std::string_view text) {
    return changed(text, [](auto& out, const auto& codes, size_t i) {
        if (mappingOf(foldMappings(), codes[i])) {
            appendMapped(out, foldMappings(), codes[i], utf8proc_tolower);
        } else {
            appendMapped(out, lowerMappings(), codes[i], utf8proc_tolower);
        }
    });
}

namespace {

template <typename Wanted>
std::string_view stripIf(std::string_view text, Side side, Wanted wanted) {
    const size_t before = text.size();
    while ((int(side) & int(Side::Left)) && !text.empty()) {
        const Utf8Step step = nextUtf8(text, 0);
        if (!wanted(step.code)) break;
        text.remove_prefix(step.bytes);
    }
    while ((int(side) & int(Side::Right)) && !text.empty()) {
        const size_t at = previousUtf8(text, text.size());
        if (!wanted(nextUtf8(text, at).code)) break;
        text = text.substr(0, at);
    }
    spend((before - text.size()) / 4);
    return text;
}

}  // namespace

std::string_view strip(std::string_view text, Side side) {
    return stripIf(text, side, isSpace);
}

std::string_view strip(std::string_view text, Side side, std::string_view characters) {
    std::u32string set = toCodePoints(characters);
    std::sort(set.begin(), set.end());
    return stripIf(text, side,
                   [&](char32_t code) { return std::binary_search(set.begin(), set.end(), code); });
}

std::vector<std::string_view> splitWords(std::string_view text, int64_t most, bool fromRight) {
    std::vector<std::string_view> out;
    const Side outside = fromRight ? Side::Right : Side::Left;
    spend(text.size() / 8);
    text = strip(text, outside);
    while (!text.empty()) {
        if (most >= 0 && int64_t(out.size()) == most) {
            out.emplace_back(text);  // the rest is stripped only on the side where splitting began
            break;
        }
        size_t begin = 0, end = text.size();
        if (fromRight) {
            begin = end;
            while (begin > 0) {
                const size_t at = previousUtf8(text, begin);
                if (isSpace(nextUtf8(text, at).code)) break;
                begin = at;
            }
            out.emplace_back(text.substr(begin));
            text = strip(text.substr(0, begin), Side::Right);
        } else {
            end = 0;
            while (end < text.size()) {
                const Utf8Step step = nextUtf8(text, end);
                if (isSpace(step.code)) break;
                end += step.bytes;
            }
            out.emplace_back(text.substr(0, end));
            text = strip(text.substr(end), Side::Left);
        }
    }
    if (fromRight) std::reverse(out.begin(), out.end());
    return out;
}

namespace {

std::string backwards(std::string_view text) {
    spend(text.size() / 16);
    return {text.rbegin(), text.rend()};
}

}  // namespace

size_t findText(std::string_view text, std::string_view wanted, size_t from) {
    if (from > text.size()) return std::string_view::npos;
    const void* found =
        memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
    const size_t at =
        found ? size_t(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
    spend(1 + ((found ? at : text.size()) - from + wanted.size()) / 16);
    return at;
}

size_t findLastText(std::string_view text, std::string_view wanted) {
    const size_t at = findText(backwards(text), backwards(wanted));
    return at == std::string::npos ? at : text.size() - at - wanted.size();
}

std::vector<std::string_view> splitBy(std::string_view text, std::string_view separator,
                                      int64_t most, bool fromRight) {
    std::vector<std::string_view> out;
    if (fromRight) {  // searches the reversed text from the left
        const std::string reversed = backwards(text);
        for (std::string_view part : splitBy(reversed, backwards(separator), most, false)) {
            // End of the match in `text`.
            const size_t behind = size_t(part.data() - reversed.data());
            out.push_back(text.substr(text.size() - behind - part.size(), part.size()));
        }
        std::reverse(out.begin(), out.end());
        return out;
    }
    while (most < 0 || int64_t(out.size()) < most) {
        const size_t at = findText(text, separator);
        if (at == std::string_view::npos) break;
        out.emplace_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
    }
    out.emplace_back(text);
    return out;
}

std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds) {
    std::vector<std::string_view> out;
    spend(text.size() / 8);
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        size_t end = at + step.bytes;
        if (isLineEnd(step.code)) {
            if (step.code == '\r' && end < text.size() && text[end] == '\n') ++end;
            out.emplace_back(text.substr(begin, (keepEnds ? end : at) - begin));
            begin = end;
        }
        at = end;
    }
    if (begin < text.size()) out.emplace_back(text.substr(begin));
    return out;
}

TracedText replaceAll(const TracedText& text, std::string_view from, const TracedText& to,
                      int64_t most) {
    TracedText out;
    const size_t size = text.text.size();
    spend(size / 16);
    if (from.empty()) {  // inserts between all characters and at both ends
        size_t at = 0;
        for (; most != 0 && at < size; --most) {
            const size_t bytes = nextUtf8(text.text, at).bytes;
            out.append(to);
            out.append(text, at, at + bytes);
            at += bytes;
        }
        out.append(text, at, size);
        if (most != 0) out.append(to);
        return out;
    }
    size_t done = 0;
    for (size_t at = findText(text.text, from); at != std::string_view::npos && most != 0;
         at = findText(text.text, from, done), --most) {
        out.append(text, done, at);
        out.append(to);
        spend(to.data.size());
        done = at + from.size();
    }
    out.append(text, done, size);
    return out;
}

std::string reprText(std::string_view text) {
    spend(text.size() / 4);
    const bool doubleQuotes =
        text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
    const char quote = doubleQuotes ? '"' : '\'';
    std::string out(1, quote);
    const auto hex = [&](const char* prefix, char32_t code, int digits) {
        out += prefix;
        for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
            out += "0123456789abcdef"[code >> shift & 15];
    };
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        const char32_t code = step.code;
        if (code == char32_t(quote) || code == '\\') {
            out += {'\\', char(code)};
        } else if (code == '\n') {
            out += "\\n";
        } else if (code == '\r') {
            out += "\\r";
        } else if (code == '\t') {
            out += "\\t";
        } else if (isPrintable(code)) {
            out += text.substr(at, step.bytes);
        } else if (code <= 0xFF) {
            hex("\\x", code, 2);
        } else if (code <= 0xFFFF) {
            hex("\\u", code, 4);
        } else {
            hex("\\U", code, 8);
        }
        at += step.bytes;
    }
    return out + quote;
}

std::string formatDouble(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[64];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string_view shortest(buffer, size_t(end - buffer));
    const size_t e = shortest.find('e');
    const bool negative = shortest[0] == '-';
    std::string digits;
    for (char c : shortest.substr(0, e)) {
        if (c >= '0' && c <= '9') digits += c;
    }
    int exponent = 0;
    std::from_chars(buffer + e + (buffer[e + 1] == '+' ? 2 : 1), end, exponent);
    std::string out = negative ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (digits.size() > 1) out += "." + digits.substr(1);
        const int size = std::abs(exponent);
        return out + "e" + (exponent < 0 ? "-" : "+") + (size < 10 ? "0" : "") +
               std::to_string(size);
    }
    if (exponent < 0) return out + "0." + std::string(size_t(-exponent - 1), '0') + digits;
    const size_t whole = size_t(exponent) + 1;
    if (digits.size() <= whole)
        return out + digits + std::string(whole - digits.size(), '0') + ".0";
    return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace colibri::jinja
