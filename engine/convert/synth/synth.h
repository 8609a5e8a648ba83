// SPDX-License-Identifier: Apache-2.0
// Writes a container with random weights in the shape of a real model, to tune a machine before the
// model is downloaded. Time, bytes and memory equal those of the real model; its output is random.
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
    const char* of;      // the real model with this shape
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
        DType::Q4_0;  // type of the matrices, with an encoder; embedding and head: see targetType
    double skew = 0;  // of the routing: 0 is nearly uniform, 1 has clear favourites
    int64_t layers = 0;  // 0: all of the shape's
    uint64_t seed = 1;
};

// Tables and sizes of the model that would be written; ignores the target. Errors: InvalidArgument.
Result<ContainerInfo> plannedSynthetic(const SynthOptions& options);

// Writes like convertModel: streamed, under another name until complete. The same options give the
// same bytes on one machine. Errors: InvalidArgument (options, target), NoSpace (before
// the first byte), IoError, Cancelled. After an error no files are left.
Result<ContainerInfo> synthesiseModel(const SynthOptions& options, const ProgressFn& progress,
                                      const CancelFlag* cancel, const DiskHooks& hooks = {});

}  // namespace colibri
