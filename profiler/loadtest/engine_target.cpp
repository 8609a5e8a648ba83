// SPDX-License-Identifier: Apache-2.0
#include "profiler/loadtest/engine_target.h"

#include "engine/runtime/run_request.h"

namespace colibri {

LoadReply EngineTarget::send(const LoadPrompt& prompt, const CancelFlag& cancel) {
    Result<std::vector<int32_t>> ids = m_engine.encodeChat(prompt.messages);
    if (!ids.ok()) return {.error = ids.status().message()};
    Request request = m_model;
    request.prompt = std::move(*ids);
    LoadReply reply;
    RequestObserver observer;
    observer.onToken = [&](const GeneratedToken& token) {
        if (m_onToken) m_onToken();
        reply.timesNs.push_back(token.timeNs);
        return true;
    };
    const Result<RequestResult> result =
        runRequest(m_engine, std::move(request), std::move(observer), &cancel);
    if (!result.ok()) {
        const Status& status = result.status();
        return {.error = status.code() == Code::Busy ? "busy" : status.message()};
    }
    reply.promptTokens = result->promptTokens;
    reply.tokens = uint32_t(result->tokens.size());
    if (!result->status.ok()) reply.error = "failed";
    if (result->stop == StopReason::Cancelled) reply.error = "cancelled";
    return reply;
}

}  // namespace colibri
