// SPDX-License-Identifier: GPL-3.0-or-later
// Clients that disconnect, stall, flood or send garbage, and a server that shuts down meanwhile.
#include <QtTest>
#include <random>
#include <thread>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;
using namespace std::chrono_literals;

class TestApiAbuse : public QObject {
    Q_OBJECT

    // Too long to be waited for.
    static std::string longChat(bool stream) { return chatBody("hello", 1500, stream).dump(); }

    static Knobs slow() { return {{KnobId::LinkLimit, 1}, {KnobId::ExpertCacheSize, 1}}; }

private slots:
    void hangingUpCancels_data() {
        QTest::addColumn<bool>("stream");
        QTest::newRow("streamed") << true;
        QTest::newRow("whole") << false;
    }
    void hangingUpCancels() {
        QFETCH(bool, stream);
        const Served served(slow());
        RawClient client(served.server->port());
        client.post("/v1/chat/completions", longChat(stream));
        if (stream) {
            QVERIFY(client.readUntil("\"content\":\"").find("200 OK") != std::string::npos);
        } else {
            QTRY_VERIFY(served.engine->batchStats().active == 1);
        }
        client.hangUp();
        QTRY_COMPARE(served.engine->activeRequests(), 0);
        QTRY_COMPARE(served.server->stats().cancelled, uint64_t(1));
        QVERIFY(served.server->stats().generatedTokens < 1500);
    }

    void aFullQueueIsTold() {
        const Served served({{KnobId::MaxBatch, 1},
                             {KnobId::BatchTimeout, 0},
                             {KnobId::LinkLimit, 1},
                             {KnobId::ExpertCacheSize, 1}});
        std::vector<std::unique_ptr<Pending>> pending;
        const auto submit = [&] {
            pending.push_back(
                std::make_unique<Pending>(*served.engine, greedyRequest({1, 2, 3}, 1500)));
            return pending.back()->submitted().ok();
        };
        QVERIFY(submit());
        QTRY_COMPARE(served.engine->batchStats().active, 1);
        while (submit()) {
        }
        httplib::Client client = served.client();
        const auto reply =
            client.Post("/v1/chat/completions", chatBody("x", 4).dump(), "application/json");
        QCOMPARE(reply->status, 429);
        QCOMPARE(reply->get_header_value("Retry-After"), std::string("1"));
        QCOMPARE(Json::parse(reply->body)["error"]["code"], "rate_limit_exceeded");
        for (const auto& p : pending) {
            if (p->submitted().ok()) served.engine->cancel(p->id());
        }
        for (const auto& p : pending) {
            if (p->submitted().ok()) p->wait();
        }
    }

