// SPDX-License-Identifier: GPL-3.0-or-later
// What all verbs of the command line share: output, signals, numbers in JSON.
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
// One line on standard error, or a line with a list of indented items below it. Control characters
// of names and paths in it, line feeds too, are escaped.
void message(std::string_view text);
// Text of several lines; none of it may come from outside.
void messageLines(std::string_view text);
// Figures with two spaces between them; on a terminal they begin a new line where they would not
// fit in one.
void messageFigures(std::string_view figures);

// "Did you mean X? " with the name that is spelled nearly so; "" when there is none.
std::string didYouMean(std::string_view given, const std::vector<std::string>& names);

// Writes and flushes; false when standard output is closed or full (told once, silently for a
// closed pipe: whoever reads has had enough).
bool out(std::string_view bytes);
// Text that a model or a file wrote: raw, but on a terminal its control characters are escaped.
bool outText(std::string_view text);
int outJson(const Json& json);  // one line; the verb's exit code

Json jsonNumber(double value);  // null when not finite

// Set by the first Ctrl-C (or SIGTERM); the second ends the program at once.
CancelFlag& interrupted();
void installSignals();

// Progress of a long job on standard error: a line that is rewritten on a terminal. In a log file
// one line for each stage that takes longer than a second: what is quick is of no interest later.
class ProgressLine {
public:
    ~ProgressLine() { finish(); }
    void show(const Progress& progress);
    void finish();                        // ends the line
    void note(const std::string& text) {  // a line that stays
        finish();
        message(text);
    }
    ProgressFn function() {
        return [this](const Progress& p) { show(p); };
    }

private:
    std::string m_stage;
    std::chrono::steady_clock::time_point m_begun;  // of the stage
    bool m_open = false, m_told = false;
};

// A whole text file, or standard input for "-" and for pipes.
Result<std::string> readInput(const std::string& path);

// "1,2,3" (white space is fine) -> ids. Errors: InvalidArgument.
Result<std::vector<int32_t>> parseIds(std::string_view text);

// A verb registers its options and gives the function that runs it.
using Action = std::function<int()>;
struct Verbs {
    CLI::App& app;
    Action chosen;  // of the verb on the command line
    CLI::App* add(const std::string& name, const std::string& about, Action action);
};

// What the parser takes silently: empty values where no text is asked for, and whole numbers that
// it cuts to the largest it can hold.
Status checkValues(const CLI::App& app);

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
void addServe(Verbs& verbs);
void addLoad(Verbs& verbs);
void addSynth(Verbs& verbs);

}  // namespace colibri::cli
