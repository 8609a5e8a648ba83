// SPDX-License-Identifier: Apache-2.0
// Examines what is at a path before it is converted, for `info` and the load page.
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

// Decides by names and a few bytes; reads no weights. A folder of the Hugging Face cache, or one
// with a single GGUF model, has the kind of its content. Nothing: none of these kinds.
std::optional<SourceKind> sourceKindOf(const std::filesystem::path& path);

struct SourceInfo {
    SourceKind kind = SourceKind::HuggingFace;
    std::filesystem::path path;
    std::string format;  // "Hugging Face safetensors", "GGUF 3"
    ModelConfig config;
    int64_t tensors = 0;  // used by the model
    int64_t files = 0;
    int64_t bytes = 0;         // of all weight files
    DType dtype = DType::F32;  // predominant
    bool hasTokenizer = false, hasTemplate = false;
    std::string tokenizerProblem, templateProblem;  // "": present and usable
    std::string fingerprint;
    std::vector<std::string> notes;         // what was chosen or left out, and what the model lacks
    std::map<int32_t, std::string> tokens;  // as of TextProblems
    ContainerInfo planned;                  // the result of plannedContainer in the source's types
};

// Why a container's tokenizer and chat template cannot be used; "" if they can.
struct TextProblems {
    std::string tokenizer, chatTemplate;
    std::map<int32_t, std::string> tokens;  // texts of the BOS and end tokens, where known
};
TextProblems textProblems(const ContainerInfo& container);

// The error for a path for which sourceKindOf returns nothing: what it is, and what to do.
Status notASource(const std::filesystem::path& path);

// Opens a checkpoint and makes all checks that convertModel makes before it writes (names, shapes,
// types). A tokenizer or template that would stop a conversion is a problem in the result.
// REQUIRES: not a container (openContainer reads those). Errors: those of convertModel.
Result<SourceInfo> inspectSource(const std::filesystem::path& path);

// The container that a conversion would write: config, tables and sizes, no hashes; `dir` is empty.
// Sufficient for containerBytes and for estimateMemory.
Result<ContainerInfo> plannedContainer(const std::filesystem::path& path,
                                       std::optional<DType> dtype);

// Bytes on disk of all weights.
int64_t containerBytes(const ContainerInfo& info);

}  // namespace colibri
