// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/chat_run.h"

#include <algorithm>
#include <functional>

#include "engine/text/known_templates.h"
#include "engine/text/reply_parts.h"

namespace colibri::ui {
namespace {

// The prompt of a base model: all texts, each of the user on a new line. A reply follows its text
// directly.
std::string textToContinue(const nlohmann::ordered_json& messages) {
    std::string text;
    for (const auto& message : messages) {
        const bool reply = message.value("role", "") == "assistant";
        if (!text.empty() && !reply) text += "\n";
        text += message.value("content", "");
    }
    return text;
}

// A template that the user chose may end replies with text the model does not treat as an end.
void addReplyEnd(const Engine& engine, const ChatOptions& options, Request& request) {
    const Tokenizer* tokenizer = engine.tokenizer();
    if (!options.chatTemplate || !tokenizer) return;
    const ModelConfig& config = engine.info().config;
    const std::string bos = config.bosId >= 0 ? tokenizer->idToToken(config.bosId) : std::string();
    const std::string eos =
        config.eosIds.empty() ? std::string() : tokenizer->idToToken(config.eosIds.front());
    const std::string end = replyEnd(*options.chatTemplate, bos, eos);
    if (end.empty()) return;
    request.stops.push_back(end);
    const auto id = tokenizer->tokenToId(end);
    request.specialText |= id && tokenizer->isSpecial(*id);
}

// The tokens of a reply that is continued. `begun`: the prompt ends inside the reasoning part.
std::vector<int32_t> tokensSoFar(const Engine& engine, const std::string& reply, bool begun) {
    const Tokenizer* tokenizer = engine.tokenizer();
    return tokenizer ? tokenizer->encode(tracedReply(reply, begun)) : std::vector<int32_t>();
}

}  // namespace

Result<std::vector<int32_t>> chatPrompt(const Engine& engine,
                                        const nlohmann::ordered_json& messages,
                                        const ChatOptions& options) {
    const Tokenizer* tokenizer = engine.tokenizer();
    if (engine.chatTemplate() || !tokenizer) return engine.encodeChat(messages, options);
    if (!options.chatTemplate)
        return tokenizer->encode(textToContinue(messages), {.special = false, .bos = true});
    auto prompt = engine.encodeChat(messages, options);
    // A base model needs the token that begins a text, which the template may lack.
    const std::vector<int32_t> frame = tokenizer->encode("", {.bos = true});
    const int32_t bos = engine.info().config.bosId;
    const bool wanted = bos >= 0 && !frame.empty() && frame.front() == bos;
    if (prompt && wanted && (prompt->empty() || prompt->front() != bos))
        prompt->insert(prompt->begin(), bos);
    return prompt;
}

Result<Request> ChatRun::requestOf(const Engine& engine, const ChatRequest& chat) {
    const int64_t context = engine.contextLength();
    std::vector<int32_t> soFar = tokensSoFar(engine, chat.replySoFar, false);
    // Leaves room for the longest reply, but at most a quarter of the context.
    const int64_t room =
        context - std::min<int64_t>(chat.maxTokens, context / 4) - int64_t(soFar.size());
    auto fitted = fitChat(chat.messages, chat.overflow, size_t(std::max<int64_t>(0, room)),
                          [&](const nlohmann::ordered_json& messages) {
                              return chatPrompt(engine, messages, chat.chat);
                          });
    if (!fitted) return fitted.status();
    setLeftOut(fitted->leftOut);
    const Tokenizer& tokenizer = *engine.tokenizer();
    Request r;
    r.prompt = std::move(fitted->prompt);
    if (endsInReasoning(tokenizer, r.prompt)) {
        beginInReasoning();
        soFar = tokensSoFar(engine, chat.replySoFar, true);
    }
    r.prompt.insert(r.prompt.end(), soFar.begin(), soFar.end());
    setPrompt(0, uint32_t(r.prompt.size()));
    r.sampling = chat.sampling;
    r.maxTokens = chat.maxTokens;
    r.stops = chat.stops;
    r.specialText = marksAreSpecial(tokenizer);
    addReplyEnd(engine, chat.chat, r);
    return r;
}

void ChatRun::start(const std::shared_ptr<ChatRun>& run, Engine& engine, RunTally& tally,
                    const ChatRequest& request) {
    if (run->cancelled()) return run->fail(Status(Code::Cancelled, "The request was cancelled"));
    auto prepared = run->requestOf(engine, request);
    if (!prepared) return run->fail(prepared.status());
    const bool full = int64_t(prepared->prompt.size()) >= engine.contextLength();
    run->m_engine = &engine;
    run->m_tally = &tally;
    const auto id = engine.submit(std::move(*prepared), run->callbacks(run));
    if (!id) return run->fail(id.status(), full ? StopReason::ContextFull : StopReason::Error);
    run->request.store(*id);
    if (run->cancelled()) engine.cancel(*id);
}

RequestCallbacks ChatRun::callbacks(const std::shared_ptr<ChatRun>& self) {
    RequestCallbacks callbacks;
    callbacks.onToken = std::bind_front(&ChatRun::addToken, self);
    callbacks.onPrefill = std::bind_front(&ChatRun::setPrompt, self);
    callbacks.onDone = [self](RequestResult result) {
        // Beside other requests a reply is slower than the model can be, so it does not count.
        if (!self->m_shared.load()) self->m_tally->add(result);
        self->finish(std::move(result));
    };
    return callbacks;
}

void ChatRun::cancel(Engine& engine) {
    cancel();
    if (const uint64_t id = request.load()) engine.cancel(id);
}

ChatRun::Update ChatRun::take() {
    const std::lock_guard lock(m_mutex);
    Update update = std::move(m_update);
    m_update = {};
    m_update.promptDone = update.promptDone;
    m_update.promptTotal = update.promptTotal;
    m_update.inReasoning = update.inReasoning;
    m_update.leftOut = update.leftOut;
    return update;
}

void ChatRun::beginInReasoning() {
    const std::lock_guard lock(m_mutex);
    m_update.inReasoning = true;
}

bool ChatRun::addToken(const GeneratedToken& token) {
    if (cancelled()) return false;
    if (m_engine && m_engine->activeRequests() > 1) m_shared.store(true);
    const std::lock_guard lock(m_mutex);
    m_update.tokens.push_back(token);
    return true;
}

void ChatRun::setPrompt(uint32_t done, uint32_t total) {
    const std::lock_guard lock(m_mutex);
    m_update.promptDone = done;
    m_update.promptTotal = total;
}

void ChatRun::setLeftOut(int messages) {
    const std::lock_guard lock(m_mutex);
    m_update.leftOut = messages;
}

void ChatRun::finish(RequestResult result) {
    const std::lock_guard lock(m_mutex);
    m_update.result = std::move(result);
}

void ChatRun::fail(const Status& status, StopReason stop) {
    RequestResult result;
    result.status = status;
    result.stop = stop;
    finish(std::move(result));
}

}  // namespace colibri::ui
