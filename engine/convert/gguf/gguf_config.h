// SPDX-License-Identifier: Apache-2.0
// A GGUF file's metadata -> ModelConfig. A value that both tensors and metadata give is taken from
// the tensors; for a value that neither gives, the architecture's name implies what other runtimes
// use.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/convert/gguf/gguf.h"
#include "engine/convert/source/families.h"
#include "engine/model/config.h"

namespace colibri {

struct GgufConfig {
    const FamilyRow* family = nullptr;
    ModelConfig config;       // without rope.divisors, which are a tensor; not checked
    int64_t extraLayers = 0;  // prediction layers after the last; ignored
};

// Errors: Unsupported naming an architecture or option; BadInput naming a missing key.
Result<GgufConfig> readGgufConfig(const GgufHeader& header, const std::string& where);

}  // namespace colibri
