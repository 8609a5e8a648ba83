// SPDX-License-Identifier: Apache-2.0
// What a container of a given config holds: the one list of dense tensors and the one shape of an
// expert record. The converters write it, openContainer demands it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct TensorSpec {
    std::string name;
    int64_t rows = 0, cols = 0;
    bool matrix = false;                 // packed in any weight type; else plain f32
    bool optional = false;
};

// Every number of a config in its range, and all of them consistent; afterwards no size computed
// from it overflows. Errors: BadInput naming the field under its Hugging Face name.
Status checkConfig(const ModelConfig& config);

// REQUIRES (all below): checkConfig(config) is ok.
// In the order of dense.bin.
std::vector<TensorSpec> denseTensors(const ModelConfig& config);

// File name, record size and offsets of one layer's experts; hashes empty.
ExpertLayer expertLayout(const ModelConfig& config, int64_t layer, ExpertTypes types);

// Whether rows of `cols` values can be of a type: those without an encoder are whole blocks.
bool fitsBlocks(DType type, int64_t cols);

std::string expertFileName(int64_t layer);   // "experts/layer_003.bin"
constexpr const char* kDenseFile = "dense.bin";
constexpr const char* kModelFile = "model.json";

int64_t tensorBytes(const TensorSpec& spec, DType type);
constexpr int64_t alignUp(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// Places tensors one after the other in dense.bin: sets file, offset and bytes from name, dtype
// and shape. Returns the size of dense.bin.
int64_t placeDense(std::vector<TensorInfo>& tensors);

}  // namespace colibri
