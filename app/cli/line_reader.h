// SPDX-License-Identifier: GPL-3.0-or-later
// Lines that a user types: with editing, history (Up, Down, Ctrl-R) and completion (Tab) on a
// terminal, as they come from a pipe or a file. The prompt goes to standard error.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colibri::cli {

class LineReader {
public:
    // What may stand for the last word of `before`, the text left of the cursor.
    using Candidates = std::function<std::vector<std::string>(const std::string& before)>;

    explicit LineReader(Candidates candidates);
    ~LineReader();

    enum class Got { Line, End, Interrupted };
    // Waits for a line, which comes without its end (LF or CRLF). Interrupted: by a signal that
    // interrupted() tells of; what was typed is dropped.
    Got read(std::string& line);

private:
    struct Editor;
    std::unique_ptr<Editor> m_editor;  // null: no terminal, or built without libedit
    bool m_terminal;
};

}  // namespace colibri::cli
