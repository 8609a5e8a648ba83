// SPDX-License-Identifier: Apache-2.0
// The meaning of a GGUF file's tokenizer.ggml.pre: how text is split before byte-level BPE.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"

namespace colibri {

struct GgufSplit {
    nlohmann::json normalizer, preTokenizer;  // in the form of tokenizer.json; null: none
    bool ignoreMerges = false;
    bool addsBos = false;  // the default if the file does not say
};

// Errors: Unsupported with the name.
Result<GgufSplit> ggufSplit(const std::string& name);

}  // namespace colibri
