// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI API's JSON: from a body to a request, from a result to a reply. Pure functions.
//
// Beyond that API, top_k, min_p, repetition_penalty and ignore_eos are understood. What changes a
// reply and is not supported is refused by name (logprobs, n over 1, tools, ...); what does not is
// passed over.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/run/engine.h"

namespace colibri::serve {

using Json = nlohmann::ordered_json;

struct ApiRequest {
    bool chat = false;
    std::string model;  // asked for; empty: not said
    Request request;
    bool stream = false;
    bool includeUsage = false;  // a last chunk with the counts
};

// Errors: InvalidArgument, BadInput and Unsupported for what the client got wrong.
Result<ApiRequest> parseChatRequest(const Engine& engine, std::string_view body,
                                    int defaultMaxTokens);
Result<ApiRequest> parseCompletionRequest(const Engine& engine, std::string_view body,
                                          int defaultMaxTokens);

std::string modelId(const Engine& engine);

// HTTP status of a failed request, and the body that says so.
int httpStatusOf(Code code);
std::string errorBody(int httpStatus, const std::string& message);

// One reply, whole or in chunks.
class ReplyWriter {
public:
    ReplyWriter(bool chat, std::string model, bool includeUsage);

    std::string whole(const RequestResult& result) const;

    // Server-sent events, each "data: {...}\n\n".
    std::string first() const;  // a chat's role; empty for a completion
    std::string piece(const std::string& text) const;
    std::string last(const RequestResult& result) const;  // reason, counts, [DONE]
    static std::string failure(int httpStatus, const std::string& message);

private:
    Json head(const char* object) const;
    std::string chunk(Json delta, Json finishReason) const;

    bool m_chat;
    std::string m_model, m_id;
    bool m_includeUsage;
    int64_t m_created;  // Unix seconds
};

}  // namespace colibri::serve
