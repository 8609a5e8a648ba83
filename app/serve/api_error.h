// SPDX-License-Identifier: GPL-3.0-or-later
// The response to a failed request: an HTTP status and the OpenAI API's error object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"

namespace colibri::serve {

struct ApiError {
    int status = 500;  // HTTP status
    std::string message;
    std::string code;       // empty: the default code of the status, if any
    std::string parameter;  // the invalid parameter; empty: none
};

// The error of a request that could not start: a client error if the engine rejects the input.
ApiError requestError(const Status& status);
// The error of a request that had started. Its input was valid, so this is a server error, such as
// a damaged expert file or a lack of memory.
ApiError replyError(const Status& status);

nlohmann::ordered_json errorJson(const ApiError& error);
std::string errorBody(const ApiError& error);

}  // namespace colibri::serve
