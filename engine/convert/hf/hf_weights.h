// SPDX-License-Identifier: Apache-2.0
// Finds the .safetensors files of the model in a Hugging Face folder, and gives their tensors the
// names of the table of families.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/source.h"

namespace colibri {

// `file`: a single file of the folder that the user gave; empty: all files of the model. A leftover
// index beside a complete checkpoint is ignored with a note. Errors: BadInput naming
// missing shards and files that are not safetensors; Unsupported for pickles and LoRA adapters.
Status addHfWeights(const std::filesystem::path& folder, const std::filesystem::path& file,
                    Checkpoint& checkpoint, std::vector<std::string>& notes);

// Unsupported if a folder contains a LoRA adapter but no model.
Status checkNoAdapter(const std::filesystem::path& folder);

// Gives the language model's tensors the prefix "model.", in place of a wrapper's prefix or none (a
// checkpoint of the base model alone). `nested`: part of a model that also takes images or audio;
// its other tensors are ignored.
void unifyPrefix(Checkpoint& checkpoint, bool nested);

}  // namespace colibri
