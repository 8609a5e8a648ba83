// SPDX-License-Identifier: GPL-3.0-or-later
// Decodes terminal input for a line editor: whole characters, known key sequences, and pasted text
// without its control characters. Other sequences are dropped.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace colibri::cli {

// The sequence that a key sends, and the key of libedit with the same function.
struct KeySequence {
    const char *sequence, *command;
};
extern const KeySequence kKeySequences[23];

// Visible characters that replace line feeds and tabs in pasted text. A line feed would submit the
// line, a tab would complete a word.
constexpr wchar_t kPastedLineFeed = L'\u2424', kPastedTab = L'\u2409';

class TerminalKeys {
public:
    // `resized` is called, while a key is awaited, after the width of the terminal has changed.
    explicit TerminalKeys(std::function<void()> resized) : m_resized(std::move(resized)) {}

    // Starts a new line: drops what is left of the last one.
    void begin();
    enum class Got { Key, End, Failed, Interrupted };
    Got next(wchar_t& key);

private:
    std::optional<unsigned char> readByte(int forMs);
    void lookAtSize();
    void takeSequence();
    std::string sequenceBody(unsigned char first);
    void skipString();
    void takeCharacter(unsigned char first);

    std::function<void()> m_resized;
    std::deque<wchar_t> m_keys;  // decoded but not returned yet
    Got m_why = Got::End;        // why readByte returned nothing
    bool m_pasting = false;
    int m_columns = 0;
};

}  // namespace colibri::cli
