// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>
#include <exception>

#include "app/cli/cli.h"

namespace {

constexpr const char* kFooter =
    "Results go to standard output, progress and messages to standard error.\n"
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 bad input, 4 unsupported.";

int run(int argc, char** argv) {
    using namespace colibri::cli;
    CLI::App app("Runs Mixture-of-Experts models and shows where the time goes.", "colibri");
    app.set_version_flag("--version", std::string("colibri ") + COLIBRI_VERSION);
    app.require_subcommand(1);
    app.footer(kFooter);
    Verbs verbs{app, {}};
    addConvert(verbs);
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
    addConfig(verbs);
    addDiagnose(verbs);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error, std::cout, std::cerr) == 0 ? kOk : kUsage;
    }
    return verbs.chosen();
}

}  // namespace

int main(int argc, char** argv) {
    colibri::cli::installSignals();
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {  // out of memory, most likely
        colibri::cli::message(std::string("colibri: ") + error.what());
        return colibri::cli::kFailed;
    }
}
