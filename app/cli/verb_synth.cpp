// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/cli.h"
#include "engine/base/format.h"
#include "engine/convert/synth/synth.h"

namespace colibri::cli {

namespace {

struct SynthArgs {
    SynthOptions synth;
    std::string target, quant = "q4_0";
    bool json = false;
};

int run(SynthArgs args) {
    const std::optional<DType> type = dtypeFromName(args.quant);
    if (!type) {
        return fail({Code::InvalidArgument, "--quant: \"" + args.quant + "\" is not a type",
                     "Use " + encodableNames()});
    }
    args.synth.dtype = *type;
    args.synth.target = args.target;
    ProgressLine progress;
    Result<ContainerInfo> info = synthesiseModel(args.synth, progress.function(), &interrupted());
    progress.finish();
    if (!info.ok()) return fail(info.status());
    const int64_t bytes = info->denseBytes + info->expertBytes;
    if (args.json) {
        return outJson({{"target", args.target},
                        {"name", info->config.name},
                        {"family", info->config.family},
                        {"source", info->source},
                        {"dtype", dtypeName(info->expertType)},
                        {"bytes", bytes},
                        {"fingerprint", info->fingerprint}});
    }
    message(args.target + ": " + info->source + ", " + formatGiB(double(bytes)));
    return kOk;
}

}  // namespace

void addSynth(Verbs& verbs) {
    auto args = std::make_shared<SynthArgs>();
    CLI::App* verb =
        verbs.add("synth", "Write a model of random weights in the shape of a real one",
                  [args] { return run(*args); });
    verb->add_option("SHAPE", args->synth.shape, synthShapeNames())->required();
    verb->add_option("-o,--output", args->target, "Folder to write; must not exist")->required();
    verb->add_option("--quant", args->quant, encodableNames())->capture_default_str();
    verb->add_option("--skew", args->synth.skew,
                     "Skew of the routing: 0 is nearly uniform, 1 has clear favourites")
        ->capture_default_str();
    verb->add_option("--layers", args->synth.layers, "Number of layers (default: all)")
        ->check(CLI::PositiveNumber);
    verb->add_option("--seed", args->synth.seed, "Same seed, same bytes")->capture_default_str();
    verb->add_flag("--json", args->json, "One JSON object on standard output");
    verb->footer("The model needs the time and memory of the real one; its output is random.");
}

}  // namespace colibri::cli
