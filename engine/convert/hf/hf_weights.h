// SPDX-License-Identifier: Apache-2.0
// Which .safetensors files of a Hugging Face folder are the model, and their tensors under the
// names that the table of families knows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/source.h"

namespace colibri {

// `file`: one of the folder that was given by itself; empty: whatever the folder has. An index that
// was left over beside a whole checkpoint is passed over with a note. Errors: BadInput naming
// missing shards and files that are something else; Unsupported for pickles and LoRA adapters.
Status addHfWeights(const std::filesystem::path& folder, const std::filesystem::path& file,
                    Checkpoint& checkpoint, std::vector<std::string>& notes);

// Unsupported when a folder holds a LoRA adapter and no model of its own.
Status checkNoAdapter(const std::filesystem::path& folder);

// Gives the language model's tensors the prefix "model.", whatever stands before their names: a
// wrapper's prefix, or nothing as in a checkpoint of the bare base model. `nested`: part of a model
// that also sees or hears, whose other tensors are left out.
void unifyPrefix(Checkpoint& checkpoint, bool nested);

}  // namespace colibri
