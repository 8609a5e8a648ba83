// SPDX-License-Identifier: GPL-3.0-or-later
// Passes one request between the engine's thread, which must not block, and the thread of a
// connection, which may. Cancels the request if the client disconnects or the server shuts down.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/serve/connection.h"
#include "engine/runtime/run_request.h"

namespace colibri::serve {

// The progress of a prompt. `processed` includes `cached`, the tokens found in the KV cache.
struct PromptProgress {
    uint32_t total = 0, cached = 0, processed = 0;
    int64_t timeMs = 0;  // since the engine started the prompt
};

class Generation {
public:
    // `engine` and `connection` must outlive this. `progress`: report the progress of the prompt.
    // Errors: those of Engine::submit.
    static Result<std::unique_ptr<Generation>> start(Engine& engine, Request request,
                                                     Connection& connection, bool progress);

    struct Piece {
        std::string text;
        // Log-probabilities, if requested, of the tokens that make up the text. Tokens without text
        // are reported with the next text, or alone at the end.
        std::vector<std::vector<Logprob>> logprobs;

        bool empty() const { return text.empty() && logprobs.empty(); }
    };
    enum class News {
        Text,      // takePiece() has it
        Progress,  // takeProgress() has it
        Silence,   // none until the given time, or the client needs a byte (Connection::probeDue)
        End,       // finish() does not block
    };
    // Waits for the next event.
    News wait(Clock::time_point until);
    Piece takePiece();
    PromptProgress takeProgress();
    // Cancels the request if it is running and waits for its end, about one token at most.
    const RequestResult& finish() { return m_run.finish(); }

private:
    Generation(Engine& engine, Connection& connection);
    RequestObserver observer(bool progress);
    void giveLogprobs();
    void addProgress(uint32_t done, uint32_t total);

    Connection& m_connection;
    // Used by the engine's thread.
    std::vector<std::vector<Logprob>> m_logprobs;  // of tokens without text so far
    uint32_t m_cached = 0;                         // prompt tokens
    std::optional<Clock::time_point> m_begun;      // when the engine started the prompt
    // Guarded by the lock of m_run.
    Piece m_piece;                             // not taken yet
    std::optional<PromptProgress> m_progress;  // not taken yet; the newest
    RequestRun m_run;  // last member: its destructor waits for the engine's thread
};

}  // namespace colibri::serve
