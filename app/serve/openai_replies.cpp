// SPDX-License-Identifier: GPL-3.0-or-later
#include <ctime>
#include <random>

#include "app/serve/openai.h"
#include "engine/base/json_fields.h"

namespace colibri::serve {

namespace {

// A model's text may contain any bytes; invalid UTF-8 is replaced.
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

Json ReplyWriter::chunk(Json delta, Json logprobs, Json reason) const {
    Json json = head(m_chat ? "chat.completion.chunk" : "text_completion");
    Json choice = {{"index", 0}};
    choice[m_chat ? "delta" : "text"] = std::move(delta);
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(reason);
    json["choices"] = Json::array({std::move(choice)});
    if (m_includeUsage) json["usage"] = nullptr;
    return json;
}

std::string ReplyWriter::first() const {
    if (!m_chat) return {};
    return event(chunk({{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
}

std::string ReplyWriter::progress(const PromptProgress& p) const {
    Json json = chunk(m_chat ? Json::object() : Json(""), nullptr, nullptr);
    json["prompt_progress"] = {
        {"total", p.total}, {"cache", p.cached}, {"processed", p.processed}, {"time_ms", p.timeMs}};
    return event(json);
}

std::string ReplyWriter::piece(const Generation::Piece& piece) {
    Json entries = logprobs(piece.logprobs);
    if (!m_chat) return event(chunk(piece.text, std::move(entries), nullptr));
    Json delta = deltaOf(m_splitter.add(piece.text));
    if (delta.empty() && entries.is_null()) return {};  // the text may be the beginning of a tag
    return event(chunk(std::move(delta), std::move(entries), nullptr));
}

std::string ReplyWriter::last(const RequestResult& r) {
    std::string out;
    if (Json rest = m_chat ? deltaOf(m_splitter.finish()) : Json::object(); !rest.empty()) {
        out = event(chunk(std::move(rest), nullptr, nullptr));
    }
    out += event(chunk(m_chat ? Json::object() : Json(""), nullptr, finishReason(r.stop)));
    if (m_includeUsage) {
        Json json = head(m_chat ? "chat.completion.chunk" : "text_completion");
        json["choices"] = Json::array();
        json["usage"] = usage(r);
        out += event(json);
    }
    return out + "data: [DONE]\n\n";
}

std::string ReplyWriter::failure(const ApiError& error) {
    return event(errorJson(error));
}

}  // namespace colibri::serve
