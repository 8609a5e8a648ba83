// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <exception>
#include <new>
#include <sstream>

#include "app/cli/cli.h"
#include "engine/base/process.h"

namespace {

constexpr const char* kFooter =
    "Results go to standard output, progress and messages to standard error.\n"
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 bad input, 4 unsupported.";

// The arguments in the order that CLI11 expects: last first. "--option=" becomes an option with an
// empty value, so that it does not take the next argument.
std::vector<std::string> argumentsOf(int argc, char** argv) {
    std::vector<std::string> arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string_view a = argv[i];
        if (a.size() > 3 && a.substr(0, 2) == "--" && a.find('=') == a.size() - 1) {
            arguments.emplace_back(a.substr(0, a.size() - 1));
            arguments.emplace_back();
        } else {
            arguments.emplace_back(a);
        }
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
}

// An unknown option is often a misspelled one: suggests the closest name.
void suggestOption(const CLI::App& app, int argc, char** argv) {
    using namespace colibri::cli;
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands()) {
        for (const CLI::Option* option : verb->get_options()) names.push_back(option->get_name());
    }
    for (int i = 1; i < argc; ++i) {
        const std::string_view whole = argv[i], given = whole.substr(0, whole.find('='));
        if (!given.starts_with("--") || std::count(names.begin(), names.end(), given)) continue;
        if (const std::string hint = didYouMean(given, names); !hint.empty()) message(hint);
    }
}

// Reports what is wrong with the arguments. The parser quotes them unescaped.
int refuseArguments(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
    colibri::cli::message(error.what());
    colibri::cli::message("Run with --help for more information.");
    suggestOption(app, argc, argv);
    return colibri::kUsage;
}

int run(int argc, char** argv) {
    using namespace colibri;
    using namespace colibri::cli;
    CLI::App app("Runs Mixture-of-Experts models and shows where the time goes.", "colibri");
    app.set_version_flag("--version", std::string("colibri ") + COLIBRI_VERSION);
    app.require_subcommand(1);
    app.footer(kFooter);
    Verbs verbs{app, {}};
    addConvert(verbs);
    addSynth(verbs);
    addInfo(verbs);
    addChat(verbs);
    addGenerate(verbs);
    addLogits(verbs);
    addTokenize(verbs);
    addDetokenize(verbs);
    addTemplate(verbs);
    addBench(verbs);
    addPerplexity(verbs);
    addCompare(verbs);
    addSimulate(verbs);
    addReplay(verbs);
    addServe(verbs);
    addLoad(verbs);
    addDiff(verbs);
    addExplain(verbs);
    addExport(verbs);
    addRecover(verbs);
    addConfig(verbs);
    addDiagnose(verbs);
    if (argc == 1) {
        messageLines(app.help());
        return kUsage;
    }
    try {
        app.parse(argumentsOf(argc, argv));
    } catch (const CLI::RequiredError& error) {
        if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
            std::vector<std::string> names;
            for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
            return fail({Code::InvalidArgument, "unknown command \"" + std::string(argv[1]) + "\"",
                         didYouMean(argv[1], names) + "colibri --help lists them"});
        }
        return refuseArguments(app, error, argc, argv);
    } catch (const CLI::ParseError& error) {
        std::ostringstream text, ignored;
        if (app.exit(error, text, ignored) != 0) return refuseArguments(app, error, argc, argv);
        return out(text.str()) ? kOk : kFailed;  // --help, --version
    }
    if (const Status status = checkValues(app); !status.ok()) return fail(status);
    return verbs.chosen();
}

}  // namespace

int main(int argc, char** argv) {
    colibri::prepareProcess();
    colibri::cli::installSignals();
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return colibri::cli::fail(
            {colibri::Code::OutOfMemory, "out of memory",
             "Close other programs or raise the limit; a model needs less memory with "
             "a smaller --expert-cache-size or --context-length"});
    } catch (const std::exception& error) {
        colibri::cli::message(std::string("colibri: ") + error.what());
        return colibri::kFailed;
    }
}
