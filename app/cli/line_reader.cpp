// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <iostream>

#include "app/cli/cli.h"
#include "engine/text/unicode.h"
#ifdef COLIBRI_HAVE_LIBEDIT
#include <histedit.h>
#endif

namespace colibri::cli {

#ifdef COLIBRI_HAVE_LIBEDIT

constexpr int kLookForSignalsMs = 100;

struct LineReader::Editor {
    explicit Editor(Candidates given) : candidates(std::move(given)) {
        // For the widths of characters on the terminal. Not the user's language: its rules for
        // numbers and letters would reach other code.
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
                static wchar_t prompt[] = L"> ";
                return prompt;
            });
        el_wset(edit, EL_GETCFN, &Editor::readCharacter);
        el_wset(edit, EL_ADDFN, L"complete", L"Completes a word", &Editor::complete);
        el_wset(edit, EL_BIND, L"^I", L"complete", nullptr);
        el_wset(edit, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    }

    ~Editor() {
        if (edit) el_end(edit);
        if (past) history_wend(past);
    }

    Got read(std::string& line) {
        el_resize(edit);
        stopped = false;
        int count = 0;
        const wchar_t* typed = el_wgets(edit, &count);
        if (stopped || interrupted().load()) {
            std::fputc('\n', stderr);
            el_reset(edit);
            return Got::Interrupted;
        }
        if (!typed || count <= 0) return Got::End;
        line.clear();
        for (int i = 0; i < count && typed[i] != L'\n' && typed[i] != L'\r'; ++i)
            text::appendUtf8(line, char32_t(typed[i]));
        if (!line.empty()) {
            HistEventW event;
            history_w(past, &event, H_ENTER, std::wstring(typed, size_t(count)).c_str());
        }
        return Got::Line;
    }

    // libedit's own reading would try again after a signal; this one ends, so that Ctrl-C does.
    static int readCharacter(EditLine* edit, wchar_t* out) {
        Editor& self = of(edit);
        std::string bytes;
        for (;;) {
            // Ctrl-C may come just before the wait, or to another thread: neither ends the wait.
            pollfd input{STDIN_FILENO, POLLIN, 0};
            while (!interrupted().load() && poll(&input, 1, kLookForSignalsMs) <= 0) {
            }
            self.stopped = interrupted().load();
            if (self.stopped) return -1;
            char c = 0;
            const ssize_t got = ::read(STDIN_FILENO, &c, 1);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return got < 0 ? -1 : 0;
            bytes += c;
            const unsigned char lead = static_cast<unsigned char>(bytes[0]);
            const size_t size = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
            if (bytes.size() < size) continue;
            *out = wchar_t(text::nextUtf8(text::toValidUtf8(bytes), 0).code);
            return 1;
        }
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
    bool stopped = false;  // a signal ended the reading
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