    void dawdlersAreCutOff() {
        serve::ApiOptions options;
        options.limits.request = 150ms;
        options.limits.idle = 150ms;
        const Served served({}, options);
        RawClient silent(served.server->port());
        RawClient header(served.server->port());
        header.send("GET /health HTTP/1.1\r\nHost: loc");
        RawClient body(served.server->port());
        body.send(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{");
        std::atomic<bool> end{false};
        std::thread trickle([&] {
            while (!end && header.send("a") && body.send(" ")) std::this_thread::sleep_for(20ms);
        });
        QCOMPARE(silent.readAll(), std::string());
        QVERIFY(header.readAll().find("200 OK") == std::string::npos);
        QVERIFY(body.readAll().find("200 OK") == std::string::npos);
        end = true;
        trickle.join();
        QCOMPARE(served.client().Get("/health")->status, 200);
        QTRY_COMPARE(served.server->connections(), 0);
    }

    void tooManyConnectionsAreTold() {
        serve::ApiOptions options;
        options.limits.connections = 2;
        const Served served({}, options);
        RawClient a(served.server->port()), b(served.server->port());
        QTRY_COMPARE(served.server->connections(), 2);
        RawClient c(served.server->port());
        const std::string answer = c.readAll();
        QVERIFY(answer.starts_with("HTTP/1.1 503"));
        QVERIFY(Json::accept(answer.substr(answer.find("\r\n\r\n"))));
        a.hangUp();
        QTRY_COMPARE(served.server->connections(), 1);
        QCOMPARE(served.client().Get("/health")->status, 200);
    }

    void largeBodies() {
        serve::ApiOptions options;
        options.limits.bodyBytes = 10'000;
        const Served served({}, options);
        httplib::Client client = served.client();
        const auto reply =
            client.Post("/v1/completions", std::string(3'000'000, ' '), "application/json");
        QVERIFY(reply);
        QCOMPARE(reply->status, 413);
        QVERIFY(Json::parse(reply->body)["error"]["message"].is_string());
        // A small body that would be large when uncompressed.
        QCOMPARE(
            client.Post("/v1/completions", {{"Content-Encoding", "gzip"}}, "x", "application/json")
                ->status,
            415);
        // The same limit applies to a body in chunks, which has no length.
        RawClient raw(served.server->port());
        raw.send(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
        const std::string chunk = "1000\r\n" + std::string(0x1000, ' ') + "\r\n";
        for (int i = 0; i < 200 && raw.send(chunk); ++i) {
        }
        QVERIFY(raw.readAll().find("200 OK") == std::string::npos);
        QCOMPARE(served.client().Get("/health")->status, 200);
    }

    void rubbish() {
        const Served served;
        for (const char* text :
             {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "PING /health HTTP/1.1\r\n\r\n",
              "GET /health HTTP/1.1\r\nno colon\r\n\r\n",
              "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n"}) {
            RawClient client(served.server->port());
            client.send(text);
            client.endSending();
            client.readAll();
        }
        std::mt19937 random(1);
        const std::string good =
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n\r\n" +
            chatBody("x", 2).dump();
        for (int i = 0; i < 60; ++i) {
            std::string text = good;
            for (int k = 0; k < 3; ++k) text[random() % text.size()] = char(random());
            RawClient client(served.server->port());
            client.send(text);
            client.endSending();
            client.readAll();
        }
        QCOMPARE(served.client().Get("/health")->status, 200);
        QTRY_COMPARE(served.engine->activeRequests(), 0);
    }

    void brokenJson() {
        const Served served;
        httplib::Client client = served.client();
        const std::string good = chatBody("x", 2).dump();
        for (const std::string& body :
             {std::string(), std::string("{"), std::string("[]"), std::string("null"),
              std::string("{\"messages\":"), good.substr(0, good.size() - 1), good + "}",
              std::string(10'000, '['), std::string("\xff\xfe{}")}) {
            const auto reply = client.Post("/v1/chat/completions", body, "application/json");
            QCOMPARE(reply->status, 400);
            const std::string message = Json::parse(reply->body)["error"]["message"];
            QVERIFY2(message.starts_with("body"), message.c_str());
            QVERIFY2(message.find("file") == std::string::npos, message.c_str());
        }
    }

    // With time quadratic in the number of parts, these requests would take hours.
    void bodiesOfManySmallParts() {
        Served served;
        httplib::Client client = served.client();
        const auto list = [](const std::string& piece, size_t bytes) {
            std::string out;
            while (out.size() < bytes) out += (out.empty() ? "" : ",") + piece;
            return out;
        };
        const std::string objects = "{\"messages\":[" + list("{}", 3'900'000) + "]}";
        QCOMPARE(client.Post("/v1/chat/completions", objects, "application/json")->status, 400);
        std::string message = R"({"max_tokens":1,"messages":[{"role":"user","content":"x")";
        for (int i = 0; message.size() < 3'900'000; ++i)
            message += ",\"k" + std::to_string(i) + "\":0";
        QCOMPARE(client.Post("/v1/chat/completions", message + "}]}", "application/json")->status,
                 200);
        // The server shuts down while the bodies are read.
        std::vector<std::unique_ptr<RawClient>> clients;
        for (int i = 0; i < 4; ++i) {
            clients.push_back(std::make_unique<RawClient>(served.server->port()));
            clients.back()->post("/v1/chat/completions", i % 2 ? objects : message + "}]}");
        }
        served.server->stop();
        QCOMPARE(served.server->connections(), 0);
    }

    void lengthsThatAreNoNumber() {
        const Served served;
        for (const auto& [length, status] :
             {std::pair{"-5", "400"}, std::pair{"5x", "400"}, std::pair{"", "411"},
              std::pair{"2\r\nContent-Length: 3", "400"}, std::pair{"0x10", "400"},
              std::pair{"99999999999999999999999999", "413"},
              std::pair{"18446744073709551615", "413"}}) {
            RawClient client(served.server->port());
            client.send(
                std::string(
                    "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ") +
                length + "\r\n\r\n");
            // The client waits, so only a rejection ends this.
            const std::string answer = client.readUntil("}}");
            QVERIFY2(answer.starts_with(std::string("HTTP/1.1 ") + status), answer.c_str());
        }
        QCOMPARE(served.client().Get("/health")->status, 200);
    }

    // The client waits, and the limits are hours, so only an immediate response ends this.
    void bodiesWithoutALengthAreRefusedAtOnce() {
        serve::ApiOptions options;
        options.limits.request = 3600s;
        const Served served({}, options);
        for (const auto& [request, status] :
             {std::pair{"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", "411"},
              std::pair{"POST /v1/completions HTTP/1.0\r\n\r\n", "411"},
              std::pair{"PUT /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n{}", "411"},
              std::pair{"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                        "Transfer-Encoding: identity\r\n\r\n{}",
                        "501"},
              std::pair{"DELETE /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"}}) {
            RawClient client(served.server->port());
            client.send(request);
            const std::string answer = client.readUntil("}}");
            QVERIFY2(answer.substr(9, 3) == status, (request + answer).c_str());
        }
        // A body in chunks needs no length.
        const std::string body = R"({"prompt":[1,2],"max_tokens":1})";
        RawClient client(served.server->port());
        char size[20];
        std::snprintf(size, sizeof size, "%zx", body.size());
        client.send(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            "Transfer-Encoding: Chunked\r\n\r\n" +
            std::string(size) + "\r\n" + body + "\r\n0\r\n\r\n");
        const std::string answer = client.readUntil("}}");
        QVERIFY2(answer.starts_with("HTTP/1.1 200"), answer.c_str());
    }

    void endsWhileClientsWait() {
        Served served(slow());
        RawClient streaming(served.server->port()), whole(served.server->port());
        RawClient idle(served.server->port());
        streaming.post("/v1/chat/completions", longChat(true));
        whole.post("/v1/chat/completions", longChat(false));
        streaming.readUntil("assistant");
        QTRY_COMPARE(served.engine->activeRequests(), 2);
        served.server->stop();
        QCOMPARE(served.engine->activeRequests(), 0);
        QVERIFY(streaming.readAll().find("the server is shutting down") != std::string::npos);
        QVERIFY(whole.readAll().find("503") != std::string::npos);
        QCOMPARE(idle.readAll(), std::string());
    }

    void connectionsServeMoreThanOneRequest() {
        const Served served;
        RawClient client(served.server->port());
        for (int i = 0; i < 3; ++i) {
            client.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
            QVERIFY(client.readUntil("\"ok\"}").find("200 OK") != std::string::npos);
        }
        // Two requests in one packet.
        client.send(
            "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
        const std::string both = client.readUntil("there is no");
        QVERIFY(both.find("200 OK") < both.find("404"));
    }
};

QTEST_GUILESS_MAIN(TestApiAbuse)
#include "test_api_abuse.moc"
