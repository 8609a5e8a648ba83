// SPDX-License-Identifier: GPL-3.0-or-later
// Tiny checkpoints for the tests of the converters. Random values that every plain type holds
// exactly, in all layouts that savers write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri::test {

struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
};
using Tensors = std::map<std::string, Tensor>;

struct TinyOptions {
    std::string family = "olmoe";  // "qwen3_moe", "mixtral"
    int64_t layers = 2, hidden = 64, heads = 4, kvHeads = 2, headDim = 16;
    int64_t experts = 4, topK = 2, expertSize = 40, vocab = 70, denseSize = 48;
    bool bias = false, tied = false;
    bool quantisedBias = false;        // in a GGUF
    std::vector<int64_t> denseLayers;  // qwen3_moe: mlp_only_layers
    unsigned seed = 1;
};

// config.json and the tensors under their original names, one per expert.
nlohmann::json tinyConfig(const TinyOptions& options);
Tensors tinyTensors(const TinyOptions& options);

// The same model with stacked experts, as newer savers write it (block_sparse_moe becomes mlp).
Tensors stacked(const Tensors& tensors, const TinyOptions& options);

// Bytes of a .safetensors file. `type`: "F32", "F16", "BF16".
std::string safetensorsBytes(const Tensors& tensors, const std::string& type = "F32");
void writeFile(const std::filesystem::path& path, const std::string& content);
std::string readFile(const std::filesystem::path& path);

// Writes a folder with config.json and `shards` weight files, with an index if `index` is set.
void writeCheckpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                     const Tensors& tensors, int shards = 1, bool index = true,
                     const std::string& type = "F32");

// The same model as GGUF, with translated names and shapes; mixtral's q and k rows in pairs.
// Returns the files of a model split into `parts`. `types`: ggml's type number of a matrix, by its
// GGUF name. F32, F16, Q4_0, Q8_0 and BF16 (0, 1, 2, 8, 30) are made from the tensors' values,
// other types from random blocks of the same size.
using GgufTypes = std::function<uint32_t(const std::string& name)>;
std::vector<std::string> ggufParts(
    const TinyOptions& options, const Tensors& tensors, const GgufTypes& types, int parts = 1,
    const std::vector<std::pair<std::string, std::string>>& texts = {});

// A model whose rows are whole blocks of 256, and a type for each tensor: all types that GGUF files
// mix, and more.
TinyOptions wideOptions();
uint32_t mixedType(const std::string& name);

// A single file whose matrices have one type.
std::string ggufBytes(const TinyOptions& options, const Tensors& tensors, uint32_t quant,
                      const std::vector<std::pair<std::string, std::string>>& texts = {});

// All values of a container tensor, or of one matrix ("w1", "w3", "w2") of an expert, as f32.
std::vector<float> containerValues(const ContainerInfo& info, const std::string& name);
std::vector<float> expertValues(const ContainerInfo& info, int64_t layer, int64_t expert,
                                const std::string& matrix);

// Relative path -> content of all files below a folder.
std::map<std::string, std::string> folderContent(const std::filesystem::path& folder);

}  // namespace colibri::test
