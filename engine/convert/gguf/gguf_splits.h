// SPDX-License-Identifier: Apache-2.0
// What a GGUF file's tokenizer.ggml.pre stands for: how the text is cut before byte-level BPE.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"

namespace colibri {

struct GgufSplit {
    nlohmann::json normalizer, preTokenizer;  // as tokenizer.json has them; null: none
    bool ignoreMerges = false;
    bool addsBos = false;  // where the file says nothing about it
};

// Errors: Unsupported with the name.
Result<GgufSplit> ggufSplit(const std::string& name);

}  // namespace colibri
