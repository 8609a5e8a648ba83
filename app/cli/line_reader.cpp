// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/line_reader.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/terminal_keys.h"
#include "engine/unicode/unicode.h"
#ifdef COLIBRI_HAVE_LIBEDIT
#include <histedit.h>
#endif

namespace colibri::cli {

#ifdef COLIBRI_HAVE_LIBEDIT

namespace {

// Makes the terminal mark pasted text, to distinguish it from typed text.
void markPastes(bool on) {
    const char* terminal = std::getenv("TERM");
    if (!terminal || std::string_view(terminal) == "dumb") return;
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", stderr);
    std::fflush(stderr);
}

constexpr std::wstring_view kPrompt = L"> ";

}  // namespace

struct LineReader::Editor {
    explicit Editor(Candidates given) : candidates(std::move(given)) {
        // The width of a character on the terminal depends on LC_CTYPE. The user's locale is not
        // set, because its number and letter rules would affect other code.
        std::setlocale(LC_CTYPE, "C.UTF-8");
        edit = el_init("colibri", stdin, stderr, stderr);
        past = history_winit();
        if (!edit || !past) return;
        HistEventW event;
        history_w(past, &event, H_SETSIZE, 1000);
        history_w(past, &event, H_SETUNIQUE, 1);
        el_wset(edit, EL_CLIENTDATA, this);
        el_wset(edit, EL_HIST, history_w, past);
        el_wset(edit, EL_EDITOR, L"emacs");
        el_wset(
            edit, EL_PROMPT, +[](EditLine*) {
                static std::wstring prompt(kPrompt);
                return prompt.data();
            });
        el_wset(edit, EL_GETCFN, &Editor::readCharacter);
        el_wset(edit, EL_ADDFN, L"complete", L"Completes a word", &Editor::complete);
        el_wset(edit, EL_BIND, L"^I", L"complete", nullptr);
        el_wset(edit, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
        for (const KeySequence& key : kKeySequences) {
            const std::string_view sequence = key.sequence, command = key.command;
            el_wset(edit, EL_BIND, std::wstring(sequence.begin(), sequence.end()).c_str(),
                    std::wstring(command.begin(), command.end()).c_str(), nullptr);
        }
    }

    ~Editor() {
        if (edit) el_end(edit);
        if (past) history_wend(past);
    }

    Got read(std::string& line) {
        el_resize(edit);
        keys.begin();
        stopped = false;
        int count = 0;
        markPastes(true);
        const wchar_t* typed = el_wgets(edit, &count);
        markPastes(false);
        if (stopped || interrupted().load()) {
            std::fputc('\n', stderr);
            el_reset(edit);
            return Got::Interrupted;
        }
        if (!typed || count <= 0) return Got::End;
        line.clear();
        for (int i = 0; i < count && typed[i] != L'\n' && typed[i] != L'\r'; ++i) {
            const bool lineFeed = typed[i] == kPastedLineFeed, tab = typed[i] == kPastedTab;
            text::appendUtf8(line, lineFeed ? U'\n' : tab ? U'\t' : char32_t(typed[i]));
        }
        if (!line.empty()) {
            HistEventW event;
            history_w(past, &event, H_ENTER, std::wstring(typed, size_t(count)).c_str());
        }
        return Got::Line;
    }

    // libedit's own function retries after a signal. This one returns, so that Ctrl-C has an
    // effect.
    static int readCharacter(EditLine* edit, wchar_t* out) {
        Editor& self = of(edit);
        switch (self.keys.next(*out)) {
            case TerminalKeys::Got::Key:
                return 1;
            case TerminalKeys::Got::End:
                return 0;
            case TerminalKeys::Got::Interrupted:
                self.stopped = true;
                return -1;
            case TerminalKeys::Got::Failed:
                break;
        }
        return -1;
    }

    // The terminal has wrapped the line to its new width, so the line is redrawn from its start.
    void resized() {
        winsize size{};
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
        const LineInfoW* line = el_wline(edit);
        int column = int(kPrompt.size());
        for (const wchar_t* c = line->buffer; c < line->cursor; ++c)
            column += std::max(0, wcwidth(*c));
        if (const int above = column / size.ws_col) std::fprintf(stderr, "\x1b[%dA", above);
        std::fputs("\r\x1b[J", stderr);
        std::fflush(stderr);
        el_resize(edit);
        el_wset(edit, EL_REFRESH);
    }

    static Editor& of(EditLine* edit) {
        Editor* self = nullptr;
        el_wget(edit, EL_CLIENTDATA, &self);
        return *self;
    }

    static unsigned char complete(EditLine* edit, wint_t) {
        const LineInfoW* line = el_wline(edit);
        std::string before;
        for (const wchar_t* c = line->buffer; c < line->cursor; ++c)
            text::appendUtf8(before, char32_t(*c));
        const std::string word = before.substr(before.find_last_of(' ') + 1);
        const std::vector<std::string> found = of(edit).candidates(before);
        if (found.empty()) return CC_REFRESH_BEEP;
        std::string common = found[0];
        for (const std::string& one : found) {
            const auto [end, other] =
                std::mismatch(common.begin(), common.end(), one.begin(), one.end());
            common.erase(end, common.end());
        }
        if (found.size() == 1) common += ' ';
        if (common.size() > word.size()) {
            const std::string rest = common.substr(word.size());  // names are ASCII
            el_winsertstr(edit, std::wstring(rest.begin(), rest.end()).c_str());
            return CC_REFRESH;
        }
        std::string list = "\n";
        for (const std::string& one : found) list += one + "  ";
        messageLines(list);
        return CC_REDISPLAY;
    }

    Candidates candidates;
    EditLine* edit = nullptr;
    HistoryW* past = nullptr;
    TerminalKeys keys{[this] { resized(); }};
    bool stopped = false;  // reading was ended by a signal
};

#else

struct LineReader::Editor {};

#endif

LineReader::LineReader(Candidates candidates) : m_terminal(isatty(STDIN_FILENO)) {
#ifdef COLIBRI_HAVE_LIBEDIT
    if (!m_terminal || !isatty(STDERR_FILENO)) return;
    auto editor = std::make_unique<Editor>(std::move(candidates));
    if (editor->edit && editor->past) m_editor = std::move(editor);
#else
    (void)candidates;
#endif
}

LineReader::~LineReader() = default;

LineReader::Got LineReader::read(std::string& line) {
#ifdef COLIBRI_HAVE_LIBEDIT
    if (m_editor) return m_editor->read(line);
#endif
    if (m_terminal) {
        std::fprintf(stderr, "> ");
        std::fflush(stderr);
    }
    const bool got = bool(std::getline(std::cin, line));
    if (interrupted().load()) {
        std::cin.clear();
        clearerr(stdin);
        if (m_terminal) std::fputc('\n', stderr);
        return Got::Interrupted;
    }
    if (!got) return Got::End;
    if (line.ends_with('\r')) line.pop_back();
    return Got::Line;
}

}  // namespace colibri::cli
