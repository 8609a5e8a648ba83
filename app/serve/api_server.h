// SPDX-License-Identifier: GPL-3.0-or-later
// An OpenAI-compatible HTTP server for one engine:
//   POST /v1/chat/completions, /v1/completions   whole, or streamed as server-sent events
//   GET  /v1/models, /v1/models/NAME, /health, /metrics (Prometheus)
// Without an API key it listens on loopback addresses only; see access.h for who is answered.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "app/serve/access.h"
#include "app/serve/connection.h"
#include "app/serve/serve_metrics.h"
#include "engine/base/progress.h"

namespace colibri::serve {

struct ApiOptions : AccessOptions {
    std::string host = "127.0.0.1";
    int port = 8080;                             // 0: any that is free
    int defaultMaxTokens = 512;                  // where a request does not say
    std::chrono::milliseconds keepAlive{5'000};  // a stream is never silent for longer
    ChatOptions chat;  // a request's chat_template_kwargs replace arguments by name
    ConnectionLimits limits;
};

class ApiServer {
public:
    // `engine` must outlive this.
    ApiServer(Engine& engine, ApiOptions options);
    // Without a model. Until serve() every request is answered with 503: /health with
    // {"status":"loading"}, others with an error that says so.
    explicit ApiServer(ApiOptions options);
    ~ApiServer();  // stops

    // The model has been loaded. `engine` must outlive this, or stop() must come before its end.
    // Once only; before or after start().
    void serve(Engine& engine);
    // How far the load is, for those who ask meanwhile. From any thread.
    void tellLoading(const Progress& progress);

    // Returns once requests are answered, from threads of its own. Errors: InvalidArgument (as
    // of Access::check, an address that needs a key), IoError (the address is taken). Once only.
    Status start();
    // Cancels what runs, tells the clients, joins every thread; well within a second unless a
    // prompt is being computed.
    void stop();

    bool running() const;
    int port() const;         // 0 before start
    std::string url() const;  // "http://127.0.0.1:8080"
    ApiStats stats() const;
    int connections() const;

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri::serve
