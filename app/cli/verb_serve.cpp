// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdlib>
#include <thread>

#include "app/cli/sampling_args.h"
#include "app/serve/api_server.h"
#include "app/serve/openai.h"
#include "engine/base/format.h"

namespace colibri::cli {

namespace {

struct ServeArgs {
    EngineArgs engine;
    ChatOptionArgs chat;
    serve::ApiOptions api;
};

Json quantiles(const Histogram& h) {
    return {{"p50", jsonNumber(h.quantile(0.5) * 1e-6)},
            {"p99", jsonNumber(h.quantile(0.99) * 1e-6)},
            {"max", jsonNumber(h.max() * 1e-6)},
            {"n", h.count()}};
}

int printSummary(const serve::ApiStats& s, bool json) {
    if (json) {
        return outJson({{"completed", s.completions},
                        {"cancelled", s.cancelled},
                        {"failed", s.failed},
                        {"prompt_tokens", s.promptTokens},
                        {"generated_tokens", s.generatedTokens},
                        {"ttft_ms", quantiles(s.ttft)},
                        {"itl_ms", quantiles(s.itl)}});
    }
    message(formatCount(int64_t(s.completions)) + " requests completed, " +
            formatCount(int64_t(s.cancelled)) + " cancelled, " + formatCount(int64_t(s.failed)) +
            " failed; " + formatCount(int64_t(s.generatedTokens)) + " tokens");
    return kOk;
}

int run(ServeArgs args) {
    if (const char* key = std::getenv("COLIBRI_API_KEY"); key && args.api.apiKey.empty()) {
        args.api.apiKey = key;
    }
    Result<ChatOptions> chat = args.chat.options();
    if (!chat.ok()) return fail(chat.status());
    args.api.chat = std::move(*chat);
    LoadedEngine loaded;  // must outlive the server
    serve::ApiServer server(args.api);
    // The server starts before the model is loaded, so that clients learn that it is loading.
    if (Status status = server.start(); !status.ok()) return fail(status);
    message("Listening on " + args.api.host + ", port " + std::to_string(server.port()) +
            "; loading the model");
    Result<LoadedEngine> made =
        loadEngine(args.engine, [&](const Progress& p) { server.setLoadProgress(p); });
    if (!made.ok()) return fail(made.status());
    loaded = std::move(*made);
    server.serve(*loaded.engine);
    message("Serving " + serve::modelId(*loaded.engine) + " at " + server.url() +
            "/v1, Ctrl-C ends");
    LostRecording lost;
    while (!interrupted().load() && server.running()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        lost.report(loaded);
    }
    const bool stopped = interrupted().load();
    server.stop();
    int code = printSummary(server.stats(), args.engine.json);
    if (!stopped) code = fail(Status(Code::IoError, "the server stopped listening unexpectedly"));
    return endRecording(loaded, code);
}

}  // namespace

void addServe(Verbs& verbs) {
    auto args = std::make_shared<ServeArgs>();
    CLI::App* verb = verbs.add("serve", "Answer OpenAI-compatible requests over HTTP",
                               [args] { return run(*args); });
    args->engine.addTo(*verb);
    verb->add_option(
            "--host", args->api.host,
            "Address to listen on; an address that other machines can reach needs an API key")
        ->capture_default_str();
    verb->add_option("--port", args->api.port, "0 chooses a free port")->capture_default_str();
    verb->add_option("--api-key", args->api.apiKey,
                     "Key that clients must send (or set the variable COLIBRI_API_KEY)");
    verb->add_option(
            "--cors-origin", args->api.corsOrigins,
            "Also admit web pages of this origin (https://HOST:PORT), besides those of this "
            "machine; repeatable; * admits every page and needs an API key")
        ->type_name("ORIGIN")
        ->allow_extra_args(false);
    verb->add_option(
            "--allowed-host", args->api.allowedHosts,
            "Without an API key: a host name, besides localhost, by which clients may address "
            "the server (behind a proxy: the proxy's name); repeatable")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb->add_option("--default-max-tokens", args->api.defaultMaxTokens,
                     "Maximum tokens of a reply if the request sets none")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    args->chat.addTo(*verb);
    verb->footer(
        "POST /v1/chat/completions and /v1/completions, GET /v1/models, /health, /metrics.");
}

}  // namespace colibri::cli
