// SPDX-License-Identifier: GPL-3.0-or-later
// A server with a small model, and its clients.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app/serve/api_server.h"
#include "tests/engine/runtime/run_fixture.h"

namespace colibri::test {

using Json = nlohmann::json;

struct Served {
    explicit Served(const Knobs& knobs = {}, serve::ApiOptions options = {},
                    const std::filesystem::path& model = goldenModel("qwen3moe"))
        : engine(load(model, knobs)) {
        options.port = 0;
        server = std::make_unique<serve::ApiServer>(*engine, options);
        const Status status = server->start();
        if (!status.ok()) throw std::runtime_error(status.text());
    }
    httplib::Client client() const {
        httplib::Client c("127.0.0.1", server->port());
        c.set_read_timeout(60);
        return c;
    }

    std::unique_ptr<Engine> engine;
    std::unique_ptr<serve::ApiServer> server;
};

inline Json chatBody(const std::string& text, int tokens, bool stream = false) {
    return {{"messages", {{{"role", "user"}, {"content", text}}}},
            {"max_tokens", tokens},
            {"temperature", 0},
            {"ignore_eos", true},
            {"stream", stream}};
}

// A request that occupies a batch of size one until release, so that the next request waits.
class Blocker {
public:
    static Knobs knobs() {
        return {{KnobId::MaxBatch, 1},
                {KnobId::BatchTimeout, 0},
                {KnobId::LinkLimit, 1},
                {KnobId::ExpertCacheSize, 1}};
    }
    explicit Blocker(const Served& served)
        : m_served(served), m_pending(*served.engine, greedyRequest({1, 2, 3}, 1500)) {
        while (served.engine->batchStats().active == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    ~Blocker() { letGo(); }
    void letGo() {
        m_served.engine->applyKnob(KnobId::LinkLimit, 0);  // waiting requests finish quickly
        m_served.engine->cancel(m_pending.id());
        m_pending.wait();
    }

private:
    const Served& m_served;
    Pending m_pending;
};

// The payloads of "data: ..." lines.
inline std::vector<std::string> eventsOf(const std::string& body) {
    std::vector<std::string> events;
    for (size_t at = 0; (at = body.find("data: ", at)) != body.npos;) {
        const size_t end = body.find("\n\n", at);
        events.push_back(body.substr(at + 6, end - at - 6));
        at = end;
    }
    return events;
}

// A client for requests that HTTP libraries cannot send.
class RawClient {
public:
    explicit RawClient(int port) : m_socket(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(uint16_t(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(m_socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
            throw std::runtime_error("cannot connect");
        }
    }
    ~RawClient() { hangUp(); }
    void hangUp() {
        if (m_socket >= 0) close(m_socket);
        m_socket = -1;
    }
    bool send(const std::string& bytes) {
        return ::send(m_socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
    }
    void endSending() { shutdown(m_socket, SHUT_WR); }
    void post(const std::string& path, const std::string& body,
              const std::string& version = "HTTP/1.1\r\nHost: localhost") {
        send("POST " + path + " " + version + "\r\nContent-Type: application/json\r\n" +
             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    // Reads until `end` is received, or everything until the server closes the connection.
    std::string readUntil(const std::string& end) {
        std::string text;
        char buffer[4096];
        while (end.empty() || text.find(end) == text.npos) {
            const ssize_t n = recv(m_socket, buffer, sizeof(buffer), 0);
            if (n <= 0) break;
            text.append(buffer, size_t(n));
        }
        return text;
    }
    std::string readAll() { return readUntil({}); }

private:
    int m_socket;
};

}  // namespace colibri::test
