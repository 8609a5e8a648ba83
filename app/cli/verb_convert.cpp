// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "engine/convert/converter.h"

namespace colibri::cli {

namespace {

struct ConvertArgs {
    std::string source, target, dtype, name, chatTemplate, layout = "container";
    std::vector<std::string> types;
    bool routerTable = false, json = false;
};

int run(const ConvertArgs& args) {
    ConvertOptions options;
    options.source = args.source;
    options.target = args.target;
    options.name = args.name;
    options.routerTable = args.routerTable;
    if (!args.dtype.empty()) {
        options.dtype = dtypeFromName(args.dtype);
        if (!options.dtype) {
            return fail({Code::InvalidArgument, "--dtype: \"" + args.dtype + "\" is not a type",
                         "Use " + encodableNames()});
        }
    }
    for (const std::string& entry : args.types) {
        const size_t equals = entry.find('=');
        const auto type =
            dtypeFromName(equals == std::string::npos ? "" : entry.substr(equals + 1));
        if (!type || equals == 0) {
            return fail({Code::InvalidArgument, "--type: \"" + entry + "\" is not PART=TYPE",
                         "For example head=f16; TYPE is " + encodableNames()});
        }
        options.types[entry.substr(0, equals)] = *type;
    }
    if (args.layout == "flat") options.layout = ConvertLayout::Flat;
    ProgressLine progress;
    std::vector<std::string> notes;
    options.chatTemplate = args.chatTemplate;
    options.onNote = [&](const std::string& note) {
        notes.push_back(note);
        progress.note(note);
    };
    Result<ContainerInfo> info = convertModel(options, progress.function(), &interrupted());
    progress.finish();
    if (!info.ok()) {
        if (info.status().code() == Code::Cancelled) {
            message("Interrupted. Run the same command again to resume.");
        }
        return fail(info.status());
    }
    const int64_t bytes = info->denseBytes + info->expertBytes;
    if (args.json) {
        return outJson({{"target", args.target},
                        {"name", info->config.name},
                        {"family", info->config.family},
                        {"dtype", info->expertTypeNames()},
                        {"bytes", bytes},
                        {"fingerprint", info->fingerprint},
                        {"notes", notes}});
    }
    message(args.target + ": " + info->config.name + ", " + formatGiB(double(bytes)));
    return kOk;
}

}  // namespace

void addConvert(Verbs& verbs) {
    auto args = std::make_shared<ConvertArgs>();
    CLI::App* verb = verbs.add("convert", "Convert a checkpoint to a model folder",
                               [args] { return run(*args); });
    verb->add_option(
            "SRC", args->source,
            "Hugging Face folder (also in its cache), .safetensors file or .gguf file (any part "
            "of a split one)")
        ->required();
    verb->add_option("-o,--output", args->target, "Folder to write; must not exist")->required();
    verb->add_option(
        "--dtype", args->dtype,
        encodableNames() +
            " (default: as in the source; each tensor of a GGUF file keeps its own type)");
    verb->add_option("--type", args->types,
                     "PART=TYPE: overrides --dtype for one matrix; repeatable: embed, head, "
                     "q, k, v, o, gate, up, down, ...; for experts w1, w3, w2 (gate, up, down)");
    verb->add_option("--name", args->name, "Display name (default: from the source)");
    verb->add_option("--chat-template", args->chatTemplate,
                     "Chat template to include: the name of one of several, or a file")
        ->type_name("NAME|FILE");
    verb->add_option("--layout", args->layout,
                     "container, or flat: one plain file per expert and matrix, f16 or bf16")
        ->check(CLI::IsMember({"container", "flat"}));
    verb->add_flag("--router-table", args->routerTable,
                   "Also write router_table.bin (token to experts) for router_mode table and "
                   "prefetch_source router_table");
    verb->add_flag("--json", args->json, "One JSON object on standard output");
}

}  // namespace colibri::cli
