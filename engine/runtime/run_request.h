// SPDX-License-Identifier: Apache-2.0
// A request and the thread that waits for it: the one way from the callbacks of the engine's thread
// to a caller that blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/progress.h"
#include "engine/runtime/engine.h"

namespace colibri {

// What a caller sees of its request while it runs. All are optional, are called on the engine's
// thread under no lock, and must not block. A false cancels the request.
struct RequestObserver {
    std::function<bool(const GeneratedToken&)> onToken;
    // The text of a token after its onToken; at the end also what was held back as the possible
    // beginning of a stop string. The pieces together are RequestResult::text.
    std::function<bool(const std::string&)> onText;
    std::function<void(uint32_t done, uint32_t total)> onPrefill;  // as of RequestCallbacks
    std::function<void(uint32_t position, std::span<const float> logits)> onLogits;
    std::function<void()> onEnd;  // after all others, just before the request has ended
};

class RequestRun {
public:
    using Clock = std::chrono::steady_clock;

    explicit RequestRun(Engine& engine);  // must outlive this
    ~RequestRun();                        // cancels a request under way and waits for its end
    RequestRun(const RequestRun&) = delete;
    RequestRun& operator=(const RequestRun&) = delete;

    // Once. What the observer refers to must live until the request has ended. Errors: as of
    // Engine::submit; the observer is then never called.
    Status start(Request request, RequestObserver observer);
    // Waits until the request has ended or `ready`, which is called under the lock, gives true.
    // False: the time came first.
    bool wait(Clock::time_point until, const std::function<bool()>& ready = {});
    // Runs `body` under the lock of wait(), and lets a waiting thread look again.
    void locked(const std::function<void()>& body);
    void cancel();  // also a prompt under way ends, within about one token
    // Cancels what has not ended, waits for that and gives the result.
    RequestResult& finish();

private:
    struct State;
    Engine& m_engine;
    // Shared: the engine's thread may still be inside notify when the waiting thread goes on.
    std::shared_ptr<State> m_state;
};

// Runs a request to its end while this thread waits. `cancel`, if any, is looked at with each token
// and every 50 ms. Errors: as of Engine::submit; later ones are the result's status.
Result<RequestResult> runRequest(Engine& engine, Request request, RequestObserver observer = {},
                                 const CancelFlag* cancel = nullptr);

}  // namespace colibri
