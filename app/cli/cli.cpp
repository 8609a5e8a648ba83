// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri::cli {

namespace {
constexpr size_t kInputLimit = 256 << 20;  // the limit of readTextFile
constexpr std::chrono::seconds kWorthALine{1};
}  // namespace

void messageLines(std::string_view text) {
    std::fprintf(stderr, "%s\n", printableLines(text).c_str());
}

void message(std::string_view text) {
    constexpr std::string_view kItem = "\n  ";
    std::string shown;
    for (size_t from = 0; from <= text.size();) {
        const size_t to = std::min(text.find(kItem, from), text.size());
        if (from > 0) shown += kItem;
        shown += printable(text.substr(from, to - from));
        from = to == text.size() ? to + 1 : to + kItem.size();
    }
    std::fprintf(stderr, "%s\n", shown.c_str());
}

void messageFigures(std::string_view figures) {
    winsize size{};
    const bool terminal = isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    const size_t width = terminal && size.ws_col > 0 ? size.ws_col : figures.size();
    std::string text;
    size_t column = 0;
    while (!figures.empty()) {
        const std::string_view figure = figures.substr(0, figures.find("  "));
        figures.remove_prefix(std::min(figures.size(), figure.size() + 2));
        if (column > 0 && column + 2 + figure.size() > width) {
            text += '\n';
            column = 0;
        }
        if (column > 0) {
            text += "  ";
            column += 2;
        }
        text += figure;
        column += figure.size();
    }
    messageLines(text);
}

namespace {

// The Damerau-Levenshtein distance: the number of insertions, deletions, substitutions and swaps of
// adjacent letters that turn `a` into `b`.
size_t spellingDistance(std::string_view a, std::string_view b) {
    std::vector<size_t> before, last, now(b.size() + 1);
    std::iota(now.begin(), now.end(), size_t(0));
    for (size_t i = 1; i <= a.size(); ++i) {
        before = std::exchange(last, now);
        now[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = std::min(now[j], before[j - 2] + 1);
        }
    }
    return now[b.size()];
}

}  // namespace

std::string didYouMean(std::string_view given, const std::vector<std::string>& names) {
    if (given.size() > 64) return {};
    size_t best = std::max<size_t>(1, given.size() / 3) + 1;
    std::string out;
    for (const std::string& name : names) {
        const bool begins = given.size() > 1 && name.starts_with(given);
        const size_t distance = begins ? 1 : spellingDistance(given, name);
        if (distance >= best || distance >= name.size()) continue;
        best = distance;
        out = "Did you mean " + name + "? ";
    }
    return out;
}

int fail(const Status& status) {
    message("colibri: " + status.text());
    return exitCodeOf(status.code());
}

bool out(std::string_view bytes) {
    static bool broken = false;
    if (broken) return false;
    errno = 0;
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
        std::fflush(stdout) == 0) {
        return true;
    }
    broken = true;
    if (errno != EPIPE) {
        message(std::string("colibri: cannot write to standard output: ") + std::strerror(errno));
    }
    return false;
}

bool outText(std::string_view text) {
    static const bool terminal = isatty(STDOUT_FILENO);
    return terminal ? out(printableLines(text)) : out(text);
}

int outJson(const Json& json) {
    // Text from a model may contain any bytes. Invalid UTF-8 is replaced, and control characters
    // are written as JSON escapes, so that they do not act on a terminal.
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return out(printableLines(text) + "\n") ? kOk : kFailed;
}

