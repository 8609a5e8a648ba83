// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/inspect.h"

#include <algorithm>
#include <cstring>

#include "engine/base/file.h"
#include "engine/convert/gguf_source.h"
#include "engine/convert/hf_source.h"
#include "engine/convert/open_source.h"
#include "engine/model/layout.h"

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

std::optional<SourceKind> sourceKindOf(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
        if (fs::exists(path / kModelFile, error)) return SourceKind::Container;
        if (fs::exists(path / "config.json", error)) return SourceKind::HuggingFace;
        return {};
    }
    if (!fs::is_regular_file(path, error)) return {};
    if (path.extension() == ".safetensors") return SourceKind::HuggingFace;
    if (startsWithGguf(path)) return SourceKind::Gguf;
    return {};
}

Result<OpenedSource> openSource(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) {
        return Status(Code::BadInput, path.string() + ": no such file or folder");
    }
    switch (sourceKindOf(path).value_or(SourceKind::Container)) {
        case SourceKind::HuggingFace: return openHfSource(path);
        case SourceKind::Gguf: return openGgufSource(path);
        case SourceKind::Container: break;
    }
    if (fs::exists(path / kModelFile, error)) {
        return Status(Code::BadInput, path.string() + ": already a converted model");
    }
    return Status(Code::BadInput, path.string() + ": not a checkpoint",
                  "Expected a folder with config.json, a .safetensors file, or a GGUF file");
}

ContainerInfo containerOf(const OpenedSource& source, const Plan& plan) {
    ContainerInfo info;
    info.config = plan.config;
    for (const DensePart& d : plan.dense) info.tensors.push_back(d.info);
    for (const ExpertsPart& p : plan.layers) info.expertLayers.push_back(p.layout);
    info.denseBytes = plan.denseBytes;
    info.expertBytes = plan.expertBytes;
    info.source = source.kind + ", " + std::string(dtypeName(plan.sourceType)) + ": " +
                  source.config.name;
    info.fingerprint = source.fingerprint;
    info.settleTypes();
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
    out.notes = source->notes;
    return out;
}

Result<ContainerInfo> plannedContainer(const fs::path& path, std::optional<DType> dtype) {
    Result<OpenedSource> source = openSource(path);
    if (!source) return source.status();
    Result<Plan> plan = makePlan(*source, dtype);
    if (!plan) return plan.status();
    return containerOf(*source, *plan);
}

int64_t containerBytes(const ContainerInfo& info) { return info.denseBytes + info.expertBytes; }

}  // namespace colibri
