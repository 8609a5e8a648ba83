// SPDX-License-Identifier: GPL-3.0-or-later
// What a client is told when its request fails: an HTTP status and the OpenAI API's error object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"

namespace colibri::serve {

struct ApiError {
    int status = 500;  // of HTTP
    std::string message;
    std::string code;       // empty: the one that goes with the status, if any
    std::string parameter;  // the one that is wrong; empty: none by itself
};

// Of a request that could not begin: the client's fault where the engine calls the input wrong.
ApiError requestError(const Status& status);
// Of a request that had begun. What the engine read was sound, so the fault is the server's: an
// expert file that is damaged, memory that is used up.
ApiError replyError(const Status& status);

nlohmann::ordered_json errorJson(const ApiError& error);
std::string errorBody(const ApiError& error);

}  // namespace colibri::serve
