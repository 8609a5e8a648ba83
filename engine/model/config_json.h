// SPDX-License-Identifier: Apache-2.0
// The hyper-parameters in model.json, under their Hugging Face names where they have one.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/model/config.h"
#include "engine/base/json_fields.h"

namespace colibri {

// What is missing or of a wrong kind is told by `fields`; ranges are checkConfig's. Keys that came
// with the second schema may be absent.
void readConfig(Fields& fields, ModelConfig& config);
void writeConfig(nlohmann::ordered_json& json, const ModelConfig& config);

}  // namespace colibri
