// SPDX-License-Identifier: GPL-3.0-or-later
#include <ctime>
#include <random>

#include "app/serve/openai.h"
#include "engine/model/json_fields.h"

namespace colibri::serve {

namespace {

// A model's text may hold anything; what is not UTF-8 is replaced.
std::string text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event(const Json& json) {
    return "data: " + text(json) + "\n\n";
}

const char* finishReason(StopReason reason) {
    const bool length = reason == StopReason::MaxTokens || reason == StopReason::ContextFull;
    return length ? "length" : "stop";
}

Json usage(const RequestResult& r) {
    return {{"prompt_tokens", r.promptTokens},
            {"completion_tokens", r.tokens.size()},
            {"total_tokens", r.promptTokens + r.tokens.size()},
            {"prompt_tokens_details", {{"cached_tokens", r.cachedTokens}}}};
}

Json errorJson(int status, const std::string& message) {
    const char* type = status == 401   ? "authentication_error"
                       : status == 429 ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error";
    const Json code = status == 401   ? Json("invalid_api_key")
                      : status == 404 ? Json("not_found")
                      : status == 429 ? Json("rate_limit_exceeded")
                                      : Json(nullptr);
    return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", code}}}};
}

Json deltaOf(ReplySplitter::Piece piece) {
    Json delta = Json::object();
    if (!piece.reasoning.empty()) delta["reasoning_content"] = std::move(piece.reasoning);
    if (!piece.answer.empty()) delta["content"] = std::move(piece.answer);
    return delta;
}

std::string randomId() {
    std::random_device random;
    return hexHash(uint64_t(random()) << 32 | random());
}

}  // namespace

int httpStatusOf(Code code) {
    switch (code) {
        case Code::InvalidArgument:
        case Code::BadInput:
        case Code::Unsupported:
            return 400;
        case Code::Busy:
            return 429;
        case Code::Cancelled:
            return 503;
        default:
            return 500;
    }
}

std::string errorBody(int status, const std::string& message) {
    return text(errorJson(status, message));
}

ReplyWriter::ReplyWriter(const ApiRequest& request, std::string model, const Tokenizer* tokenizer)
    : m_tokenizer(tokenizer),
      m_completionLogprobs(tokenizer),
      m_chat(request.chat),
      m_inReasoning(request.inReasoning),
      m_splitter(request.inReasoning),
      m_model(std::move(model)),
      m_id((request.chat ? "chatcmpl-" : "cmpl-") + randomId()),
      m_includeUsage(request.includeUsage),
      m_logprobs(request.request.logprobs.has_value()),
      m_created(std::time(nullptr)) {}

Json ReplyWriter::head(const char* object) const {
    return {{"id", m_id}, {"object", object}, {"created", m_created}, {"model", m_model}};
}

Json ReplyWriter::logprobs(std::span<const TokenLogprobs> tokens) {
    if (!m_logprobs) return nullptr;
    if (!m_chat) return m_completionLogprobs.next(tokens);
    Json content = Json::array();
    for (const TokenLogprobs& token : tokens) content.push_back(chatLogprob(m_tokenizer, token));
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

std::string ReplyWriter::whole(const RequestResult& r) {
    Json json = head(m_chat ? "chat.completion" : "text_completion");
    Json choice = {{"index", 0}};
    if (m_chat) {
        const ReplyParts parts = splitReply(r.text, m_inReasoning);
        Json message = {{"role", "assistant"},
                        {"content", r.text.substr(size_t(parts.answerFrom))},
                        {"refusal", nullptr}};
        if (parts.reasoningTo > parts.reasoningFrom) {
            message["reasoning_content"] = r.text.substr(
                size_t(parts.reasoningFrom), size_t(parts.reasoningTo - parts.reasoningFrom));
        }
        choice["message"] = std::move(message);
    } else {
        choice["text"] = r.text;
    }
    choice["logprobs"] = logprobs(r.logprobs);
    choice["finish_reason"] = finishReason(r.stop);
    json["choices"] = Json::array({std::move(choice)});
    json["usage"] = usage(r);
    return text(json);
}

std::string ReplyWriter::chunk(Json delta, Json logprobs, Json reason) const {
    Json json = head(m_chat ? "chat.completion.chunk" : "text_completion");
    Json choice = {{"index", 0}};
    choice[m_chat ? "delta" : "text"] = std::move(delta);
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(reason);
    json["choices"] = Json::array({std::move(choice)});
    if (m_includeUsage) json["usage"] = nullptr;
    return event(json);
}

std::string ReplyWriter::first() const {
    if (!m_chat) return {};
    return chunk({{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
}

std::string ReplyWriter::piece(const Generation::Piece& piece) {
    Json entries = logprobs(piece.logprobs);
    if (!m_chat) return chunk(piece.text, std::move(entries), nullptr);
    Json delta = deltaOf(m_splitter.add(piece.text));
    if (delta.empty() && entries.is_null()) return {};  // perhaps the beginning of a tag
    return chunk(std::move(delta), std::move(entries), nullptr);
}

std::string ReplyWriter::last(const RequestResult& r) {
    std::string out;
    if (Json rest = m_chat ? deltaOf(m_splitter.finish()) : Json::object(); !rest.empty()) {
        out = chunk(std::move(rest), nullptr, nullptr);
    }
    out += chunk(m_chat ? Json::object() : Json(""), nullptr, finishReason(r.stop));
    if (m_includeUsage) {
        Json json = head(m_chat ? "chat.completion.chunk" : "text_completion");
        json["choices"] = Json::array();
        json["usage"] = usage(r);
        out += event(json);
    }
    return out + "data: [DONE]\n\n";
}

std::string ReplyWriter::failure(int status, const std::string& message) {
    return event(errorJson(status, message));
}

}  // namespace colibri::serve
