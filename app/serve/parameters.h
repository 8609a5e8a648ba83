// SPDX-License-Identifier: GPL-3.0-or-later
// All request parameters that this server recognises: those of the OpenAI API, llama.cpp and vLLM.
// An unsupported parameter is rejected by name unless its value does not change the reply. An
// unknown parameter is also rejected, because it might change the reply. Parameters without effect
// on the reply are accepted. null counts as absent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/serve/api_error.h"

namespace colibri::serve {

enum class Endpoint { Chat, Completion };

// The error for the first rejected parameter of a body.
std::optional<ApiError> refusedParameter(const nlohmann::json& body, Endpoint endpoint);

}  // namespace colibri::serve
