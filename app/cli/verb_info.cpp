// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>

#include "app/cli/engine_args.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "engine/base/printable.h"
#include "engine/convert/flat/flat.h"
#include "engine/convert/inspect.h"

namespace colibri::cli {

namespace {

struct InfoArgs {
    std::string path;
    KnobOptions knobs;
    bool json = false, verify = false;
};

// A model folder, or a checkpoint and what its conversion without options would write.
struct Described {
    ContainerInfo container;
    std::optional<SourceInfo> source;  // set for a checkpoint
    TextProblems problems;
    std::vector<std::string> notes;
};

Result<Described> look(const std::string& path) {
    Described out;
    const std::optional<SourceKind> kind = sourceKindOf(path);
    if (kind == SourceKind::Container || !kind) {
        Result<ContainerInfo> info = openContainer(path);
        if (!info.ok()) return kind ? info.status() : notASource(path);
        out.container = std::move(*info);
        out.problems = textProblems(out.container);
        return out;
    }
    Result<SourceInfo> source = inspectSource(path);
    if (!source.ok()) return source.status();
    out.container = std::move(source->planned);
    out.problems = {source->tokenizerProblem, source->templateProblem, source->tokens};
    out.notes = source->notes;
    out.source = std::move(*source);
    return out;
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

// The text of a token; "" without a tokenizer.
std::string nameOfToken(const Described& model, int32_t id) {
    const auto found = model.problems.tokens.find(id);
    return found == model.problems.tokens.end() ? std::string() : found->second;
}

Json tokenJson(const Described& model, int32_t id, const std::string& sources) {
    if (id < 0) return nullptr;
    const std::string name = nameOfToken(model, id);
    return {{"id", id},
            {"text", name.empty() ? Json(nullptr) : Json(name)},
            {"sources", sources.empty() ? Json(nullptr) : Json(sources)}};
}

std::string sourceOf(const ModelConfig& c, size_t i) {
    return i < c.eosSources.size() ? c.eosSources[i] : std::string();
}

Json describe(const Described& model, const LoadShape& shape) {
    const ContainerInfo& info = model.container;
    const ModelConfig& c = info.config;
    const MemoryEstimate e = estimateMemory(info, shape);
    Json ends = Json::array();
    for (size_t i = 0; i < c.eosIds.size(); ++i) {
        ends.push_back(tokenJson(model, c.eosIds[i], sourceOf(c, i)));
    }
    const auto problem = [](const std::string& text) {
        return text.empty() ? Json(nullptr) : Json(text);
    };
    return {{"name", c.name},
            {"kind", !model.source ? "model" : "checkpoint"},
            {"format", model.source ? Json(model.source->format) : Json(nullptr)},
            {"source_bytes", model.source ? Json(model.source->bytes) : Json(nullptr)},
            {"source_files", model.source ? Json(model.source->files) : Json(nullptr)},
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
            {"tokenizer_problem", problem(model.problems.tokenizer)},
            {"chat_template_problem", problem(model.problems.chatTemplate)},
            {"bos_token", tokenJson(model, c.bosId, c.bosSource)},
            {"end_tokens", ends},
            {"notes", model.notes},
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

// Prints names and values in two columns.
class Table {
public:
    void add(const std::string& name, const std::string& value) {
        m_text += name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') +
                  printable(value) + "\n";
    }
    const std::string& text() const { return m_text; }

private:
    std::string m_text;
};

void addSizes(Table& table, const Described& model) {
    const ContainerInfo& info = model.container;
    const ModelConfig& c = info.config;
    table.add("Model", c.name + " (" + c.family + ")");
    table.add("Source", info.source);
    if (model.source) {
        table.add("Checkpoint", formatCount(model.source->files) +
                                    (model.source->files == 1 ? " file, " : " files, ") +
                                    formatGiB(double(model.source->bytes)));
    }
    table.add("Parameters", millions(info.parameterCount()) + ", " +
                                millions(info.activeParameterCount()) + " active per token");
    std::string layers = formatCount(c.numLayers) + ", none with experts";
    std::string types = info.denseTypeNames(), disk = formatGiB(double(info.denseBytes));
    if (c.moeLayerCount() > 0) {
        layers = formatCount(c.numLayers) + ", " + formatCount(c.moeLayerCount()) + " with " +
                 formatCount(c.numExperts) + " experts, top-" + formatCount(c.topK);
        types = "experts " + info.expertTypeNames() + "; dense " + types;
        disk += " dense, " + formatGiB(double(info.expertBytes)) + " experts of " +
                formatGiB(double(info.expertRecordBytes()));
    }
    table.add("Layers", layers);
    table.add("Types", types);
    table.add(model.source ? "Converted" : "On disk", disk);
}

// "<|im_end|> (2), from config.json"
std::string tokenText(const Described& model, int32_t id, const std::string& sources) {
    const std::string name = nameOfToken(model, id), number = std::to_string(id);
    return (name.empty() ? number : name + " (" + number + ")") +
           (sources.empty() ? "" : ", from " + sources);
}

void addTexts(Table& table, const Described& model) {
    const ContainerInfo& info = model.container;
    const ModelConfig& c = info.config;
    const auto usable = [](bool there, const std::string& problem) {
        return std::string(!there ? "no" : problem.empty() ? "yes" : "cannot be used");
    };
    table.add("Tokenizer, template", usable(info.hasTokenizer, model.problems.tokenizer) + ", " +
                                         usable(info.hasTemplate, model.problems.chatTemplate));
    if (info.hasTokenizer && !model.problems.tokenizer.empty())
        table.add("  tokenizer", model.problems.tokenizer);
    if (info.hasTemplate && !model.problems.chatTemplate.empty())
        table.add("  template", model.problems.chatTemplate);
    table.add("BOS token", c.bosId < 0 ? "none" : tokenText(model, c.bosId, c.bosSource));
    std::string ends;
    for (size_t i = 0; i < c.eosIds.size(); ++i) {
        ends += (i ? "; " : "") + tokenText(model, c.eosIds[i], sourceOf(c, i));
    }
    table.add("End tokens", ends.empty() ? "none: only the token limit ends a reply" : ends);
}

void addMemory(Table& table, const ContainerInfo& info, const LoadShape& shape) {
    const MemoryEstimate e = estimateMemory(info, shape);
    const bool experts = info.config.moeLayerCount() > 0;
    table.add("Context", formatCount(info.config.maxPositions) + " tokens at most");
    table.add("Memory to load",
              formatGiB(double(e.total())) + " with " +
                  (experts ? formatCount(shape.cacheSize) + " experts / layer and " : "") +
                  formatCount(shape.contextLength) + " tokens of context");
    table.add("  dense weights", formatGiB(double(e.dense)));
    if (experts) table.add("  expert cache", formatGiB(double(e.expertCache)));
    table.add("  KV cache", formatGiB(double(e.kvCache)));
    table.add("  buffers", formatGiB(double(e.buffers + e.recording)));
    table.add("Free memory", formatGiB(double(memoryFreeNow())));
}

std::string summary(const Described& model, const std::string& path, const LoadShape& shape) {
    Table table;
    addSizes(table, model);
    addTexts(table, model);
    addMemory(table, model.container, shape);
    for (const std::string& note : model.notes) table.add("Note", note);
    if (model.source && !isFlatFolder(path)) {
        table.add("To use it", "colibri convert " + path + " -o DIR");
    }
    return table.text();
}

int run(const InfoArgs& args) {
    Result<Described> model = look(args.path);
    if (!model.ok()) return fail(model.status());
    Result<KnobValues> values = args.knobs.values(model->container);
    if (!values.ok()) return fail(values.status());
    if (args.verify && model->source) {
        return fail({Code::Unsupported,
                     args.path + " (" + model->source->format + ") has no checksums to compare",
                     "Convert it: colibri convert " + args.path + " -o DIR"});
    }
    if (args.verify) {
        ProgressLine progress;
        const Status status =
            verifyContainer(model->container, progress.function(), &interrupted());
        progress.finish();
        if (!status.ok()) return fail(status);
        message("All checksums match.");
    }
    const LoadShape shape = shapeFor(model->container, *values);
    if (args.json) return outJson(describe(*model, shape));
    return out(summary(*model, args.path, shape)) ? kOk : kFailed;
}

}  // namespace

void addInfo(Verbs& verbs) {
    auto args = std::make_shared<InfoArgs>();
    CLI::App* verb = verbs.add("info", "Show what a model is, its sizes and the memory it needs",
                               [args] { return run(*args); });
    verb->add_option("PATH", args->path,
                     "Model folder, or a checkpoint: a Hugging Face folder or a GGUF file")
        ->required();
    verb->add_flag("--json", args->json, "One JSON object on standard output");
    verb->add_flag("--verify", args->verify, "Read every byte and verify the checksums");
    args->knobs.addTo(*verb);
}

}  // namespace colibri::cli
