// SPDX-License-Identifier: GPL-3.0-or-later
// An OpenAI-compatible HTTP server for one engine:
//   POST /v1/chat/completions, /v1/completions   whole, or streamed as server-sent events
//   GET  /v1/models, /v1/models/NAME, /health, /metrics (Prometheus)
// Without an API key it listens on loopback addresses only; see access.h for the clients it
// accepts.
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
    int port = 8080;                             // 0: any free port
    int defaultMaxTokens = 512;                  // if a request sets none
    std::chrono::milliseconds keepAlive{5'000};  // a stream is never silent for longer
    ChatOptions chat;  // chat_template_kwargs of a request override arguments by name
    ConnectionLimits limits;
};

class ApiServer {
public:
    // `engine` must outlive this.
    ApiServer(Engine& engine, ApiOptions options);
    // Without a model. Until serve() every response is 503: /health with {"status":"loading"},
    // others with an error that says that the model is loading.
    explicit ApiServer(ApiOptions options);
    ~ApiServer();  // stops

    // Serves a loaded model. `engine` must outlive this, or stop() must be called before it is
    // destroyed. Call once; before or after start().
    void serve(Engine& engine);
    // Sets the progress of loading, which /health and errors report. Any thread.
    void setLoadProgress(const Progress& progress);

    // Starts answering requests on threads of its own and returns. Errors: InvalidArgument (those
    // of Access::check, or an address that needs a key), IoError (the address is in use). Call
    // once.
    Status start();
    // Cancels running requests, notifies the clients, joins every thread; takes well under a second
    // unless a prompt is being computed.
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
