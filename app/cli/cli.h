// SPDX-License-Identifier: GPL-3.0-or-later
// Functions that all verbs of the command line share: output, signals, input.
// Results go to standard output, everything else to standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/process.h"
#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri::cli {

using Json = nlohmann::ordered_json;

// Prints "colibri: message. hint" and returns the exit code of the status.
int fail(const Status& status);
// Prints one line on standard error, or a line with a list of items below it, each on a line that
// begins with two spaces. Control characters in the lines are escaped, so the text may contain
// names and paths.
void message(std::string_view text);
// Prints text of several lines, which must not contain line feeds from untrusted input.
void messageLines(std::string_view text);
// Prints figures that are separated by two spaces. On a terminal, a figure that does not fit starts
// a new line.
void messageFigures(std::string_view figures);

// "Did you mean X? " with the name whose spelling is closest; "" if none is close.
std::string didYouMean(std::string_view given, const std::vector<std::string>& names);

// Writes and flushes. Returns false if standard output is closed or full. The error is reported
// once, and not at all for a closed pipe, because its reader has ended.
bool out(std::string_view bytes);
// Prints text from a model or a file. Control characters are escaped on a terminal only.
bool outText(std::string_view text);
int outJson(const Json& json);  // prints one line; returns the exit code

Json jsonNumber(double value);  // null if `value` is not finite

// Set by the first Ctrl-C or SIGTERM; the second one ends the program immediately.
CancelFlag& interrupted();
void installSignals();

// Shows the progress of a long job on standard error. A terminal shows one line that is rewritten.
// A log file gets one line for each stage that takes longer than a second.
class ProgressLine {
public:
    ~ProgressLine() { finish(); }
    void show(const Progress& progress);
    void finish();                        // ends the line
    void note(const std::string& text) {  // prints a line that stays
        finish();
        message(text);
    }
    ProgressFn function() {
        return [this](const Progress& p) { show(p); };
    }

private:
    std::string m_stage;
    std::chrono::steady_clock::time_point m_begun;  // start of the stage
    bool m_open = false, m_announced = false;
};

// Reads a whole text file, or standard input if `path` is "-" or a pipe.
Result<std::string> readInput(const std::string& path);

// Parses "1,2,3"; white space is allowed. Errors: InvalidArgument.
Result<std::vector<int32_t>> parseIds(std::string_view text);

// A verb registers its options and the function that runs it.
using Action = std::function<int()>;
struct Verbs {
    CLI::App& app;
    Action chosen;  // the verb on the command line
    CLI::App* add(const std::string& name, const std::string& about, Action action);
};

// Rejects what the parser accepts silently: empty values of options that need text, and integers
// that the parser clamps because they are out of range. Errors: InvalidArgument.
Status checkValues(const CLI::App& app);

// Adds --from and --to, a range in seconds of a session. Without them both stay as they are.
void addRange(CLI::App& verb, double& from, double& to);

void addConvert(Verbs& verbs);
void addInfo(Verbs& verbs);
void addChat(Verbs& verbs);
void addGenerate(Verbs& verbs);
void addLogits(Verbs& verbs);
void addTokenize(Verbs& verbs);
void addDetokenize(Verbs& verbs);
void addTemplate(Verbs& verbs);
void addBench(Verbs& verbs);
void addPerplexity(Verbs& verbs);
void addCompare(Verbs& verbs);
void addConfig(Verbs& verbs);
void addDiagnose(Verbs& verbs);
void addDiff(Verbs& verbs);
void addExplain(Verbs& verbs);
void addExport(Verbs& verbs);
void addRecover(Verbs& verbs);
void addReplay(Verbs& verbs);
void addSimulate(Verbs& verbs);
void addServe(Verbs& verbs);
void addLoad(Verbs& verbs);
void addSynth(Verbs& verbs);

}  // namespace colibri::cli
