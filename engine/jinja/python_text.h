// SPDX-License-Identifier: Apache-2.0
// Text operations of Python's str: code points, white space, case mappings. Functions that walk
// over a text count this as work of the template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/jinja/value.h"
#include "engine/unicode/unicode.h"

namespace colibri::jinja {

size_t codePointCount(const StringObject& text);
size_t codePointCount(std::string_view text);
std::u32string toCodePoints(std::string_view text);
std::string toUtf8(std::u32string_view codes);
// The byte offset of a code point; the size of the text past the last one.
size_t byteOffset(const StringObject& text, size_t codePoint);
std::vector<Value> charactersOf(const TracedText& text);
// The part of `whole` that `part` is a view of.
TracedText partOf(const TracedText& whole, std::string_view part);

bool isSpace(char32_t code);  // str.isspace: Unicode's white space and U+001C to U+001F
bool isAlpha(char32_t code);
bool isDecimal(char32_t code);
bool isDigit(char32_t code);
bool isNumericCode(char32_t code);
bool isLower(char32_t code);
bool isUpper(char32_t code);
bool isTitle(char32_t code);
bool isPrintable(char32_t code);
bool isIdentifier(std::string_view text);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swapCase(std::string_view text);
std::string caseFold(std::string_view text);

enum class Side { Left = 1, Right = 2, Both = 3 };
std::string_view strip(std::string_view text, Side side);  // strips white space
std::string_view strip(std::string_view text, Side side, std::string_view characters);
// The results are views into `text`.
std::vector<std::string_view> splitWords(std::string_view text, int64_t most, bool fromRight);
std::vector<std::string_view> splitBy(std::string_view text, std::string_view separator,
                                      int64_t most, bool fromRight);
std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds);
// The start of the first match at or after `from`, or of the last match; npos: none. Linear time.
size_t findText(std::string_view text, std::string_view wanted, size_t from = 0);
size_t findLastText(std::string_view text, std::string_view wanted);
// Makes at most `most` replacements; negative: all.
TracedText replaceAll(const TracedText& text, std::string_view from, const TracedText& to,
                      int64_t most);

}  // namespace colibri::jinja
