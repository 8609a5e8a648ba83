// SPDX-License-Identifier: Apache-2.0
// The flat layout: a folder of plain files for programs that read the experts themselves.
//
//   expert_{id}_layer_{layer}_{w1|w2|w3}.bin   f16 or bf16, row-major as in the checkpoint:
//                         w1 (gate) and w3 (up) [I, H], w2 (down) [H, I]; layer: the model's number
//   router_table.bin      token -> experts (engine/model/router_table.h)
//   dense.safetensors     everything else under its checkpoint name: matrices in the same type, the
//                         rest in f32
//   config.json, generation_config.json, tokenizer.json, chat_template.jinja
//   flat.json             {"schema": 1, "expert_dtype": "bf16"}
//
// f16 and bf16 files have the same size: without flat.json the type is the config's.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/source/opened_source.h"

namespace colibri {

constexpr const char* kFlatFile = "flat.json";
constexpr const char* kFlatDenseFile = "dense.safetensors";

// `which`: 0 w1, 1 w3, 2 w2, the order of records.
std::string flatFileName(int64_t expert, int64_t layer, size_t which);

std::string flatDescription(DType expertType);  // flat.json

// Decides by names: a folder with config.json and the file of a first expert.
bool isFlatFolder(const std::filesystem::path& path);

// Adds the expert files to a checkpoint under the names of the family. `configType` is the config's
// torch_dtype. Errors: BadInput with a list of the files that are missing or have the wrong size.
Status addFlatExperts(const std::filesystem::path& folder, const ModelConfig& config,
                      const Naming& naming, const std::string& configType, Checkpoint& checkpoint);

}  // namespace colibri
