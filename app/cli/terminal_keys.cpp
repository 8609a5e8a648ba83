// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/terminal_keys.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "app/cli/cli.h"
#include "engine/unicode/unicode.h"

namespace colibri::cli {

namespace {

constexpr int kLookMs = 100;     // interval of checks for signals and the terminal's size
constexpr int kSequenceMs = 50;  // longest gap between two bytes of one sequence
constexpr unsigned char kEscape = 0x1b;
constexpr size_t kSequenceBytes = 64;

int columnsOfTerminal() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

const KeySequence kKeySequences[23] = {
    {"\x1b[A", "ed-prev-history"},       {"\x1b[B", "ed-next-history"},
    {"\x1b[C", "ed-next-char"},          {"\x1b[D", "ed-prev-char"},
    {"\x1bOA", "ed-prev-history"},       {"\x1bOB", "ed-next-history"},
    {"\x1bOC", "ed-next-char"},          {"\x1bOD", "ed-prev-char"},
    {"\x1b[H", "ed-move-to-beg"},        {"\x1b[F", "ed-move-to-end"},
    {"\x1bOH", "ed-move-to-beg"},        {"\x1bOF", "ed-move-to-end"},
    {"\x1b[1~", "ed-move-to-beg"},       {"\x1b[4~", "ed-move-to-end"},
    {"\x1b[7~", "ed-move-to-beg"},       {"\x1b[8~", "ed-move-to-end"},
    {"\x1b[3~", "ed-delete-next-char"},  {"\x1b[1;5C", "em-next-word"},
    {"\x1b[1;5D", "ed-prev-word"},       {"\x1b[1;3C", "em-next-word"},
    {"\x1b[1;3D", "ed-prev-word"},       {"\x1b[3;5~", "em-delete-next-word"},
    {"\x1b[3;3~", "em-delete-next-word"}};

void TerminalKeys::begin() {
    m_keys.clear();
    m_pasting = false;
    m_columns = columnsOfTerminal();
}

TerminalKeys::Got TerminalKeys::next(wchar_t& key) {
    while (m_keys.empty()) {
        const std::optional<unsigned char> byte = readByte(-1);
        if (!byte) return m_why;
        if (*byte == kEscape) {
            takeSequence();
        } else {
            takeCharacter(*byte);
        }
    }
    key = m_keys.front();
    m_keys.pop_front();
    return Got::Key;
}

void TerminalKeys::lookAtSize() {
    const int columns = columnsOfTerminal();
    if (columns == m_columns) return;
    m_columns = columns;
    m_resized();
}

// `forMs`: time limit; -1: none.
std::optional<unsigned char> TerminalKeys::readByte(int forMs) {
    for (;;) {
        // Ctrl-C may arrive just before the wait, or on another thread. Neither ends a wait, so it
        // is short.
        pollfd input{STDIN_FILENO, POLLIN, 0};
        while (!interrupted().load() && poll(&input, 1, forMs < 0 ? kLookMs : forMs) <= 0) {
            if (forMs >= 0) return {};
            lookAtSize();
        }
        m_why = Got::Interrupted;
        if (interrupted().load()) return {};
        lookAtSize();
        unsigned char c = 0;
        const ssize_t got = ::read(STDIN_FILENO, &c, 1);
        if (got == 1) return c;
        if (got < 0 && errno == EINTR) continue;
        m_why = got < 0 ? Got::Failed : Got::End;
        return {};
    }
}

// The bytes after ESC [ or ESC O up to the final byte; "" if the sequence is incomplete.
std::string TerminalKeys::sequenceBody(unsigned char first) {
    std::string body(1, char(first));
    while (body.size() < kSequenceBytes) {
        const std::optional<unsigned char> byte = readByte(kSequenceMs);
        if (!byte) return {};
        body += char(*byte);
        const bool console = body == "[[";  // the function keys of the Linux console
        if (*byte >= 0x40 && *byte < 0x7f && !console) return body;
    }
    return {};
}

// Skips a string sequence up to its end, BEL or ESC \.
void TerminalKeys::skipString() {
    for (bool escape = false;;) {
        const std::optional<unsigned char> byte = readByte(kSequenceMs);
        if (!byte || *byte == 0x07 || (escape && *byte == '\\')) return;
        escape = *byte == kEscape;
    }
}

void TerminalKeys::takeSequence() {
    const std::optional<unsigned char> first = readByte(kSequenceMs);
    if (!first) {
        if (!m_pasting) m_keys.push_back(kEscape);  // the Escape key itself
        return;
    }
    if (*first == '[' || *first == 'O') {
        const std::string body = sequenceBody(*first);
        if (body == "[200~" || body == "[201~") {
            m_pasting = body == "[200~";
            return;
        }
        const std::string sequence = std::string(1, char(kEscape)) + body;
        const bool known =
            std::any_of(std::begin(kKeySequences), std::end(kKeySequences),
                        [&](const KeySequence& k) { return sequence == k.sequence; });
        if (known && !m_pasting) m_keys.assign(sequence.begin(), sequence.end());
    } else if (std::string_view("]P_^X").find(char(*first)) != std::string_view::npos) {
        skipString();
    } else if (!m_pasting) {  // a key together with Alt
        m_keys.push_back(kEscape);
        takeCharacter(*first);
    }
}

void TerminalKeys::takeCharacter(unsigned char first) {
    if (m_pasting && (first < 0x20 || first == 0x7f)) {
        if (first == '\r' || first == '\n') m_keys.push_back(kPastedLineFeed);
        if (first == '\t') m_keys.push_back(kPastedTab);
        return;
    }
    std::string bytes(1, char(first));
    const size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    while (bytes.size() < size) {
        const std::optional<unsigned char> byte = readByte(kSequenceMs);
        if (!byte) break;
        bytes += char(*byte);
    }
    m_keys.push_back(wchar_t(text::nextUtf8(text::toValidUtf8(bytes), 0).code));
}

}  // namespace colibri::cli
