// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_request.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace colibri {

namespace {
constexpr std::chrono::milliseconds kCancelPoll{50};
}

struct RequestRun::State {
    RequestObserver observer;
    size_t shown = 0;  // bytes of text that onText has seen

    std::mutex mutex;  // guards the following
    std::condition_variable changed;
    uint64_t id = 0;  // 0: not submitted
    bool cancelled = false;
    bool ended = false;
    RequestResult result;

    bool show(const std::string& text) {
        shown += text.size();
        return observer.onText(text);
    }
    bool token(const GeneratedToken& token) {
        if (observer.onToken && !observer.onToken(token)) return false;
        return !observer.onText || token.text.empty() || show(token.text);
    }
    void end(RequestResult last) {
        if (observer.onText && last.text.size() > shown) show(last.text.substr(shown));
        if (observer.onEnd) observer.onEnd();
        std::lock_guard lock(mutex);
        result = std::move(last);
        ended = true;
        changed.notify_all();
    }
};

RequestRun::RequestRun(Engine& engine) : m_engine(engine), m_state(std::make_shared<State>()) {}

RequestRun::~RequestRun() {
    finish();
}

Status RequestRun::start(Request request, RequestObserver observer) {
    RequestCallbacks callbacks;
    callbacks.onToken = [s = m_state](const GeneratedToken& token) { return s->token(token); };
    callbacks.onPrefill = observer.onPrefill;
    callbacks.onLogits = observer.onLogits;
    callbacks.onDone = [s = m_state](RequestResult result) { s->end(std::move(result)); };
    m_state->observer = std::move(observer);
    Result<uint64_t> id = m_engine.submit(std::move(request), std::move(callbacks));
    if (!id.ok()) return id.status();
    std::lock_guard lock(m_state->mutex);
    m_state->id = *id;
    return {};
}

bool RequestRun::wait(Clock::time_point until, const std::function<bool()>& ready) {
    std::unique_lock lock(m_state->mutex);
    return m_state->changed.wait_until(lock, until,
                                       [&] { return m_state->ended || (ready && ready()); });
}

void RequestRun::locked(const std::function<void()>& body) {
    std::lock_guard lock(m_state->mutex);
    body();
    m_state->changed.notify_all();
}

void RequestRun::cancel() {
    uint64_t id = 0;
    {
        std::lock_guard lock(m_state->mutex);
        if (m_state->ended || std::exchange(m_state->cancelled, true)) return;
        id = m_state->id;
    }
    if (id != 0) m_engine.cancel(id);
}

RequestResult& RequestRun::finish() {
    cancel();
    std::unique_lock lock(m_state->mutex);
    if (m_state->id != 0) m_state->changed.wait(lock, [this] { return m_state->ended; });
    return m_state->result;
}

Result<RequestResult> runRequest(Engine& engine, Request request, RequestObserver observer,
                                 const CancelFlag* cancel) {
    if (cancel) {
        observer.onToken = [cancel,
                            onToken = std::move(observer.onToken)](const GeneratedToken& token) {
            const bool wanted = !onToken || onToken(token);
            return wanted && !cancel->load(std::memory_order_relaxed);
        };
    }
    RequestRun run(engine);
    COLIBRI_TRY(run.start(std::move(request), std::move(observer)));
    while (!run.wait(RequestRun::Clock::now() + kCancelPoll)) {
        if (cancel && cancel->load()) run.cancel();
    }
    return std::move(run.finish());
}

}  // namespace colibri
