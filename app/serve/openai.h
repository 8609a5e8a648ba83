// SPDX-License-Identifier: GPL-3.0-or-later
// Translates between the OpenAI API's JSON and the engine: request bodies to requests, results to
// replies. Pure functions.
//
// parameters.cpp lists the supported parameters. The reasoning of a chat's reply is in
// "reasoning_content" beside "content"; its tags are in neither. With logprobs there is one entry
// for each generated token, including those of a stop string and the end of the sequence, each with
// up to 20 most likely tokens.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "app/serve/api_error.h"
#include "app/serve/generation.h"
#include "app/serve/logprobs_json.h"
#include "engine/runtime/engine.h"
#include "engine/text/reply_parts.h"

namespace colibri::serve {

struct ApiRequest {
    bool chat = false;
    std::string model;  // requested; empty: not given
    Request request;
    bool stream = false;
    bool includeUsage = false;  // a last chunk with the counts
    bool progress = false;      // chunks with the progress of the prompt
    bool inReasoning = false;   // the chat's prompt ends with the opening tag
};

// A JSON object. Errors: BadInput.
Result<nlohmann::json> parseBody(std::string_view text);

// Errors: InvalidArgument, BadInput and Unsupported for client errors.
// `chat`: defaults that the request extends and overrides by name. `wrong` becomes the name of the
// invalid parameter.
Result<ApiRequest> parseChatRequest(const Engine& engine, const nlohmann::json& body,
                                    int defaultMaxTokens, ChatOptions chat, std::string& wrong);
Result<ApiRequest> parseCompletionRequest(const Engine& engine, const nlohmann::json& body,
                                          int defaultMaxTokens, std::string& wrong);

std::string modelId(const Engine& engine);

// One reply, whole or in chunks.
class ReplyWriter {
public:
    // `tokenizer` may be nullptr, and must outlive this.
    ReplyWriter(const ApiRequest& request, std::string model, const Tokenizer* tokenizer);

    std::string whole(const RequestResult& result);

    // Server-sent events, each "data: {...}\n\n".
    std::string first() const;  // a chat's role; empty for a completion
    std::string progress(const PromptProgress& progress) const;
    std::string piece(const Generation::Piece& piece);
    std::string last(const RequestResult& result);  // reason, counts, [DONE]
    static std::string failure(const ApiError& error);
    // A comment, which clients ignore. It keeps proxies and clients from closing a silent stream.
    static std::string keepAlive() { return ": the reply is being computed\n\n"; }

private:
    Json head(const char* object) const;
    Json logprobs(std::span<const TokenLogprobs> tokens);
    Json chunk(Json delta, Json logprobs, Json finishReason) const;

    const Tokenizer* m_tokenizer;
    CompletionLogprobs m_completionLogprobs;
    bool m_chat, m_inReasoning;
    ReplySplitter m_splitter;  // of a chat's pieces
    std::string m_model, m_id;
    bool m_includeUsage, m_logprobs;
    int64_t m_created;  // Unix seconds
};

}  // namespace colibri::serve
