// SPDX-License-Identifier: Apache-2.0
// Knob configurations as JSON: {"schema": 1, "knobs": {"expert_cache_size": 12, "cache_policy":
// "lru", ...}, "comment": ..., "model": ..., "machine": ...}.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/knobs/knobs.h"

namespace colibri {

// Checks the values against the ranges of the knob table. `model` receives the name of the model
// that the file was written for, "" if it has none. Errors name the key: BadInput, Unsupported (a
// newer schema).
Result<KnobValues> knobsFromJson(std::string_view text, std::string* model = nullptr);
// Reads a file, which errors name too. A file that is too large for a configuration is not read.
Result<KnobValues> knobsFromFile(const std::filesystem::path& path, std::string* model = nullptr);
std::string knobsToJson(const KnobValues& values, std::string_view model, std::string_view machine);

}  // namespace colibri
