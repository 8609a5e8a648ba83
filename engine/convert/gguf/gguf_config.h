// SPDX-License-Identifier: Apache-2.0
// A GGUF file's metadata -> ModelConfig. What tensors and metadata both tell is taken from the
// tensors; what neither tells is what the architecture's name means to the runtimes that read it.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/convert/source/families.h"
#include "engine/convert/gguf/gguf.h"
#include "engine/model/config.h"

namespace colibri {

struct GgufConfig {
    const FamilyRow* family = nullptr;
    ModelConfig config;                  // without rope.divisors, which are a tensor; not checked
    int64_t extraLayers = 0;             // prediction layers after the last; to be ignored
};

// Errors: Unsupported naming an architecture or option; BadInput naming a missing key.
Result<GgufConfig> readGgufConfig(const GgufHeader& header, const std::string& where);

}  // namespace colibri
