// SPDX-License-Identifier: GPL-3.0-or-later
// Replies through real networks: proxies that time out on silence or buffer, HTTP/1.0 clients,
// clients that shut down their sending side or disconnect.
#include <QtTest>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;
using namespace std::chrono_literals;

class TestApiStreams : public QObject {
    Q_OBJECT

    static serve::ApiOptions often() {
        serve::ApiOptions options;
        options.keepAlive = 5ms;
        return options;
    }
    static void bothWays() {
        QTest::addColumn<bool>("stream");
        QTest::newRow("streamed") << true;
        QTest::newRow("whole") << false;
    }
    static Json bodyOf(const std::string& response) {
        return Json::parse(response.substr(response.find("\r\n\r\n") + 4), nullptr, false);
    }

private slots:
    void aStreamIsNotSilentWhileItsRequestWaits() {
        const Served served(Blocker::knobs(), often());
        Blocker blocker(served);
        for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
            RawClient client(served.server->port());
            Json body = chatBody("hello", 3, true);
            if (path == std::string("/v1/completions")) {
                body.erase("messages");
                body["prompt"] = "hello";
            }
            client.post(path, body.dump());
            std::string got = client.readUntil("\n: ");
            QVERIFY2(got.find("200 OK") != got.npos, got.c_str());
            QVERIFY(got.find("finish_reason\":\"") == got.npos);
        }
    }

    // Clients and proxies usually wait for at least 10 s.
    void silenceIsShorterThanProxiesWait() { QVERIFY(serve::ApiOptions().keepAlive <= 10s); }

    void commentsAreNoEvents() {
        const Served served(Blocker::knobs(), often());
        auto blocker = std::make_unique<Blocker>(served);
        RawClient client(served.server->port());
        client.post("/v1/chat/completions", chatBody("hello", 3, true).dump(),
                    "HTTP/1.0\r\nHost: localhost");
        std::string got = client.readUntil("\n: ");
        blocker.reset();
        got += client.readAll();
        const std::vector<std::string> events = eventsOf(got);
        QVERIFY(events.size() >= 3);
        QCOMPARE(events.back(), std::string("[DONE]"));
        // All lines belong to the stream, and each event ends with an empty line.
        std::istringstream lines(got.substr(got.find("\r\n\r\n") + 4));
        for (std::string line; std::getline(lines, line);) {
            QVERIFY2(line.empty() || line.starts_with("data: {") || line.starts_with(": ") ||
                         line == "data: [DONE]",
                     line.c_str());
        }
    }

    void progressOfThePromptIsTold_data() {
        QTest::addColumn<QByteArray>("path");
        QTest::newRow("chat") << QByteArray("/v1/chat/completions");
        QTest::newRow("completion") << QByteArray("/v1/completions");
    }
    void progressOfThePromptIsTold() {
        QFETCH(QByteArray, path);
        const Served served({{KnobId::PrefillChunk, 16}});
        httplib::Client client = served.client();
        Json body = chatBody(std::string(100, 'x'), 2, true);
        if (path == "/v1/completions") {
            body.erase("messages");
            body["prompt"] = std::string(100, 'x');
        }
        body["stream_options"] = {{"include_usage", true}};
        const auto ask = [&] {
            std::vector<Json> chunks;
            for (const std::string& e :
                 eventsOf(client.Post(path.toStdString(), body.dump(), "application/json")->body)) {
                if (e != "[DONE]") chunks.push_back(Json::parse(e));
            }
            return chunks;
        };
        for (const Json& chunk : ask()) QVERIFY(!chunk.contains("prompt_progress"));
        body["return_progress"] = true;
        const int fresh = body.contains("prompt") ? 0 : 1;
        if (fresh)
            body["messages"][0]["content"] = std::string(90, 'y');
        else
            body["prompt"] = std::string(90, 'y');
        const std::vector<Json> chunks = ask();
        const int64_t total = chunks.back()["usage"]["prompt_tokens"];
        const int64_t cached = chunks.back()["usage"]["prompt_tokens_details"]["cached_tokens"];
        int64_t last = -1, told = 0;
        for (const Json& chunk : chunks) {
            if (!chunk.contains("prompt_progress")) continue;
            const Json& p = chunk["prompt_progress"];
            ++told;
            QCOMPARE(p["total"], total);
            QCOMPARE(p["cache"], cached);
            QVERIFY(p["processed"].get<int64_t>() > last && p["processed"] <= total);
            QVERIFY(p["time_ms"].get<int64_t>() >= 0);
            last = p["processed"];
            QCOMPARE(chunk["choices"].size(), size_t(1));
            QVERIFY(chunk["choices"][0]["finish_reason"].is_null());
        }
        QVERIFY(told >= 1);
        QCOMPARE(last, total);
    }

    void proxiesAreToldNotToHoldPiecesBack() {
        const Served served;
        const auto reply = served.client().Post("/v1/chat/completions",
                                                chatBody("x", 2, true).dump(), "application/json");
        QCOMPARE(reply->get_header_value("X-Accel-Buffering"), std::string("no"));
        QCOMPARE(reply->get_header_value("Cache-Control"), std::string("no-cache"));
    }

    // nginx sends such requests by default.
    void olderClientsGetTheStreamWithoutChunks_data() {
        QTest::addColumn<QByteArray>("version");
        QTest::newRow("no Host") << QByteArray("HTTP/1.0");
        QTest::newRow("Host") << QByteArray("HTTP/1.0\r\nHost: 127.0.0.1");
        QTest::newRow("kept alive")
            << QByteArray("HTTP/1.0\r\nHost: localhost\r\nConnection: Keep-Alive");
    }
    void olderClientsGetTheStreamWithoutChunks() {
        QFETCH(QByteArray, version);
        const Served served;
        RawClient client(served.server->port());
        client.post("/v1/chat/completions", chatBody("x", 3, true).dump(), version.toStdString());
        const std::string got = client.readAll();
        const std::string head = got.substr(0, got.find("\r\n\r\n") + 2);
        QVERIFY2(head.find(" 200 ") != head.npos, head.c_str());
        QVERIFY2(head.find("Transfer-Encoding") == head.npos, head.c_str());
        QVERIFY2(head.find("Content-Length") == head.npos, head.c_str());
        QVERIFY2(head.find("Connection: close\r\n") != head.npos, head.c_str());
        QVERIFY2(head.find("Keep-Alive") == head.npos, head.c_str());
        QVERIFY(got.substr(head.size() + 2).starts_with("data: {"));
        QVERIFY(got.ends_with("data: [DONE]\n\n"));
        for (const std::string& e : eventsOf(got)) QVERIFY(e == "[DONE]" || Json::accept(e));
    }

    void aClientThatEndsItsSendingSideGetsItsReply_data() { bothWays(); }
    void aClientThatEndsItsSendingSideGetsItsReply() {
        QFETCH(bool, stream);
        const Served served;
        const std::string body = chatBody("hello", 30, stream).dump();
        for (const char* version : {"HTTP/1.1\r\nHost: localhost", "HTTP/1.0"}) {
            RawClient client(served.server->port());
            client.post("/v1/chat/completions", body, version);
            client.endSending();
            const std::string got = client.readAll();
            QVERIFY2(got.starts_with("HTTP/1.1 200 OK\r\n"), got.c_str());
            if (stream) {
                QVERIFY(got.find("data: [DONE]\n\n") != got.npos);
            } else {
                QCOMPARE(bodyOf(got)["usage"]["completion_tokens"], 30);
            }
        }
        QCOMPARE(served.server->stats().cancelled, uint64_t(0));
        QCOMPARE(served.server->stats().completions, uint64_t(2));
    }

    // The bytes that probe whether the client is connected are the beginning of its reply.
    void aClientThatEndsItsSendingSideMayWaitLong_data() { bothWays(); }
    void aClientThatEndsItsSendingSideMayWaitLong() {
        QFETCH(bool, stream);
        const Served served(Blocker::knobs());
        Blocker blocker(served);
        RawClient client(served.server->port());
        client.post("/v1/chat/completions", chatBody("hello", 3, stream).dump());
        client.endSending();
        std::string got = client.readUntil(stream ? ": " : "HT");
        if (!stream) QCOMPARE(got, std::string("HT"));
        blocker.letGo();
        got += client.readAll();
        QVERIFY2(got.starts_with("HTTP/1.1 200 OK\r\n"), got.c_str());
        if (stream) {
            QVERIFY(got.find("data: [DONE]\n\n") != got.npos);
        } else {
            QCOMPARE(bodyOf(got)["usage"]["completion_tokens"], 3);
        }
    }

    void aClientThatEndsItsSendingSideAndVanishesIsCancelled_data() { bothWays(); }
    void aClientThatEndsItsSendingSideAndVanishesIsCancelled() {
        QFETCH(bool, stream);
        const Served served(Blocker::knobs());
        Blocker blocker(served);
        {
            RawClient client(served.server->port());
            client.post("/v1/chat/completions", chatBody("hello", 1500, stream).dump());
            client.endSending();
            client.readUntil(stream ? ": " : "H");
            QCOMPARE(served.engine->activeRequests(), 2);
        }
        QTRY_COMPARE(served.engine->activeRequests(), 1);
        QTRY_COMPARE(served.server->stats().cancelled, uint64_t(1));
    }

    void otherRequestsOfAClientThatEndsItsSendingSide() {
        const Served served;
        RawClient client(served.server->port());
        client.send(
            "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.endSending();
        const std::string got = client.readAll();
        QVERIFY(got.find("\"ok\"") != got.npos && got.find("\"list\"") != got.npos);
    }

    // The client gets the actual reason for the end of its request.
    void whatEndsARequestIsTold_data() { bothWays(); }
    void whatEndsARequestIsTold() {
        QFETCH(bool, stream);
        Served served(Blocker::knobs());
        Blocker blocker(served);
        RawClient client(served.server->port());
        client.post("/v1/chat/completions", chatBody("hello", 100, stream).dump());
        QTRY_COMPARE(served.engine->activeRequests(), 2);
        // Another owner of the engine cancels it; ids are assigned in order.
        served.engine->cancel(2);
        const std::string got = client.readUntil("}}");
        QVERIFY2(got.find("the request was cancelled") != got.npos, got.c_str());
        QVERIFY2(got.find("server_error") != got.npos, got.c_str());
        QVERIFY2(got.find("ending") == got.npos, got.c_str());
        if (!stream) QVERIFY(got.starts_with("HTTP/1.1 503"));
    }
};

QTEST_GUILESS_MAIN(TestApiStreams)
#include "test_api_streams.moc"
