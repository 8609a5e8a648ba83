// SPDX-License-Identifier: Apache-2.0
// The hyper-parameters in model.json, under their Hugging Face names if they have one.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/base/json_fields.h"
#include "engine/model/config.h"

namespace colibri {

// `fields` reports missing keys and wrong types; checkConfig checks the ranges. Keys that the
// second schema introduced may be absent.
void readConfig(Fields& fields, ModelConfig& config);
void writeConfig(nlohmann::ordered_json& json, const ModelConfig& config);

}  // namespace colibri
