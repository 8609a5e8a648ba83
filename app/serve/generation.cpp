// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/generation.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

namespace colibri::serve {

namespace {
constexpr std::chrono::milliseconds kLook{50};  // how often to see whether the client is there
}

struct Generation::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    Piece piece;                                 // not taken yet
    std::optional<PromptProgress> progress;      // not taken yet; the newest
    uint32_t cached = 0;                         // prompt tokens
    std::optional<Clock::time_point> begun;      // the engine, with the prompt
    std::vector<std::vector<Logprob>> logprobs;  // of tokens that gave no text yet
    size_t shown = 0;                            // bytes of text so far
    bool done = false;
    RequestResult result;

    void giveLogprobs() {
        std::move(logprobs.begin(), logprobs.end(), std::back_inserter(piece.logprobs));
        logprobs.clear();
    }
};

Generation::Generation(Engine& engine, Connection& connection)
    : m_engine(engine), m_connection(connection), m_shared(std::make_shared<Shared>()) {}

Result<std::unique_ptr<Generation>> Generation::start(Engine& engine, Request request,
                                                      Connection& connection, bool progress) {
    std::unique_ptr<Generation> g(new Generation(engine, connection));
    RequestCallbacks callbacks;
    // The connection is there until onDone has been called: the destructor waits for it.
    callbacks.onToken = [s = g->m_shared, &connection](const GeneratedToken& token) {
        if (connection.gone()) return false;
        std::lock_guard lock(s->mutex);
        if (!token.logprobs.empty()) s->logprobs.push_back(token.logprobs);
        if (token.text.empty()) return true;
        s->piece.text += token.text;
        s->giveLogprobs();
        s->shown += token.text.size();
        s->changed.notify_all();
        return true;
    };
    if (progress)
        callbacks.onPrefill = [s = g->m_shared](uint32_t done, uint32_t total) {
            std::lock_guard lock(s->mutex);
            const Clock::time_point now = Clock::now();
            if (!s->begun) {
                s->begun = now;
                s->cached = done;
            }
            const auto time =
                std::chrono::duration_cast<std::chrono::milliseconds>(now - *s->begun);
            s->progress = {total, s->cached, done, time.count()};
            s->changed.notify_all();
        };
    callbacks.onDone = [s = g->m_shared](RequestResult result) {
        std::lock_guard lock(s->mutex);
        // What was held back as the possible beginning of a stop string.
        if (result.text.size() > s->shown) s->piece.text += result.text.substr(s->shown);
        s->giveLogprobs();
        s->result = std::move(result);
        s->done = true;
        s->changed.notify_all();
    };
    Result<uint64_t> id = engine.submit(std::move(request), std::move(callbacks));
    if (!id.ok()) {
        g->m_shared->done = true;
        return id.status();
    }
    g->m_id = *id;
    return g;
}

const RequestResult& Generation::finish() {
    std::unique_lock lock(m_shared->mutex);
    if (!m_shared->done) {
        lock.unlock();
        m_engine.cancel(m_id);
        lock.lock();
        m_shared->changed.wait(lock, [this] { return m_shared->done; });
    }
    return m_shared->result;
}

Generation::News Generation::wait(Clock::time_point until) {
    Shared& s = *m_shared;
    std::unique_lock lock(s.mutex);
    const auto ready = [&s] { return s.done || s.progress || !s.piece.empty(); };
    while (!s.changed.wait_until(lock, std::min(until, Clock::now() + kLook), ready)) {
        if (m_connection.gone()) {
            lock.unlock();
            m_engine.cancel(m_id);  // a prompt under way ends too
            lock.lock();
        } else if (Clock::now() >= until || m_connection.probeDue()) {
            return News::Silence;
        }
    }
    if (s.progress) return News::Progress;
    return s.piece.empty() ? News::End : News::Text;
}

Generation::Piece Generation::takePiece() {
    std::lock_guard lock(m_shared->mutex);
    return std::exchange(m_shared->piece, {});
}

PromptProgress Generation::takeProgress() {
    std::lock_guard lock(m_shared->mutex);
    return std::exchange(m_shared->progress, {}).value_or(PromptProgress());
}

}  // namespace colibri::serve
