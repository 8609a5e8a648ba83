// SPDX-License-Identifier: GPL-3.0-or-later
// One request between the engine's thread, which must not wait, and the thread of a connection,
// which may. When the client hangs up or the server ends, the request is cancelled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/serve/connection.h"
#include "engine/run/engine.h"

namespace colibri::serve {

class Generation {
public:
    // `engine` and `connection` must outlive this. Errors: as of Engine::submit.
    static Result<std::unique_ptr<Generation>> start(Engine& engine, Request request,
                                                     Connection& connection);
    ~Generation() { finish(); }

    struct Piece {
        std::string text;
        // Of the tokens the text comes from, when asked for. Those that gave none go with the next
        // text, or alone at the end.
        std::vector<std::vector<Logprob>> logprobs;

        bool empty() const { return text.empty() && logprobs.empty(); }
    };
    // Waits until there is more, which replaces `piece`, or the request has ended (false).
    bool next(Piece& piece);
    // Cancels what is not at its end and waits for that, at most about one token.
    const RequestResult& finish();

private:
    struct Shared;
    Generation(Engine& engine, Connection& connection);

    Engine& m_engine;
    Connection& m_connection;
    std::shared_ptr<Shared> m_shared;
    uint64_t m_id = 0;
};

}  // namespace colibri::serve
