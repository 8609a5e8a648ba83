// SPDX-License-Identifier: GPL-3.0-or-later
// A chat's way through the engine: messages become a prompt, the prompt a request, its tokens the
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
    std::string replySoFar;  // goes on with this reply to the last message; "" = a new one
    ChatOptions chat;        // how the messages become a prompt
};

// What the model reads of `messages`: by its template or the chosen one; a base model without
// either continues their texts.
Result<std::vector<int32_t>> chatPrompt(const Engine& engine,
                                        const nlohmann::ordered_json& messages,
                                        const ChatOptions& options);

// One reply on its way. The engine's threads fill it, the GUI's timer takes what is new.
class ChatRun {
public:
    struct Update {
        std::vector<GeneratedToken> tokens;
        uint32_t promptDone = 0, promptTotal = 0;
        bool inReasoning = false;             // the prompt begins the reply's reasoning itself
        int leftOut = 0;                      // messages that did not fit the context
        std::optional<RequestResult> result;  // set once: nothing follows
    };

    // Encodes the messages and submits the request. Takes as long as that: for a worker. What it
    // has to say is in the updates. `engine` and `tally` stay until the request has ended.
    static void start(const std::shared_ptr<ChatRun>& run, Engine& engine, RunTally& tally,
                      const ChatRequest& request);

    Update take();
    void cancel() { m_cancelled.store(true); }
    void cancel(Engine& engine);  // also what was submitted
    bool cancelled() const { return m_cancelled.load(); }

    void beginInReasoning();
    void addToken(const GeneratedToken& token);
    void setPrompt(uint32_t done, uint32_t total);
    void setLeftOut(int messages);
    void finish(RequestResult result);
    // Before the engine accepted the request; ContextFull: the prompt is too long.
    void fail(const Status& status, StopReason stop = StopReason::Error);
    std::atomic<uint64_t> request{0};  // the engine's id once submitted

private:
    Result<Request> requestOf(const Engine& engine, const ChatRequest& chat);

    std::mutex m_mutex;  // guards m_update
    Update m_update;
    std::atomic<bool> m_cancelled{false};
};

}  // namespace colibri::ui
