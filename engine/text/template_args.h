// SPDX-License-Identifier: Apache-2.0
// Parses variables of a chat template, for the command line and the window.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

// Adds "enable_thinking=false": a name and a JSON value. White space around both is ignored.
// Errors: InvalidArgument.
Status addTemplateArg(std::string_view assignment, nlohmann::ordered_json& args);

}  // namespace colibri
