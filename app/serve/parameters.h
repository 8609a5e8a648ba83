// SPDX-License-Identifier: GPL-3.0-or-later
// Every parameter of a request that this server knows, of the OpenAI API and of the servers whose
// clients also come here (llama.cpp, vLLM). One that would change the reply and is not supported is
// refused by name unless its value leaves the reply as it is; so is one that nobody knows, because
// it might. What has no effect on the reply is accepted. null counts as absent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/serve/api_error.h"

namespace colibri::serve {

enum class Endpoint { Chat, Completion };

// The first parameter of a body that is refused.
std::optional<ApiError> refusedParameter(const nlohmann::json& body, Endpoint endpoint);

}  // namespace colibri::serve
