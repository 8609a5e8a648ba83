// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/generation.h"

#include <condition_variable>
#include <mutex>

namespace colibri::serve {

namespace {
constexpr std::chrono::milliseconds kLook{50};  // how often to see whether the client is there
}

struct Generation::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;  // not taken yet
    size_t shown = 0;  // bytes of text so far
    bool done = false;
    RequestResult result;
};

Generation::Generation(Engine& engine, Connection& connection)
    : m_engine(engine), m_connection(connection), m_shared(std::make_shared<Shared>()) {}

Result<std::unique_ptr<Generation>> Generation::start(Engine& engine, Request request,
                                                      Connection& connection) {
    std::unique_ptr<Generation> g(new Generation(engine, connection));
    RequestCallbacks callbacks;
    // The connection is there until onDone has been called: the destructor waits for it.
    callbacks.onToken = [s = g->m_shared, &connection](const GeneratedToken& token) {
        if (connection.gone()) return false;
        if (token.text.empty()) return true;
        std::lock_guard lock(s->mutex);
        s->text += token.text;
        s->shown += token.text.size();
        s->changed.notify_all();
        return true;
    };
    callbacks.onDone = [s = g->m_shared](RequestResult result) {
        std::lock_guard lock(s->mutex);
        // What was held back as the possible beginning of a stop string.
        if (result.text.size() > s->shown) s->text += result.text.substr(s->shown);
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

bool Generation::next(std::string& text) {
    std::unique_lock lock(m_shared->mutex);
    const auto ready = [this] { return m_shared->done || !m_shared->text.empty(); };
    while (!m_shared->changed.wait_for(lock, kLook, ready)) {
        if (!m_connection.gone()) continue;
        lock.unlock();
        m_engine.cancel(m_id);  // a prompt under way ends too
        lock.lock();
    }
    text = std::move(m_shared->text);
    m_shared->text.clear();
    return !text.empty();
}

}  // namespace colibri::serve
