// SPDX-License-Identifier: Apache-2.0
// Converts a checkpoint to a container. Tensors are streamed one by one into a temporary sibling
// folder, which is renamed at the end. An interrupted conversion can be resumed. Unknown, missing,
// mis-shaped or non-finite tensors are an error that lists them.
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
    std::filesystem::path source;  // HF folder, .safetensors file, or .gguf file
    std::filesystem::path target;  // must not exist (or be an interrupted conversion of this)
    // Type of the matrices, one with an encoder (hasEncoder); routers, norms and biases stay f32.
    // None: each matrix keeps the source's type. With q4_0 and mxfp4, embedding and head use q8_0.
    std::optional<DType> dtype;
    std::string name;                                 // display name; empty: from the source
    ConvertLayout layout = ConvertLayout::Container;  // Flat: types f16 and bf16 only
    bool routerTable = false;  // also compute router_table.bin; Flat always has one
    // Overrides `dtype` for single matrices: by the last part of their name in the container
    // ("embed", "head", "q", "down", ...), for experts "w1", "w3", "w2". Not for the flat layout.
    std::map<std::string, DType> types;
    // The chat template to include: the name of one of the source's, or a file. Empty: the source's
    // default.
    std::string chatTemplate;
    // Called before anything is written: what was chosen or left out, and what the model cannot be
    // used for.
    std::function<void(const std::string&)> onNote = {};
};

// Errors: BadInput (with the list of faulty tensors), Unsupported (family or option by name),
// NoSpace, IoError, Cancelled. After an error the target does not exist; partial work is kept for
// resuming only after Cancelled or if the process was killed. For the flat layout the result
// describes the container that loading the folder creates.
Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel);

}  // namespace colibri
