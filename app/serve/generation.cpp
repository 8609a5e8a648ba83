// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/generation.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace colibri::serve {

namespace {
constexpr std::chrono::milliseconds kLook{50};  // interval of checks for a disconnect
}

Generation::Generation(Engine& engine, Connection& connection)
    : m_connection(connection), m_run(engine) {}

Result<std::unique_ptr<Generation>> Generation::start(Engine& engine, Request request,
                                                      Connection& connection, bool progress) {
    std::unique_ptr<Generation> g(new Generation(engine, connection));
    COLIBRI_TRY(g->m_run.start(std::move(request), g->observer(progress)));
    return g;
}

RequestObserver Generation::observer(bool progress) {
    RequestObserver observer;
    observer.onToken = [this](const GeneratedToken& token) {
        if (m_connection.disconnected()) return false;
        if (!token.logprobs.empty()) m_logprobs.push_back(token.logprobs);
        return true;
    };
    observer.onText = [this](const std::string& text) {
        m_run.locked([&] {
            m_piece.text += text;
            giveLogprobs();
        });
        return true;
    };
    observer.onEnd = [this] { m_run.locked([this] { giveLogprobs(); }); };
    if (progress)
        observer.onPrefill = [this](uint32_t done, uint32_t total) { addProgress(done, total); };
    return observer;
}

void Generation::giveLogprobs() {
    std::move(m_logprobs.begin(), m_logprobs.end(), std::back_inserter(m_piece.logprobs));
    m_logprobs.clear();
}

void Generation::addProgress(uint32_t done, uint32_t total) {
    const Clock::time_point now = Clock::now();
    if (!m_begun) {
        m_begun = now;
        m_cached = done;
    }
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(now - *m_begun);
    m_run.locked([&] { m_progress = {total, m_cached, done, time.count()}; });
}

Generation::News Generation::wait(Clock::time_point until) {
    const auto ready = [this] { return m_progress || !m_piece.empty(); };
    while (!m_run.wait(std::min(until, Clock::now() + kLook), ready)) {
        if (m_connection.disconnected()) {
            m_run.cancel();
        } else if (Clock::now() >= until || m_connection.probeDue()) {
            return News::Silence;
        }
    }
    News news = News::End;
    m_run.locked([&] {
        if (!m_piece.empty()) news = News::Text;
        if (m_progress) news = News::Progress;
    });
    return news;
}

Generation::Piece Generation::takePiece() {
    Piece piece;
    m_run.locked([&] { piece = std::exchange(m_piece, {}); });
    return piece;
}

PromptProgress Generation::takeProgress() {
    PromptProgress progress;
    m_run.locked([&] { progress = std::exchange(m_progress, {}).value_or(PromptProgress()); });
    return progress;
}

}  // namespace colibri::serve
