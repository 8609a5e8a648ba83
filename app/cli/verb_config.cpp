// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"
#include "engine/knobs/knob_config.h"
#include "engine/runtime/engine.h"

namespace colibri::cli {

namespace {

struct ConfigArgs {
    std::string file, model;
    bool json = false;
};

int check(const ConfigArgs& args) {
    const Result<KnobValues> values = knobsFromFile(args.file);
    if (!values.ok()) return fail(values.status());
    std::optional<ContainerInfo> info;
    if (!args.model.empty()) {
        Result<ContainerInfo> opened = openContainer(args.model);
        if (!opened.ok()) return fail(opened.status());
        info = std::move(*opened);
    }
    Json knobs = Json::object(), problems = Json::object();
    for (const KnobRow& row : knobTable()) {
        const std::optional<int64_t>& value = (*values)[size_t(row.id)];
        if (!value) continue;
        const std::string shown = knobValueText(row, *value);
        if (info) {
            const KnobLimits limits = knobLimitsFor(row.id, *info);
            if (Result<int64_t> fits = parseKnobValue(row, shown, limits); !fits.ok()) {
                return fail(Status(Code::BadInput, fits.status().message(), fits.status().hint())
                                .in(args.file));
            }
            // The value is in range but may have no effect on this model or machine.
            const std::string problem = knobProblemFor(row.id, *value, *info);
            if (!problem.empty()) problems[row.name] = problem;
        }
        knobs[row.name] = row.choices.empty() ? Json(*value) : Json(shown);
    }
    for (const auto& [name, problem] : problems.items()) {
        message(args.file + ": " + name + " has no effect: " + problem.get<std::string>());
    }
    if (args.json) {
        return outJson(
            {{"ok", true}, {"knobs", std::move(knobs)}, {"problems", std::move(problems)}});
    }
    message(args.file + ": " + std::to_string(knobs.size()) + " knobs, " +
            (problems.empty() ? "no problems"
                              : std::to_string(problems.size()) + " without effect here"));
    return kOk;
}

}  // namespace

void addConfig(Verbs& verbs) {
    CLI::App* verb = verbs.app.add_subcommand("config", "Knob configuration files");
    verb->require_subcommand(1);
    auto args = std::make_shared<ConfigArgs>();
    CLI::App* checkVerb = verb->add_subcommand("check", "Check a configuration file");
    checkVerb->callback([args, &verbs] { verbs.chosen = [args] { return check(*args); }; });
    checkVerb->add_option("FILE", args->file, "JSON file")->required();
    checkVerb->add_option("--model", args->model, "Check the ranges for this model too")
        ->type_name("DIR");
    checkVerb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
