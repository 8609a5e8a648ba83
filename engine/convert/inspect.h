// SPDX-License-Identifier: Apache-2.0
// What lies at a path, before anything is converted: for `info` and the load page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

enum class SourceKind { Container, HuggingFace, Gguf };

// By looks alone; no weights and few bytes are read. A folder of the Hugging Face cache, or one with
// a single GGUF model, is what lies in it. Nothing: none of them.
std::optional<SourceKind> sourceKindOf(const std::filesystem::path& path);

struct SourceInfo {
    SourceKind kind = SourceKind::HuggingFace;
    std::filesystem::path path;
    std::string format;                  // "Hugging Face safetensors", "GGUF 3"
    ModelConfig config;
    int64_t tensors = 0;                 // used by the model
    int64_t files = 0;
    int64_t bytes = 0;                   // of all weight files
    DType dtype = DType::F32;            // predominant
    bool hasTokenizer = false, hasTemplate = false;
    std::string tokenizerProblem, templateProblem;  // "": there and usable
    std::string fingerprint;
    std::vector<std::string> notes;      // what was chosen or left out, and what the model lacks
    std::map<int32_t, std::string> tokens;  // as of TextProblems
    ContainerInfo planned;               // as plannedContainer gives it, in the source's types
};

// What keeps a container's tokenizer and chat template from being used; "" where nothing does.
struct TextProblems {
    std::string tokenizer, chatTemplate;
    std::map<int32_t, std::string> tokens;  // texts of the BOS and end tokens, where known
};
TextProblems textProblems(const ContainerInfo& container);

// What is wrong with a path of which sourceKindOf says nothing: what it is, and what to do.
Status notASource(const std::filesystem::path& path);

// Opens a checkpoint and checks all that convertModel checks before it writes (names, shapes,
// types); a tokenizer or template that would stop it is a problem in the result. REQUIRES: not a container (openContainer reads those). Errors as convertModel.
Result<SourceInfo> inspectSource(const std::filesystem::path& path);

// The container a conversion would give: config, tables and sizes, no hashes; `dir` is empty.
// Good for containerBytes and for estimateMemory.
Result<ContainerInfo> plannedContainer(const std::filesystem::path& path,
                                       std::optional<DType> dtype);

// Bytes on disk of all weights.
int64_t containerBytes(const ContainerInfo& info);

}  // namespace colibri
