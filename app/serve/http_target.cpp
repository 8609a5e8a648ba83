// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/http_target.h"

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/serve/chat_stream.h"
#include "engine/unicode/unicode.h"

namespace colibri::serve {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kErrorBodyBytes = 4000;  // limit for quoting the body of an error
constexpr size_t kReasonBytes = 200;
constexpr time_t kConnectS = 10, kReadS = 600;
constexpr std::chrono::milliseconds kLookForCancel{50};  // interval of checks for a cancellation

void setUp(httplib::Client& client, const std::string& apiKey) {
    client.set_connection_timeout(kConnectS);
    client.set_read_timeout(kReadS);
    if (!apiKey.empty()) client.set_bearer_token_auth(apiKey.c_str());
}

// Closes a client's connection when `cancel` is set, since the client would wait for a silent
// server.
class Ender {
public:
    Ender(httplib::Client& client, const CancelFlag* cancel) {
        if (!cancel) return;
        m_thread = std::jthread([&client, cancel](const std::stop_token& done) {
            std::mutex mutex;
            std::condition_variable_any wake;
            std::unique_lock lock(mutex);
            // Repeated, because the first time there may be no connection yet.
            while (!done.stop_requested()) {
                if (cancel->load()) client.stop();
                wake.wait_for(lock, done, kLookForCancel, [] { return false; });
            }
        });
    }

private:
    std::jthread m_thread;
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

// "HTTP 400: the reason", if the server gives one.
std::string refusal(int status, const std::string& body) {
    std::string text = "HTTP " + std::to_string(status);
    const Json json = Json::parse(body, nullptr, false);
    if (!json.is_object() || !json.contains("error")) return text;
    const Json& error = json["error"];
    const Json reason = error.is_object() ? error.value("message", Json()) : error;
    if (!reason.is_string()) return text;
    std::string shown = text::toValidUtf8(reason.get<std::string>().substr(0, kReasonBytes));
    for (char& c : shown) c = uint8_t(c) < ' ' || c == 0x7f ? ' ' : c;
    return text + ": " + shown;
}

}  // namespace

Result<std::unique_ptr<HttpTarget>> HttpTarget::connect(std::string url, HttpTargetOptions options,
                                                        const CancelFlag* cancel) {
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
    const httplib::Result models = [&] {
        const Ender ender(client, cancel);
        return client.Get("/v1/models");
    }();
    if (cancel && cancel->load()) return Status(Code::Cancelled, url + ": stopped");
    if (!models) return Status(Code::IoError, url + ": " + errorOf(models.error()));
    if (models->status != 200) {
        return Status(Code::IoError, url + "/v1/models: " + refusal(models->status, models->body),
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
    for (const char* key : {"context_length", "max_model_len"}) {  // ours, vLLM's
        const auto found = json["data"][0].find(key);
        if (found != json["data"][0].end() && found->is_number_integer())
            target->m_contextLength = found->get<int64_t>();
    }
    target->m_options = std::move(options);
    return target;
}

LoadReply HttpTarget::send(const LoadPrompt& prompt, const CancelFlag& cancel) {
    httplib::Client client(m_address);
    setUp(client, m_options.apiKey);
    Json body = {{"model", m_model},
                 {"messages", prompt.messages},
                 {"max_tokens", m_options.maxTokens},
                 {"temperature", 0},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    if (m_options.ignoreEos) body["ignore_eos"] = true;  // some servers do not support it
    LoadReply reply;
    ChatStream stream(reply);
    int status = 0;
    std::string errorBody;  // the message of a rejecting server
    httplib::Request request;
    request.method = "POST";
    request.path = "/v1/chat/completions";
    request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    request.set_header("Content-Type", "application/json");
    request.response_handler = [&](const httplib::Response& response) {
        status = response.status;
        return true;
    };
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
        if (status == 200) {
            stream.push({data, size});
        } else if (errorBody.size() < kErrorBodyBytes) {
            errorBody.append(data, size);
        }
        return !cancel.load();
    };
    const httplib::Result result = [&] {
        const Ender ender(client, &cancel);
        return client.send(request);
    }();
    if (cancel.load()) {
        reply.error = "cancelled";
    } else if (!result) {
        reply.error = errorOf(result.error());
    } else if (result->status == 429) {
        reply.error = "busy";
    } else if (result->status != 200) {
        reply.error = refusal(result->status, errorBody);
    } else if (!stream.begun()) {
        reply.error = "not an event stream";
    } else if (!stream.understood() && reply.error.empty()) {
        reply.error = "no valid events";
    } else if (!stream.ended() && reply.error.empty()) {
        reply.error = "truncated";
    }
    return reply;
}

}  // namespace colibri::serve
