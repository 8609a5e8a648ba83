// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/api_server.h"

#include <strings.h>

#include <charconv>
#include <mutex>
#include <optional>
#include <thread>

#include "app/serve/generation.h"
#include "app/serve/openai.h"
#include "app/serve/parameters.h"
#include "engine/base/format.h"

namespace colibri::serve {

namespace {

using HttpRequest = httplib::Request;
using HttpResponse = httplib::Response;
using Handled = httplib::Server::HandlerResponse;

constexpr const char* kJson = "application/json";

bool isDigits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

bool comesInChunks(const HttpRequest& req) {
    return req.get_header_value_count("Transfer-Encoding") == 1 &&
           strcasecmp(req.get_header_value("Transfer-Encoding").c_str(), "chunked") == 0;
}

// The library would read a body without a length until the client disconnects or times out.
int refusedWithoutLength(const HttpRequest& req) {
    if (req.has_header("Transfer-Encoding")) return comesInChunks(req) ? 0 : 501;
    const bool hasBody = req.method == "POST" || req.method == "PUT" || req.method == "PATCH";
    return hasBody ? 411 : 0;
}

// The HTTP status with which a request is rejected because of its length; 0: its body may be read.
int refusedLength(const HttpRequest& req, size_t most) {
    const size_t given = req.get_header_value_count("Content-Length");
    if (given == 0) return refusedWithoutLength(req);
    // With both headers, a proxy could split the bytes into requests differently (request
    // smuggling).
    if (req.has_header("Transfer-Encoding")) return 400;
    const std::string text = req.get_header_value("Content-Length");
    if (given > 1 || !isDigits(text)) return 400;
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    return error != std::errc() || length > most ? 413 : 0;
}

void setError(HttpResponse& res, const ApiError& error) {
    res.status = error.status;
    res.set_content(errorBody(error), kJson);
    if (error.status == 401) res.set_header("WWW-Authenticate", "Bearer");
    if (error.status == 429 || error.status == 503) res.set_header("Retry-After", "1");
}

void setError(HttpResponse& res, int status, const std::string& message) {
    setError(res, ApiError{status, message, {}, {}});
}

const char* messageOf(int status) {
    switch (status) {
        case 411:
            return "the request does not give the length of its body. Send a Content-Length "
                   "header, "
                   "or the body in chunks";
        case 413:
            return "the request's body is too large";
        case 414:
            return "the request's address is too long";
        case 501:
            return "the request's Transfer-Encoding is not \"chunked\", the only supported "
                   "encoding";
        default:
            return "the request is not valid HTTP";
    }
}

}  // namespace

struct ApiServer::Impl {
    const ApiOptions options;
    const Access access;
    std::atomic<Engine*> ready{nullptr};  // nullptr: the model is loading
    std::string model;                    // written before `ready`
    std::mutex loadMutex;
    Progress load;  // under loadMutex
    HttpServer http;
    ServeMetrics metrics;
    std::thread listener;
    std::atomic<bool> listening{false};
    int port = 0;

    struct Route {
        const char *method, *path;
        void (Impl::*answer)(const HttpRequest&, HttpResponse&);
    };
    static const Route kRoutes[];

    explicit Impl(ApiOptions o) : options(std::move(o)), access(options), http(options.limits) {}

    bool loading() const { return ready.load(std::memory_order_acquire) == nullptr; }
    Engine& engine() const { return *ready.load(std::memory_order_acquire); }  // REQUIRES: !loading

    void install();
    bool admit(const HttpRequest& req, HttpResponse& res);
    void refuseWhileLoading(const HttpRequest& req, HttpResponse& res);
    void route(const HttpRequest& req, HttpResponse& res);

    void chat(const HttpRequest& req, HttpResponse& res);
    void completion(const HttpRequest& req, HttpResponse& res);
    void models(const HttpRequest& req, HttpResponse& res);
    void oneModel(const HttpRequest& req, HttpResponse& res);
    void health(const HttpRequest& req, HttpResponse& res);
    void prometheus(const HttpRequest& req, HttpResponse& res);

