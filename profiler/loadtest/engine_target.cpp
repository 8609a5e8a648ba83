// SPDX-License-Identifier: Apache-2.0
#include "profiler/loadtest/engine_target.h"

#include <condition_variable>
#include <mutex>

namespace colibri {

LoadReply EngineTarget::ask(const LoadPrompt& prompt, const CancelFlag& cancel) {
    struct Shared {
        std::mutex mutex;
        std::condition_variable ended;
        bool done = false;
        LoadReply reply;
    };
    Result<std::vector<int32_t>> ids = m_engine.encodeChat(prompt.messages);
    if (!ids.ok()) return {.error = ids.status().message()};
    Request request = m_model;
    request.prompt = std::move(*ids);
    auto shared = std::make_shared<Shared>();
    RequestCallbacks callbacks;
    callbacks.onToken = [this, shared, &cancel](const GeneratedToken& token) {
        if (m_onToken) m_onToken();
        shared->reply.timesNs.push_back(token.timeNs);  // read after onDone only
        return !cancel.load(std::memory_order_relaxed);
    };
    callbacks.onDone = [shared](RequestResult result) {
        std::lock_guard lock(shared->mutex);
        LoadReply& r = shared->reply;
        r.promptTokens = result.promptTokens;
        r.tokens = uint32_t(result.tokens.size());
        if (!result.status.ok()) r.error = "failed";
        if (result.stop == StopReason::Cancelled) r.error = "cancelled";
        shared->done = true;
        shared->ended.notify_all();
    };
    Result<uint64_t> id = m_engine.submit(std::move(request), std::move(callbacks));
    if (!id.ok())
        return {.error = id.status().code() == Code::Busy ? "busy" : id.status().message()};
    std::unique_lock lock(shared->mutex);
    bool cancelled = false;
    while (!shared->ended.wait_for(lock, std::chrono::milliseconds(50),
                                   [&] { return shared->done; })) {
        if (cancelled || !cancel.load()) continue;
        cancelled = true;
        lock.unlock();
        m_engine.cancel(*id);  // also while its prompt is computed
        lock.lock();
    }
    return std::move(shared->reply);
}

}  // namespace colibri
