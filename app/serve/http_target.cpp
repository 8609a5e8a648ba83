// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/http_target.h"

#include <httplib.h>

#include "engine/model/json_fields.h"
#include "engine/telemetry/telemetry.h"

namespace colibri::serve {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostTokens = UINT32_MAX;
constexpr time_t kConnectS = 10, kReadS = 600;

void setUp(httplib::Client& client, const std::string& apiKey) {
    client.set_connection_timeout(kConnectS);
    client.set_read_timeout(kReadS);
    if (!apiKey.empty()) client.set_bearer_token_auth(apiKey.c_str());
}

// Takes the events out of a stream as it comes.
class EventReader {
public:
    explicit EventReader(LoadReply& reply) : m_reply(reply) {}

    void push(std::string_view bytes) {
        m_pending += bytes;
        size_t done = 0;
        for (size_t end; (end = m_pending.find('\n', done)) != m_pending.npos; done = end + 1)
            line(std::string_view(m_pending).substr(done, end - done));
        m_pending.erase(0, done);
    }
    bool ended() const { return m_ended; }

private:
    void line(std::string_view line) {
        if (!line.starts_with("data:")) return;
        line.remove_prefix(5);
        if (line.find("[DONE]") != line.npos) {
            m_ended = true;
            return;
        }
        // Other servers may send anything: what has not the form is no figure and no token.
        const Result<nlohmann::json> event = parseJson(line, "event");
        if (!event) return;
        Fields fields(*event, "event");
        if (fields.has("error")) m_reply.error = "failed";
        if (const nlohmann::json* found = fields.find("usage")) {
            Fields usage(*found, "usage");
            m_reply.promptTokens = uint32_t(usage.integer("prompt_tokens", 0, kMostTokens, 0));
            m_reply.tokens = uint32_t(usage.integer("completion_tokens", 0, kMostTokens, 0));
        }
        const nlohmann::json* choices = fields.array("choices", true);
        if (!choices || choices->empty()) return;
        const nlohmann::json* delta = Fields(choices->front(), "choice").find("delta");
        if (!delta) return;
        Fields texts(*delta, "delta");
        if (!texts.text("content", "").empty() || !texts.text("reasoning_content", "").empty())
            m_reply.timesNs.push_back(monotonicNs());
    }

    LoadReply& m_reply;
    std::string m_pending;
    bool m_ended = false;
};

std::string errorOf(httplib::Error error) {
    switch (error) {
        case httplib::Error::Connection:
        case httplib::Error::ConnectionTimeout:
            return "no connection";
        case httplib::Error::Read:
            return "connection lost";
        default:
            return httplib::to_string(error);
    }
}

}  // namespace

Result<std::unique_ptr<HttpTarget>> HttpTarget::connect(std::string url,
                                                        HttpTargetOptions options) {
    while (url.ends_with('/')) url.pop_back();
    if (url.ends_with("/v1")) url.resize(url.size() - 3);
    constexpr std::string_view kScheme = "http://";
    if (!url.starts_with(kScheme) || url.size() == kScheme.size() ||
        url.find('/', kScheme.size()) != url.npos) {
        return Status(Code::InvalidArgument, "\"" + url + "\" is not the address of a server",
                      "Write http://127.0.0.1:8080");
    }
    httplib::Client client(url);
    setUp(client, options.apiKey);
    const httplib::Result models = client.Get("/v1/models");
    if (!models) return Status(Code::IoError, url + ": " + errorOf(models.error()));
    if (models->status != 200) {
        return Status(Code::IoError, url + "/v1/models: HTTP " + std::to_string(models->status),
                      models->status == 401 ? "Give the API key" : "");
    }
    const Json json = Json::parse(models->body, nullptr, false);
    const bool good = json.is_object() && json.contains("data") && json["data"].is_array() &&
                      !json["data"].empty() && json["data"][0].is_object() &&
                      json["data"][0].contains("id") && json["data"][0]["id"].is_string();
    if (!good) return Status(Code::BadInput, url + "/v1/models: no list of models");
    auto target = std::make_unique<HttpTarget>();
    target->m_address = url;
    target->m_model = json["data"][0]["id"];
    target->m_options = std::move(options);
    return target;
}

LoadReply HttpTarget::ask(const LoadPrompt& prompt, const CancelFlag& cancel) {
    httplib::Client client(m_address);
    setUp(client, m_options.apiKey);
    const Json body = {{"model", m_model},
                       {"messages", prompt.messages},
                       {"max_tokens", m_options.maxTokens},
                       {"temperature", 0},
                       {"ignore_eos", m_options.ignoreEos},
                       {"stream", true},
                       {"stream_options", {{"include_usage", true}}}};
    LoadReply reply;
    EventReader reader(reply);
    httplib::Request request;
    request.method = "POST";
    request.path = "/v1/chat/completions";
    request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    request.set_header("Content-Type", "application/json");
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
        reader.push({data, size});
        return !cancel.load();
    };
    const httplib::Result result = client.send(request);
    if (cancel.load()) {
        reply.error = "cancelled";
    } else if (!result) {
        reply.error = errorOf(result.error());
    } else if (result->status == 429) {
        reply.error = "busy";
    } else if (result->status != 200) {
        reply.error = "HTTP " + std::to_string(result->status);
    } else if (!reader.ended() && reply.error.empty()) {
        reply.error = "cut short";
    }
    return reply;
}

}  // namespace colibri::serve
