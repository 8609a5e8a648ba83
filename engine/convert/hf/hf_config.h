// SPDX-License-Identifier: Apache-2.0
// config.json and generation_config.json of a Hugging Face checkpoint -> ModelConfig.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"
#include "engine/convert/source/families.h"
#include "engine/model/config.h"

namespace colibri {

struct HfConfig {
    const FamilyRow* family = nullptr;
    ModelConfig config;
    bool tiedKnown = false;             // false: tied if there is no lm_head
    bool nested = false;                // it was the text_config of a larger model
    std::array<int64_t, 2> fp8Block{};  // rows and columns that share a scale; 0: not FP8
    int64_t extraLayers = 0;            // multi-token-prediction layers after the last; ignored
};

// `generation` may be null. Keys of both major versions of the library are read. Errors: BadInput
// for a missing or invalid value; Unsupported naming a family, quantisation or option that this
// engine does not support.
Result<HfConfig> readHfConfig(const nlohmann::json& config, const nlohmann::json& generation,
                              const std::string& where);

// The config of the language model alone: for a model that also takes images or audio its
// text_config merged with the outer keys; else the config itself.
nlohmann::json languageConfig(const nlohmann::json& config);

// A config.json that readHfConfig reads back as this config. REQUIRES: a family of families().
std::string writeHfConfig(const ModelConfig& config);

}  // namespace colibri
