// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>

#include "app/cli/engine_args.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/convert/flat.h"
#include "engine/convert/inspect.h"

namespace colibri::cli {

namespace {

struct InfoArgs {
    std::string path;
    KnobOptions knobs;
    bool json = false, verify = false;
};

// A path that is a checkpoint and not a container is recognised for what it is.
Status explain(const Status& status, const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path p(path);
    if (fs::exists(p / "model.json", ignored)) return status;
    const std::string extension = p.extension().string();
    if (fs::exists(p / "config.json", ignored) || extension == ".gguf" ||
        extension == ".safetensors") {
        return {Code::Unsupported, path + " is a checkpoint, not a model folder",
                "Convert it first: colibri convert " + path + " -o DIR"};
    }
    return status;
}

LoadShape shapeFor(const ContainerInfo& info, const KnobValues& values) {
    const auto value = [&](KnobId id) {
        return values[size_t(id)].value_or(knobLimitsFor(id, info).defaultValue);
    };
    LoadShape shape;
    shape.cacheSize = value(KnobId::ExpertCacheSize);
    shape.contextLength = value(KnobId::ContextLength);
    shape.kvType = KvType(value(KnobId::KvDtype));
    shape.prefillChunk = value(KnobId::PrefillChunk);
    shape.threads = value(KnobId::ComputeThreads);
    return shape;
}

Json describe(const ContainerInfo& info, const LoadShape& shape) {
    const ModelConfig& c = info.config;
    const MemoryEstimate e = estimateMemory(info, shape);
    return {{"name", c.name},
            {"family", c.family},
            {"source", info.source},
            {"fingerprint", info.fingerprint},
            {"parameters", info.parameterCount()},
            {"active_parameters", info.activeParameterCount()},
            {"vocab_size", c.vocabSize},
            {"hidden_size", c.hiddenSize},
            {"num_hidden_layers", c.numLayers},
            {"moe_layers", c.moeLayerCount()},
            {"num_experts", c.numExperts},
            {"num_experts_per_tok", c.topK},
            {"expert_size", c.expertSize},
            {"max_position_embeddings", c.maxPositions},
            {"dense_dtype", info.denseTypeNames()},
            {"expert_dtype", info.expertTypeNames()},
            {"dense_bytes", info.denseBytes},
            {"expert_bytes", info.expertBytes},
            {"expert_record_bytes", info.expertRecordBytes()},
            {"tokenizer", info.hasTokenizer},
            {"chat_template", info.hasTemplate},
            {"memory",
             {{"expert_cache_size", shape.cacheSize},
              {"context_length", shape.contextLength},
              {"dense", e.dense},
              {"expert_cache", e.expertCache},
              {"kv_cache", e.kvCache},
              {"buffers", e.buffers},
              {"recording", e.recording},
              {"total", e.total()},
              {"free_now", memoryFreeNow()}}}};
}

std::string millions(int64_t n) {
    return formatSig(double(n) / 1e6) + " M";
}

std::string summary(const ContainerInfo& info, const LoadShape& shape) {
    const ModelConfig& c = info.config;
    const MemoryEstimate e = estimateMemory(info, shape);
    std::string s;
    const auto line = [&](const std::string& name, const std::string& value) {
        s += name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + value + "\n";
    };
    line("Model", c.name + " (" + c.family + ")");
    line("Source", info.source);
    line("Parameters", millions(info.parameterCount()) + ", " +
                           millions(info.activeParameterCount()) + " active per token");
    const bool experts = c.moeLayerCount() > 0;
    std::string layers = formatCount(c.numLayers) + ", none with experts";
    std::string types = info.denseTypeNames(), disk = formatGiB(double(info.denseBytes));
    if (experts) {
        layers = formatCount(c.numLayers) + ", " + formatCount(c.moeLayerCount()) + " with " +
                 formatCount(c.numExperts) + " experts, top-" + formatCount(c.topK);
        types = "experts " + info.expertTypeNames() + "; dense " + types;
        disk += " dense, " + formatGiB(double(info.expertBytes)) + " experts of " +
                formatGiB(double(info.expertRecordBytes()));
    }
    line("Layers", layers);
    line("Types", types);
    line("On disk", disk);
    line("Tokenizer, template",
         std::string(info.hasTokenizer ? "yes" : "no") + ", " + (info.hasTemplate ? "yes" : "no"));
    line("Context", formatCount(c.maxPositions) + " tokens at most");
    line("Memory to load",
         formatGiB(double(e.total())) + " with " +
             (experts ? formatCount(shape.cacheSize) + " experts / layer and " : "") +
             formatCount(shape.contextLength) + " tokens of context");
    line("  dense weights", formatGiB(double(e.dense)));
    if (experts) line("  expert cache", formatGiB(double(e.expertCache)));
    line("  KV cache", formatGiB(double(e.kvCache)));
    line("  buffers", formatGiB(double(e.buffers + e.recording)));
    line("Free memory", formatGiB(double(memoryFreeNow())));
    return s;
}

int run(const InfoArgs& args) {
    const bool flat = isFlatFolder(args.path);
    Result<ContainerInfo> info =
        flat ? plannedContainer(args.path, std::nullopt) : openContainer(args.path);
    if (!info.ok()) return fail(flat ? info.status() : explain(info.status(), args.path));
    Result<KnobValues> values = args.knobs.values(*info);
    if (!values.ok()) return fail(values.status());
    if (args.verify && flat) {
        return fail({Code::Unsupported, "a flat folder has no checksums to compare",
                     "Convert it: colibri convert " + args.path + " -o DIR"});
    }
    if (args.verify) {
        ProgressLine progress;
        const Status status = verifyContainer(*info, progress.function(), &interrupted());
        progress.finish();
        if (!status.ok()) return fail(status);
        message("Every byte is as it was written.");
    }
    const LoadShape shape = shapeFor(*info, *values);
    if (args.json) return outJson(describe(*info, shape));
    return out(summary(*info, shape)) ? kOk : kFailed;
}

}  // namespace

void addInfo(Verbs& verbs) {
    auto args = std::make_shared<InfoArgs>();
    CLI::App* verb = verbs.add("info", "What a model is, its sizes, the memory it takes",
                               [args] { return run(*args); });
    verb->add_option("PATH", args->path, "Model folder")->required();
    verb->add_flag("--json", args->json, "One JSON object on standard output");
    verb->add_flag("--verify", args->verify, "Read every byte and compare checksums");
    args->knobs.addTo(*verb);
}

}  // namespace colibri::cli
