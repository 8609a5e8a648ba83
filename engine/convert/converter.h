// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to a container: streamed tensor by tensor, written to a temporary sibling
// folder and renamed at the end. A stopped conversion resumes. An unknown, missing, mis-shaped or
// non-finite tensor stops with a list.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

enum class ConvertLayout { Container, Flat };  // Flat: engine/convert/flat/flat.h

struct ConvertOptions {
    std::filesystem::path source;        // HF folder, .safetensors file, or .gguf file
    std::filesystem::path target;        // must not exist (or be an interrupted conversion of this)
    // Type of the matrices, one that hasEncoder; routers, norms and biases stay f32. None: each
    // keeps the source's. With q4_0 and mxfp4 the embedding and the head are kept at q8_0.
    std::optional<DType> dtype;
    std::string name;                    // shown name; empty: from the source
    ConvertLayout layout = ConvertLayout::Container;  // Flat: types f16 and bf16 only
    bool routerTable = false;            // also compute router_table.bin; Flat always has one
    // Over `dtype`, for single matrices: by the last part of their name in the container ("embed",
    // "head", "q", "down", ...), of experts "w1", "w3", "w2". Not for the flat layout.
    std::map<std::string, DType> types;
    // Which of the source's chat templates is taken along, by its name, or a file with another one;
    // empty: the one that is meant.
    std::string chatTemplate;
    // Told before anything is written: what was chosen or left out, and what the model cannot be
    // used for.
    std::function<void(const std::string&)> onNote = {};
};

// Errors: BadInput (with the list of tensors at fault), Unsupported (family or option by name),
// NoSpace, IoError, Cancelled. After any error but a kill the target does not exist; partial work
// is kept for resuming only after Cancelled or a kill. For the flat layout the result describes the
// container that the folder gives when it is loaded.
Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel);

}  // namespace colibri
