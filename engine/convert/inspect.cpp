// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/inspect.h"

#include <algorithm>
#include <cstring>

#include "engine/base/file.h"
#include "engine/base/printable.h"
#include "engine/base/readable.h"
#include "engine/convert/gguf/gguf_source.h"
#include "engine/convert/hf/hf_source.h"
#include "engine/convert/open_source.h"
#include "engine/convert/source/foreign.h"
#include "engine/convert/source/locate.h"
#include "engine/convert/source/source_texts.h"
#include "engine/model/layout.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

bool startsWithGguf(const fs::path& path) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return false;
    char magic[4] = {};
    if (!file->readAt(0, std::as_writable_bytes(std::span(magic))).ok()) return false;
    return std::memcmp(magic, "GGUF", 4) == 0;
}

}  // namespace

std::optional<SourceKind> sourceKindOf(const fs::path& given) {
    std::error_code error;
    const Result<Located> located = locateSource(given);
    const fs::path path = located ? located->path : given;
    if (fs::is_directory(path, error)) {
        if (fs::exists(path / kModelFile, error)) return SourceKind::Container;
        if (isThere(path / "config.json") || isThere(path / "adapter_config.json")) {
            return SourceKind::HuggingFace;
        }
        return {};
    }
    if (!fs::is_regular_file(path, error)) return {};
    if (path.extension() == ".safetensors") return SourceKind::HuggingFace;
    if (startsWithGguf(path)) return SourceKind::Gguf;
    return {};
}

Result<OpenedSource> openSource(const fs::path& path, const std::string& chatTemplate) {
    Result<Located> located = locateSource(path);
    if (!located) return located.status();
    const auto opened = [&]() -> Result<OpenedSource> {
        switch (sourceKindOf(located->path).value_or(SourceKind::Container)) {
            case SourceKind::HuggingFace:
                return openHfSource(located->path, chatTemplate);
            case SourceKind::Gguf:
                return openGgufSource(located->path, chatTemplate);
            case SourceKind::Container:
                break;
        }
        return notASource(path);
    };
    Result<OpenedSource> source = opened();
    if (source.status().code() == Code::BadInput) {
        const Status unfinished = unfinishedDownload(located->path);
        if (!unfinished.ok()) {
            return Status(Code::BadInput, source.status().message() + ". " + unfinished.message(),
                          unfinished.hint());
        }
    }
    if (source) {
        source->notes.insert(source->notes.begin(), located->notes.begin(), located->notes.end());
    }
    return source;
}

Status notASource(const fs::path& path) {
    std::error_code error;
    COLIBRI_TRY(checkReadable(path));
    if (!fs::exists(path, error)) {
        return Status(Code::BadInput, printable(path.string()) + ": no such file or folder");
    }
    if (fs::exists(path / kModelFile, error)) {
        return Status(Code::BadInput, printable(path.string()) + ": already a converted model");
    }
    const Result<Located> located = locateSource(path);
    COLIBRI_TRY(located.status());
    COLIBRI_TRY(checkReadable(located->path));
    COLIBRI_TRY(unfinishedDownload(located->path));
    return notACheckpoint(path);
}

std::vector<std::string> notesOf(const OpenedSource& source) {
    std::vector<std::string> notes = source.notes;
    const auto add = [&](const Status& problem, const char* consequence) {
        if (problem.ok()) return;
        const bool stops = problem.code() != Code::Unsupported;
        notes.push_back(problem.text() + ". " +
                        (stops ? "A conversion would fail here" : consequence));
    };
    add(source.tokenizerProblem, "Without a tokenizer the model accepts token ids only");
    add(source.templateProblem,
        "Without one the model cannot chat; generate can continue any text");
    return notes;
}

namespace {

std::map<int32_t, std::string> textsOfTokens(const Tokenizer& tokenizer,
                                             const ModelConfig& config) {
    std::map<int32_t, std::string> out;
    if (config.bosId >= 0) out[config.bosId] = tokenizer.idToToken(config.bosId);
    for (const int32_t id : config.eosIds) out[id] = tokenizer.idToToken(id);
    return out;
}

}  // namespace

TextProblems textProblems(const ContainerInfo& container) {
    TextProblems out;
    if (!container.hasTokenizer) {
        out.tokenizer = "no tokenizer";
    } else if (const auto tokenizer = Tokenizer::load(container.dir); !tokenizer) {
        out.tokenizer = tokenizer.status().message();
    } else {
        out.tokens = textsOfTokens(**tokenizer, container.config);
    }
    if (!container.hasTemplate) {
        out.chatTemplate = "no chat template";
        return out;
    }
    const fs::path file = container.dir / "chat_template.jinja";
    const auto text = readTextFile(file, 4 << 20);
    if (!text) {
        out.chatTemplate = text.status().message();
    } else if (const auto parsed = ChatTemplate::parse(*text, file.filename().string()); !parsed) {
        out.chatTemplate = parsed.status().message();
    }
    return out;
}

ContainerInfo containerOf(const OpenedSource& source, const Plan& plan) {
    ContainerInfo info;
    info.config = plan.config;
    for (const DensePart& d : plan.dense) info.tensors.push_back(d.info);
    for (const ExpertsPart& p : plan.layers) info.expertLayers.push_back(p.layout);
    info.denseBytes = plan.denseBytes;
    info.expertBytes = plan.expertBytes;
    info.source =
        source.kind + ", " + std::string(dtypeName(plan.sourceType)) + ": " + source.config.name;
    info.fingerprint = source.fingerprint;
    info.updateExpertType();
    for (auto& [name, content] : source.extraFiles) {
        info.hasTokenizer |= name == "tokenizer.json";
        info.hasTemplate |= name == "chat_template.jinja";
    }
    return info;
}

Result<SourceInfo> inspectSource(const fs::path& path) {
    Result<OpenedSource> source = openSource(path);
    if (!source) return source.status();
    Result<Plan> plan = makePlan(*source, {});
    if (!plan) return plan.status();
    ContainerInfo container = containerOf(*source, *plan);
    SourceInfo out;
    out.kind = sourceKindOf(path).value_or(SourceKind::HuggingFace);
    out.path = path;
    out.format = source->kind;
    out.config = plan->config;
    out.tensors = plan->sourceTensors;
    out.files = int64_t(source->checkpoint.files().size());
    out.bytes = source->checkpoint.bytes();
    out.dtype = plan->sourceType;
    out.hasTokenizer = container.hasTokenizer;
    out.hasTemplate = container.hasTemplate;
    out.fingerprint = source->fingerprint;
    out.tokenizerProblem = source->tokenizerProblem.message();
    out.templateProblem = source->templateProblem.message();
    out.notes = notesOf(*source);
    for (const auto& [name, content] : source->extraFiles) {
        if (name != "tokenizer.json" || !source->tokenizerProblem.ok()) continue;
        const auto tokenizer = Tokenizer::parse(content, name);
        if (tokenizer) out.tokens = textsOfTokens(**tokenizer, out.config);
    }
    out.planned = std::move(container);
    return out;
}

Result<ContainerInfo> plannedContainer(const fs::path& path, std::optional<DType> dtype) {
    Result<OpenedSource> source = openSource(path);
    if (!source) return source.status();
    Result<Plan> plan = makePlan(*source, dtype);
    if (!plan) return plan.status();
    return containerOf(*source, *plan);
}

int64_t containerBytes(const ContainerInfo& info) {
    return info.denseBytes + info.expertBytes;
}

}  // namespace colibri
