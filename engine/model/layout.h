// SPDX-License-Identifier: Apache-2.0
// The layout of a container for a config: the list of dense tensors and the shape of an expert
// record. The converters write it, and openContainer requires it.
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
    bool matrix = false;  // packed in any weight type; else plain f32
    bool optional = false;
};

// Checks that all numbers of a config are in range and consistent. Afterwards no size computed from
// it overflows. Errors: BadInput with the field's Hugging Face name.
Status checkConfig(const ModelConfig& config);

// REQUIRES (all below): checkConfig(config) is ok.
// In the order of dense.bin.
std::vector<TensorSpec> denseTensors(const ModelConfig& config);

// The file name, record size and offsets of one layer's experts, without hashes.
ExpertLayer expertLayout(const ModelConfig& config, int64_t layer, ExpertTypes types);

// Whether rows of `cols` values can have this type. Types without an encoder need whole blocks.
bool fitsBlocks(DType type, int64_t cols);

std::string expertFileName(int64_t layer);  // "experts/layer_003.bin"
constexpr const char* kDenseFile = "dense.bin";
constexpr const char* kModelFile = "model.json";

int64_t tensorBytes(const TensorSpec& spec, DType type);
constexpr int64_t alignUp(int64_t value, int64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// Lays out tensors one after another in dense.bin: sets file, offset and bytes from name, dtype and
// shape. Returns the size of dense.bin.
int64_t layOutDense(std::vector<TensorInfo>& tensors);

}  // namespace colibri