    void generate(Endpoint endpoint, const HttpRequest& req, HttpResponse& res);
    void whole(Generation& generation, ReplyWriter& writer, HttpResponse& res);
    httplib::ContentProviderWithoutLength eventsOf(std::shared_ptr<Generation> generation,
                                                   ReplyWriter writer) const;
    void stream(std::shared_ptr<Generation> generation, ReplyWriter writer, const HttpRequest& req,
                HttpResponse& res);
    Json modelJson() const;
    ApiStats stats() const;
};

// A path that ends in "/" matches everything below it.
const ApiServer::Impl::Route ApiServer::Impl::kRoutes[] = {
    {"POST", "/v1/chat/completions", &Impl::chat},
    {"POST", "/v1/completions", &Impl::completion},
    {"GET", "/v1/models", &Impl::models},
    {"GET", "/v1/models/", &Impl::oneModel},
    {"GET", "/health", &Impl::health},
    {"GET", "/metrics", &Impl::prometheus},
};

void ApiServer::Impl::install() {
    const auto answer = [this](const HttpRequest& req, HttpResponse& res) { route(req, res); };
    http.Get(".*", answer);
    http.Post(".*", answer);
    http.Put(".*", answer);
    http.Patch(".*", answer);
    http.Delete(".*", answer);
    http.Options(".*", answer);
    // Runs before a body is read.
    http.set_pre_routing_handler([this](const HttpRequest& req, HttpResponse& res) {
        access.addHeaders(req, res);
        if (admit(req, res)) {
            // A body is JSON regardless of its content type. curl -d sends the type of a form, and
            // the library limits forms to 8 KiB.
            httplib::Headers& headers = const_cast<HttpRequest&>(req).headers;
            headers.erase("Content-Type");
            // Without a length the request has no body; the library would wait for one.
            if (req.method == "DELETE" && !comesInChunks(req))
                headers.emplace("Content-Length", "0");
            return Handled::Unhandled;
        }
        if (res.status < 400) return Handled::Handled;
        Connection::current().closeAfterReply();
        return Handled::Handled;
    });
    // Requests that the library itself rejects.
    http.set_error_handler([](const HttpRequest&, HttpResponse& res) {
        if (!res.body.empty()) return;
        if (res.status != 404) Connection::current().closeAfterReply();
        setError(res, res.status, messageOf(res.status));
    });
    http.set_exception_handler([](const HttpRequest&, HttpResponse& res, std::exception_ptr) {
        setError(res, 500, "internal server error");
    });
    // Responses are counted before they are sent, so that a client that has a response finds it in
    // the metrics.
    http.set_post_routing_handler([this](const HttpRequest&, HttpResponse& res) {
        metrics.addResponse(res.status);
        if (res.status == 204) res.headers.erase("Content-Length");
        if (!Connection::current().closing()) return;
        res.headers.erase("Keep-Alive");
        res.headers.erase("Connection");
        res.set_header("Connection", "close");
    });
}

// False: the request is rejected, and `res` has the response.
bool ApiServer::Impl::admit(const HttpRequest& req, HttpResponse& res) {
    if (const std::optional<Access::Refusal> refusal = access.refuse(req)) {
        setError(res, refusal->status, refusal->message);
        return false;
    }
    if (req.has_header("Content-Encoding")) {  // its uncompressed size is unknown
        setError(res, 415, "compressed requests are not supported");
        return false;
    }
    if (const int status = refusedLength(req, options.limits.bodyBytes); status != 0) {
        setError(res, status, messageOf(status));
        return false;
    }
    if (Access::isPreflight(req)) {
        Access::answerPreflight(req, res);
        return false;
    }
    if (!loading()) return true;
    refuseWhileLoading(req, res);
    return false;
}

void ApiServer::Impl::refuseWhileLoading(const HttpRequest& req, HttpResponse& res) {
    Progress now;
    {
        std::lock_guard lock(loadMutex);
        now = load;
    }
    const std::string far =
        now.total > 0 ? formatPercent(double(now.done) / double(now.total), 0) : std::string();
    setError(res, 503,
             "the model is loading" + (far.empty() ? "" : " (" + now.stage + ", " + far + ")") +
                 ". Try again later; GET /health reports when it is ready");
    if (req.path != "/health") return;
    Json health = {{"status", "loading"}};
    if (!now.stage.empty()) health["stage"] = now.stage;
    if (now.total > 0) health["progress"] = double(now.done) / double(now.total);
    res.set_content(health.dump(-1, ' ', false, Json::error_handler_t::replace), kJson);
}

void ApiServer::Impl::route(const HttpRequest& req, HttpResponse& res) {
    const std::string method = req.method == "HEAD" ? "GET" : req.method;
    const Route* samePath = nullptr;
    for (const Route& r : kRoutes) {
        const std::string_view path = r.path;
        const bool match = path.back() == '/'
                               ? req.path.size() > path.size() && req.path.starts_with(path)
                               : req.path == path;
        if (!match) continue;
        samePath = &r;
        if (method == r.method) return (this->*r.answer)(req, res);
    }
    if (!samePath) return setError(res, 404, "unknown path " + req.path);
    setError(res, 405, req.path + " accepts " + samePath->method + " only");
    res.set_header("Allow", samePath->method);
}

void ApiServer::Impl::chat(const HttpRequest& req, HttpResponse& res) {
    generate(Endpoint::Chat, req, res);
}

void ApiServer::Impl::completion(const HttpRequest& req, HttpResponse& res) {
    generate(Endpoint::Completion, req, res);
}

void ApiServer::Impl::generate(Endpoint endpoint, const HttpRequest& req, HttpResponse& res) {
    const Result<nlohmann::json> body = parseBody(req.body);
    if (!body.ok()) return setError(res, requestError(body.status()));
    if (const auto refused = refusedParameter(*body, endpoint)) return setError(res, *refused);
    std::string wrong;
    Result<ApiRequest> parsed =
        endpoint == Endpoint::Chat
            ? parseChatRequest(engine(), *body, options.defaultMaxTokens, options.chat, wrong)
            : parseCompletionRequest(engine(), *body, options.defaultMaxTokens, wrong);
    if (!parsed.ok()) {
        ApiError error = requestError(parsed.status());
        error.parameter = wrong;
        return setError(res, error);
    }
    if (!parsed->model.empty() && parsed->model != model) {
        return setError(
            res, 404, "unknown model \"" + parsed->model + "\". This server has \"" + model + "\"");
    }
    ReplyWriter writer(*parsed, model, engine().tokenizer());
    const bool tooLong = int64_t(parsed->request.prompt.size()) >= engine().contextLength();
    Result<std::unique_ptr<Generation>> generation = Generation::start(
        engine(), std::move(parsed->request), Connection::current(), parsed->progress);
    if (!generation.ok()) {
        ApiError error = requestError(generation.status());
        if (error.status == 400 && tooLong) {
            error.code = "context_length_exceeded";
            error.parameter = endpoint == Endpoint::Chat ? "messages" : "prompt";
        }
        return setError(res, error);
    }
    metrics.addStart();
    if (parsed->stream) {
        stream(std::move(*generation), std::move(writer), req, res);
    } else {
        whole(**generation, writer, res);
    }
}

namespace {

// Empty if the result is a reply.
std::optional<ApiError> errorOf(const RequestResult& result, const Connection& connection) {
    if (!result.status.ok()) return replyError(result.status);
    if (result.stop != StopReason::Cancelled) return {};
    return replyError(Status(Code::Cancelled, connection.stopping() ? "the server is shutting down"
                                                                    : "the request was cancelled"));
}

}  // namespace

void ApiServer::Impl::whole(Generation& generation, ReplyWriter& writer, HttpResponse& res) {
    using News = Generation::News;
    Connection& connection = Connection::current();
    for (News news; (news = generation.wait(Clock::time_point::max())) != News::End;) {
        if (news == News::Text) generation.takePiece();
        if (news == News::Silence) connection.probe();
    }
    const RequestResult& result = generation.finish();
    metrics.addResult(result);
    if (const auto error = errorOf(result, connection)) return setError(res, *error);
    res.set_content(writer.whole(result), kJson);
}

httplib::ContentProviderWithoutLength ApiServer::Impl::eventsOf(
    std::shared_ptr<Generation> generation, ReplyWriter writer) const {
    return
        [generation, writer, pause = options.keepAlive](size_t, httplib::DataSink& sink) mutable {
            Clock::time_point due = Clock::now() + pause;
            const auto send = [&](const std::string& s) {
                if (s.empty()) return true;
                due = Clock::now() + pause;
                return sink.write(s.data(), s.size());
            };
            bool ok = send(writer.first());
            for (bool ended = false; ok && !ended;) {
                switch (generation->wait(due)) {
                    case Generation::News::Text:
                        ok = send(writer.piece(generation->takePiece()));
                        break;
                    case Generation::News::Progress:
                        ok = send(writer.progress(generation->takeProgress()));
                        break;
                    case Generation::News::Silence:
                        ok = send(ReplyWriter::keepAlive());
                        break;
                    case Generation::News::End:
                        ended = true;
                }
            }
            if (!ok) return false;
            const RequestResult& result = generation->finish();
            const auto error = errorOf(result, Connection::current());
            send(error ? ReplyWriter::failure(*error) : writer.last(result));
            sink.done();
            return true;
        };
}

void ApiServer::Impl::stream(std::shared_ptr<Generation> generation, ReplyWriter writer,
                             const HttpRequest& req, HttpResponse& res) {
    constexpr const char* kType = "text/event-stream";
    res.set_header("Cache-Control", "no-cache");
    res.set_header("X-Accel-Buffering", "no");  // proxies do not buffer the stream
    const auto done = [this, generation](bool) { metrics.addResult(generation->finish()); };
    auto events = eventsOf(generation, std::move(writer));
    if (req.version == "HTTP/1.0") {  // no chunks: the stream ends with the connection
        Connection::current().closeAfterReply();
        res.set_content_provider(kType, std::move(events), done);
    } else {
        res.set_chunked_content_provider(kType, std::move(events), done);
    }
}

Json ApiServer::Impl::modelJson() const {
    return {{"id", model},
            {"object", "model"},
            {"created", 0},
            {"owned_by", "local"},
            {"context_length", engine().contextLength()}};
}

void ApiServer::Impl::models(const HttpRequest&, HttpResponse& res) {
    const Json list = {{"object", "list"}, {"data", Json::array({modelJson()})}};
    res.set_content(list.dump(), kJson);
}

void ApiServer::Impl::oneModel(const HttpRequest& req, HttpResponse& res) {
    const std::string name = req.path.substr(std::string_view("/v1/models/").size());
    if (name != model) return setError(res, 404, "unknown model \"" + name + "\"");
    res.set_content(modelJson().dump(), kJson);
}

void ApiServer::Impl::health(const HttpRequest&, HttpResponse& res) {
    res.set_content(R"({"status":"ok"})", kJson);
}

void ApiServer::Impl::prometheus(const HttpRequest&, HttpResponse& res) {
    res.set_content(prometheusText(stats(), engine(), http.connections()),
                    "text/plain; version=0.0.4; charset=utf-8");
}

ApiStats ApiServer::Impl::stats() const {
    ApiStats s = metrics.stats();
    if (const uint64_t refused = http.refusedConnections()) s.responses[503] += refused;
    return s;
}

ApiServer::ApiServer(ApiOptions options) : m_impl(std::make_unique<Impl>(std::move(options))) {
    m_impl->install();
}

ApiServer::ApiServer(Engine& engine, ApiOptions options) : ApiServer(std::move(options)) {
    serve(engine);
}

void ApiServer::serve(Engine& engine) {
    m_impl->model = modelId(engine);
    m_impl->ready.store(&engine, std::memory_order_release);
}

void ApiServer::setLoadProgress(const Progress& progress) {
    std::lock_guard lock(m_impl->loadMutex);
    m_impl->load = progress;
}

ApiServer::~ApiServer() {
    stop();
}

namespace {

Status allowed(const ApiOptions& o) {
    COLIBRI_TRY(Access::check(o));
    if (o.apiKey.empty() && !isLoopback(o.host)) {
        return Status(
            Code::InvalidArgument,
            "\"" + o.host + "\" can be reached from other machines, and there is no API key",
            "Give an API key, or listen on 127.0.0.1");
    }
    if (o.port < 0 || o.port > 65535) {
        return Status(Code::InvalidArgument, "port " + std::to_string(o.port) + " is not 0..65535");
    }
    return {};
}

}  // namespace

Status ApiServer::start() {
    Impl& m = *m_impl;
    const ApiOptions& o = m.options;
    COLIBRI_TRY(allowed(o));
    m.port = m.http.bindTo(o.host, o.port);
    if (m.port == 0) return HttpServer::whyNot(o.host, o.port);
    m.listening.store(true);
    m.listener = std::thread([&m] {
        try {
            m.http.listen_after_bind();
        } catch (const std::bad_alloc&) {  // running() becomes false
        }
        m.listening.store(false);
    });
    // stop() of the library has no effect before its loop runs.
    while (!m.http.is_running() && m.listening.load()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
}

void ApiServer::stop() {
    if (!m_impl->listener.joinable()) return;
    m_impl->http.end();
    m_impl->listener.join();
}

bool ApiServer::running() const {
    return m_impl->listening.load();
}

int ApiServer::port() const {
    return m_impl->port;
}

std::string ApiServer::url() const {
    const std::string& host = m_impl->options.host;
    const bool v6 = host.find(':') != host.npos && host.front() != '[';
    return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(m_impl->port);
}

ApiStats ApiServer::stats() const {
    return m_impl->stats();
}

int ApiServer::connections() const {
    return m_impl->http.connections();
}

}  // namespace colibri::serve
