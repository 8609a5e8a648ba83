// SPDX-License-Identifier: Apache-2.0
// A container with random weights in the shape of a real model: to tune a machine before a model
// is downloaded. Time, bytes and memory are those of the real one; the text is noise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/convert/pipeline/output.h"
#include "engine/model/container.h"

namespace colibri {

struct SynthShape {
    const char* name;    // "olmoe"
    const char* family;  // as in model.json
    const char* of;      // the model it is the shape of
    int64_t layers, hidden, heads, kvHeads, headDim;
    int64_t experts, topK, expertSize, vocab, positions;
    QkNorm qkNorm;
    bool renorm;
    double rmsEps, ropeTheta;
};

std::span<const SynthShape> synthShapes();
std::string synthShapeNames();  // "olmoe, qwen3-30b-a3b, ..." for messages

struct SynthOptions {
    std::string shape;
    std::filesystem::path target;  // must not exist
    DType dtype =
        DType::Q4_0;  // of the matrices, one that hasEncoder; embedding and head as targetType
    double skew = 0;               // of the routing: 0 is nearly uniform, 1 has clear favourites
    int64_t layers = 0;            // 0: all of the shape's
    uint64_t seed = 1;
};

// Tables and sizes of what would be written; the target is not looked at. Errors: InvalidArgument.
Result<ContainerInfo> plannedSynthetic(const SynthOptions& options);

// Written as convertModel writes: streamed, under another name until it is whole; the same options
// give the same bytes on one machine. Errors: InvalidArgument (options, target), NoSpace (before
// the first byte), IoError, Cancelled. After any of them nothing is left.
Result<ContainerInfo> synthesiseModel(const SynthOptions& options, const ProgressFn& progress,
                                      const CancelFlag* cancel, const DiskHooks& hooks = {});

}  // namespace colibri
