// SPDX-License-Identifier: GPL-3.0-or-later
// Reads lines that a user types. On a terminal it offers editing, history (Up, Down, Ctrl-R) and
// completion (Tab); from a pipe or a file it reads lines unchanged. The prompt goes to standard
// error.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colibri::cli {

class LineReader {
public:
    // Returns possible completions of the last word of `before`, the text left of the cursor.
    using Candidates = std::function<std::vector<std::string>(const std::string& before)>;

    explicit LineReader(Candidates candidates);
    ~LineReader();

    enum class Got { Line, End, Interrupted };
    // Waits for a line and returns it without its line end (LF or CRLF). Interrupted: a signal set
    // interrupted(); the typed text is dropped.
    Got read(std::string& line);

private:
    struct Editor;
    std::unique_ptr<Editor> m_editor;  // null: no terminal, or built without libedit
    bool m_terminal;
};

}  // namespace colibri::cli
