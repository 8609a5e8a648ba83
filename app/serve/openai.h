// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI API's JSON: from a body to a request, from a result to a reply. Pure functions.
//
// Beyond that API, top_k, min_p, repetition_penalty and ignore_eos are understood. What changes a
// reply and is not supported is refused by name (n over 1, tools, ...); what does not is passed
// over. The reasoning of a chat's reply is "reasoning_content" beside "content", its tags in
// neither. With logprobs there is one entry for each generated token, those of a stop string and
// the end of the sequence too, and up to 20 likeliest ones with each.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "app/serve/generation.h"
#include "app/serve/logprobs_json.h"
#include "engine/run/engine.h"
#include "engine/text/reply_parts.h"

namespace colibri::serve {

struct ApiRequest {
    bool chat = false;
    std::string model;  // asked for; empty: not said
    Request request;
    bool stream = false;
    bool includeUsage = false;  // a last chunk with the counts
    bool inReasoning = false;   // the chat's prompt ends with the tag that begins it
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
    // `tokenizer` may be nullptr, and must outlive this.
    ReplyWriter(const ApiRequest& request, std::string model, const Tokenizer* tokenizer);

    std::string whole(const RequestResult& result);

    // Server-sent events, each "data: {...}\n\n".
    std::string first() const;  // a chat's role; empty for a completion
    std::string piece(const Generation::Piece& piece);
    std::string last(const RequestResult& result);  // reason, counts, [DONE]
    static std::string failure(int httpStatus, const std::string& message);

private:
    Json head(const char* object) const;
    Json logprobs(std::span<const TokenLogprobs> tokens);
    std::string chunk(Json delta, Json logprobs, Json finishReason) const;

    const Tokenizer* m_tokenizer;
    CompletionLogprobs m_completionLogprobs;
    bool m_chat, m_inReasoning;
    ReplySplitter m_splitter;  // of a chat's pieces
    std::string m_model, m_id;
    bool m_includeUsage, m_logprobs;
    int64_t m_created;  // Unix seconds
};

}  // namespace colibri::serve
