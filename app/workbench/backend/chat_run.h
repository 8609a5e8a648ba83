// SPDX-License-Identifier: GPL-3.0-or-later
// A chat request to the engine: messages become a prompt, the prompt a request, and its tokens the
// updates of a ChatRun.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/workbench/backend/context_fit.h"
#include "engine/runtime/engine.h"
#include "profiler/metrics/run_tally.h"

namespace colibri::ui {

struct ChatRequest {
    nlohmann::ordered_json messages;
    Sampling sampling;
    int maxTokens = 256;
    std::vector<std::string> stops;
    Overflow overflow = Overflow::Stop;  // what happens when the chat is longer than the context
    std::string replySoFar;  // continues this reply to the last message; "" = a new reply
    ChatOptions chat;        // how the messages become a prompt
};

// The prompt of `messages`: rendered by the model's template or the chosen one. A base model
// without either gets their texts, to continue them.
Result<std::vector<int32_t>> chatPrompt(const Engine& engine,
                                        const nlohmann::ordered_json& messages,
                                        const ChatOptions& options);

// One running reply. The engine's threads add to it; the GUI thread takes the updates.
class ChatRun {
public:
    struct Update {
        std::vector<GeneratedToken> tokens;
        uint32_t promptDone = 0, promptTotal = 0;  // tokens
        bool inReasoning = false;                  // the prompt ends inside the reasoning part
        int leftOut = 0;                           // messages that did not fit the context
        std::optional<RequestResult> result;       // set once, in the last update
    };

    // Encodes the messages and submits the request; blocks meanwhile, so it runs on a worker.
    // Errors are reported in the updates. `engine` and `tally` must exist until the request ends.
    static void start(const std::shared_ptr<ChatRun>& run, Engine& engine, RunTally& tally,
                      const ChatRequest& request);

    Update take();  // what was added since the last call
    void cancel() { m_cancelled.store(true); }
    void cancel(Engine& engine);  // also a request that was submitted
    bool cancelled() const { return m_cancelled.load(); }

    void beginInReasoning();
    bool addToken(const GeneratedToken& token);  // false: cancelled, the request must end
    void setPrompt(uint32_t done, uint32_t total);
    void setLeftOut(int messages);
    void finish(RequestResult result);
    // Ends a run that the engine did not accept. ContextFull: the prompt is too long.
    void fail(const Status& status, StopReason stop = StopReason::Error);
    std::atomic<uint64_t> request{0};  // id in the engine, once submitted

private:
    Result<Request> requestOf(const Engine& engine, const ChatRequest& chat);
    RequestCallbacks callbacks(const std::shared_ptr<ChatRun>& self);

    // Set by start(), before there are callbacks.
    const Engine* m_engine = nullptr;
    RunTally* m_tally = nullptr;
    std::atomic<bool> m_shared{false};  // other requests ran at the same time

    std::mutex m_mutex;  // guards m_update
    Update m_update;
    std::atomic<bool> m_cancelled{false};
};

}  // namespace colibri::ui
