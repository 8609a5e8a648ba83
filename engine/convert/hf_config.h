// SPDX-License-Identifier: Apache-2.0
// config.json and generation_config.json of a Hugging Face checkpoint -> ModelConfig.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/families.h"
#include "engine/model/config.h"

namespace colibri {

struct HfConfig {
    const FamilyRow* family = nullptr;
    ModelConfig config;
    bool tiedKnown = false;              // false: tied when there is no lm_head
    int64_t extraLayers = 0;             // multi-token-prediction layers after the last; ignored
};

// `generation` may be null. Keys of both major versions of the library are read. Errors: BadInput
// for a missing or senseless value; Unsupported, by name, for a family, quantisation or option
// that this engine does not compute.
Result<HfConfig> readHfConfig(const nlohmann::json& config, const nlohmann::json& generation,
                              const std::string& where);

// A config.json that readHfConfig understands as this config. REQUIRES: a family of families().
std::string writeHfConfig(const ModelConfig& config);

}  // namespace colibri
