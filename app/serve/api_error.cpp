// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/api_error.h"

#include "engine/base/printable.h"

namespace colibri::serve {

namespace {

using Json = nlohmann::ordered_json;

const char* typeOf(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 429:
            return "rate_limit_error";
        default:
            return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

Json codeOf(int status) {
    switch (status) {
        case 401:
            return "invalid_api_key";
        case 404:
            return "not_found";
        case 429:
            return "rate_limit_exceeded";
        default:
            return nullptr;
    }
}

}  // namespace

ApiError requestError(const Status& status) {
    switch (status.code()) {
        case Code::InvalidArgument:
        case Code::BadInput:
        case Code::Unsupported:
            return {400, status.text(), {}, {}};
        case Code::Busy:
            return {429, status.text(), {}, {}};
        default:
            return replyError(status);
    }
}

ApiError replyError(const Status& status) {
    return {status.code() == Code::Cancelled ? 503 : 500, status.text(), {}, {}};
}

Json errorJson(const ApiError& e) {
    return {{"error",
             {{"message", printableLines(e.message)},
              {"type", typeOf(e.status)},
              {"param", e.parameter.empty() ? Json(nullptr) : Json(e.parameter)},
              {"code", e.code.empty() ? codeOf(e.status) : Json(e.code)}}}};
}

std::string errorBody(const ApiError& error) {
    return errorJson(error).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace colibri::serve
