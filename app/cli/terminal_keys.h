// SPDX-License-Identifier: GPL-3.0-or-later
// What comes from the keyboard of a terminal, as a line editor takes it: whole characters, known
// key sequences, pasted text without the control characters in it. Other sequences are dropped.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace colibri::cli {

// A sequence of a key, and what libedit calls that which it does.
struct KeySequence {
    const char *sequence, *command;
};
extern const KeySequence kKeySequences[23];

// Of pasted text: characters of their own in the line that is edited, so that a line feed does not
// send it and a tab completes nothing.
constexpr wchar_t kPastedLineFeed = L'\u2424', kPastedTab = L'\u2409';

class TerminalKeys {
public:
    // `resized` is called while a key is awaited, once the terminal has another width.
    explicit TerminalKeys(std::function<void()> resized) : m_resized(std::move(resized)) {}

    // A new line is read: what was left of the last one is dropped.
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
    std::deque<wchar_t> m_keys;  // read and not asked for
    Got m_why = Got::End;        // readByte gave nothing
    bool m_pasting = false;
    int m_columns = 0;
};

}  // namespace colibri::cli