Json jsonNumber(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

CancelFlag& interrupted() {
    static CancelFlag flag{false};
    return flag;
}

void installSignals() {
    interrupted().store(false);
    struct sigaction action {};
    action.sa_handler = [](int signal) {
        if (interrupted().exchange(true)) _exit(128 + signal);
    };
    sigemptyset(&action.sa_mask);  // no SA_RESTART: a signal ends a wait for input
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

void ProgressLine::show(const Progress& p) {
    const bool bytes = std::string_view(p.unit) == "bytes";
    const auto amount = [&](uint64_t n) {
        return bytes ? formatGiB(double(n)) : formatCount(int64_t(n)) + " " + p.unit;
    };
    std::string line = printable(p.stage);
    if (p.total > 0) {
        line += ": " + amount(p.done) + " of " + amount(p.total) + ", " +
                formatPercent(double(p.done) / double(p.total), 0);
    }
    if (isatty(STDERR_FILENO)) {
        std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
        std::fflush(stderr);
        m_open = true;
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (p.stage != m_stage) {
        m_stage = p.stage;
        m_begun = now;
        m_announced = false;
    } else if (!m_announced && now - m_begun >= kWorthALine) {
        message(p.stage);
        m_announced = true;
    }
}

void ProgressLine::finish() {
    if (m_open) std::fprintf(stderr, "\r\x1b[K");
    m_open = false;
}

Result<std::string> readInput(const std::string& path) {
    std::error_code ignored;
    const bool pipe = std::filesystem::is_fifo(path, ignored) ||
                      std::filesystem::is_character_file(path, ignored);
    if (path != "-" && !pipe) return readTextFile(path);
    const std::string source = path == "-" ? "/dev/stdin" : path;
    std::ifstream stream(source, std::ios::binary);
    std::string text;
    char block[1 << 16];
    while (stream && text.size() <= kInputLimit) {
        stream.read(block, sizeof block);
        text.append(block, size_t(stream.gcount()));
    }
    if (stream.bad() || (!stream.eof() && text.empty()))
        return systemError("cannot read", source, errno);
    if (text.size() > kInputLimit) {
        return Status(Code::BadInput,
                      source + " is larger than " + formatCount(kInputLimit) + " bytes");
    }
    return text;
}

Result<std::vector<int32_t>> parseIds(std::string_view text) {
    std::vector<int32_t> ids;
    size_t at = 0;
    while (at <= text.size()) {
        size_t end = std::min(text.find(',', at), text.size());
        std::string_view part = text.substr(at, end - at);
        at = end + 1;
        const size_t first = part.find_first_not_of(" \t\r\n");
        part = first == std::string_view::npos
                   ? std::string_view()
                   : part.substr(first, part.find_last_not_of(" \t\r\n") - first + 1);
        if (part.empty() && text.find_first_not_of(" \t\r\n") == std::string_view::npos) break;
        int32_t id = 0;
        const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), id);
        if (part.empty() || error != std::errc() || rest != part.data() + part.size()) {
            return Status(Code::InvalidArgument, "\"" + std::string(part) + "\" is not a token id",
                          "Write ids as 1,2,3");
        }
        ids.push_back(id);
    }
    return ids;
}

namespace {

// What is wrong with the value of an option; "" if nothing is.
std::string wrongValue(const CLI::Option& option, const std::string& value) {
    constexpr std::string_view kTexts[] = {"--prompt", "--system", "--text"};  // may be empty
    const std::string name = option.get_name();
    const std::string type = option.get_type_name();
    if (value.empty()) {
        const bool isText =
            std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts);
        return isText && type == "TEXT" ? "" : name + ": the value is empty";
    }
    if (type != "UINT" && type != "INT") return {};
    errno = 0;
    if (type == "UINT") {
        (void)std::strtoull(value.c_str(), nullptr, 0);
    } else {
        (void)std::strtoll(value.c_str(), nullptr, 0);
    }
    const bool fits = errno != ERANGE && (type == "INT" || value.find('-') == value.npos);
    return fits ? "" : name + ": " + value.substr(0, 40) + " is out of range";
}

}  // namespace

Status checkValues(const CLI::App& app) {
    for (const CLI::App* verb : app.get_subcommands()) {
        for (const CLI::Option* option : verb->get_options()) {
            for (const std::string& value : option->results()) {
                // The value of a flag comes from the parser, not from the user.
                if (option->get_items_expected_max() == 0) continue;
                const std::string wrong = wrongValue(*option, value);
                if (!wrong.empty()) return {Code::InvalidArgument, wrong};
            }
        }
        COLIBRI_TRY(checkValues(*verb));
    }
    return {};
}

CLI::App* Verbs::add(const std::string& name, const std::string& about, Action action) {
    CLI::App* verb = app.add_subcommand(name, about);
    verb->callback([this, action = std::move(action)] { chosen = action; });
    return verb;
}

void addRange(CLI::App& verb, double& from, double& to) {
    verb.add_option("--from", from, "Start of the range, in seconds of the session")
        ->type_name("S")
        ->check(CLI::NonNegativeNumber);
    verb.add_option("--to", to, "End of the range (default: end of the session)")
        ->type_name("S")
        ->check(CLI::NonNegativeNumber);
}

}  // namespace colibri::cli
