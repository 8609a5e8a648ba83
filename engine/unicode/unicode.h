// SPDX-License-Identifier: Apache-2.0
// UTF-8 and the character classes that tokenizers and templates need. Stateless functions; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace colibri::text {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Step {
    char32_t code = kReplacement;
    size_t bytes = 1;  // bytes to advance; for an invalid part its maximal length
    bool valid = false;
    bool incomplete = false;  // the text ends within a valid sequence
};

// The character at `at`. REQUIRES: at < text.size(). An invalid sequence counts as one step for
// each maximal prefix of a character, as in the WHATWG decoder.
Utf8Step nextUtf8(std::string_view text, size_t at);
// The start of the character that ends at `end`. REQUIRES: valid UTF-8, end > 0.
size_t previousUtf8(std::string_view text, size_t end);
void appendUtf8(std::string& out, char32_t code);
// The text with every invalid part replaced by U+FFFD.
std::string toValidUtf8(std::string_view text);
bool isValidUtf8(std::string_view text);
bool isAscii(std::string_view text);

bool isWhiteSpace(char32_t code);     // Unicode White_Space
bool isNumeric(char32_t code);        // general categories Nd, Nl, No
bool isPunctuation(char32_t code);    // general categories P*, and ASCII's symbols
bool isMark(char32_t code);           // general categories M*
bool isWordCharacter(char32_t code);  // what \w matches in Unicode mode

// The range [begin, end) of `text` without white space on the given sides. REQUIRES: valid UTF-8.
std::string_view trimWhiteSpace(std::string_view text, bool left, bool right);

// The GPT-2 alphabet: every byte has a printable character (bytes that are not printable get
// U+0100 and up), so that a vocabulary can be stored as text.
char32_t byteToLetter(unsigned char byte);
int letterToByte(char32_t letter);  // -1: not a byte

}  // namespace colibri::text
