// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI-compatible server, used through an HTTP client.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <QtTest>
#include <filesystem>
#include <fstream>
#include <thread>

#include "app/serve/openai.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestApiServer : public QObject {
    Q_OBJECT

    std::unique_ptr<Served> m_served;

    // Status and JSON of the reply.
    std::pair<int, Json> post(const std::string& path, const std::string& body) {
        httplib::Client client = m_served->client();
        const auto reply = client.Post(path, body, "application/json");
        if (!reply) return {0, {}};
        return {reply->status, Json::parse(reply->body, nullptr, false)};
    }

private slots:
    void initTestCase() { m_served = std::make_unique<Served>(); }

    void saysWhatItIs() {
        httplib::Client client = m_served->client();
        QCOMPARE(client.Get("/health")->status, 200);
        const Json models = Json::parse(client.Get("/v1/models")->body);
        QCOMPARE(models["object"], "list");
        const std::string id = models["data"][0]["id"];
        QVERIFY(!id.empty());
        QCOMPARE(Json::parse(client.Get("/v1/models/" + id)->body)["id"], id);
        QCOMPARE(client.Get("/v1/models/other")->status, 404);
    }

    void wholeChat() {
        const auto [status, reply] = post("/v1/chat/completions", chatBody("hello", 12).dump());
        QCOMPARE(status, 200);
        QCOMPARE(reply["object"], "chat.completion");
        const Json& choice = reply["choices"][0];
        QCOMPARE(choice["message"]["role"], "assistant");
        QCOMPARE(choice["finish_reason"], "length");
        QCOMPARE(reply["usage"]["completion_tokens"], 12);
        const auto prompt = m_served->engine->encodeChat(
            nlohmann::ordered_json::parse(R"([{"role":"user","content":"hello"}])"));
        QCOMPARE(reply["usage"]["prompt_tokens"], prompt->size());
        Request request = greedyRequest(*prompt, 12);
        request.specialText = true;  // this model's reasoning tags are special tokens
        Pending alone(*m_served->engine, std::move(request));
        QCOMPARE(choice["message"]["content"].get<std::string>(), alone.wait().text);
    }

    void streamedChat() {
        const Json whole = post("/v1/chat/completions", chatBody("hello", 12).dump()).second;
        Json body = chatBody("hello", 12, true);
        body["stream_options"] = {{"include_usage", true}};
        httplib::Client client = m_served->client();
        const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
        QCOMPARE(reply->status, 200);
        QVERIFY(reply->get_header_value("Content-Type").starts_with("text/event-stream"));
        std::vector<std::string> events = eventsOf(reply->body);
        QVERIFY(events.size() > 4);
        QCOMPARE(events.back(), std::string("[DONE]"));
        events.pop_back();
        const Json last = Json::parse(events.back());
        QVERIFY(last["choices"].empty());
        QCOMPARE(last["usage"]["completion_tokens"], 12);
        events.pop_back();
        QCOMPARE(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
        QCOMPARE(Json::parse(events.back())["choices"][0]["finish_reason"], "length");
        std::string text;
        for (const std::string& e : events) {
            const Json chunk = Json::parse(e);
            QCOMPARE(chunk["object"], "chat.completion.chunk");
            QCOMPARE(chunk["id"], last["id"]);
            QVERIFY(chunk["usage"].is_null());
            text += chunk["choices"][0]["delta"].value("content", "");
        }
        QCOMPARE(text, whole["choices"][0]["message"]["content"].get<std::string>());
    }

    // Some templates of reasoning models end within the reasoning.
    void reasoningIsBesideTheContent() {
        QTemporaryDir folder;
        const std::filesystem::path model = folder.filePath("model").toStdString();
        std::filesystem::copy(goldenModel("qwen3moe"), model,
                              std::filesystem::copy_options::recursive);
        std::ofstream(model / "chat_template.jinja") << "{{ messages[0].content }}<think>\n";
        const Served served({}, {}, model);
        httplib::Client client = served.client();
        const auto ask = [&](bool stream) {
            const std::string body = chatBody("hello", 12, stream).dump();
            return client.Post("/v1/chat/completions", body, "application/json")->body;
        };
        const Json message = Json::parse(ask(false))["choices"][0]["message"];
        QCOMPARE(message["content"], "");
        const std::string reasoning = message["reasoning_content"];
        QVERIFY(!reasoning.empty());
        std::string streamed;
        for (const std::string& e : eventsOf(ask(true))) {
            if (e == "[DONE]") break;
            const Json delta = Json::parse(e)["choices"][0]["delta"];
            QCOMPARE(delta.value("content", ""), "");
            streamed += delta.value("reasoning_content", "");
        }
        QCOMPARE(streamed, reasoning);
    }

    void repliesInPieces() {
        serve::ApiRequest request;
        request.chat = true;
        serve::ReplyWriter writer(request, "m", nullptr);
        const auto deltaOf = [](const std::string& events) {
            return Json::parse(eventsOf(events)[0])["choices"][0]["delta"];
        };
        QCOMPARE(writer.piece({"<thi", {}}), std::string());
        QCOMPARE(deltaOf(writer.piece({"nk>Hm", {}})), Json({{"reasoning_content", "Hm"}}));
        QCOMPARE(deltaOf(writer.piece({".</think>\n\nYes", {}})),
                 Json({{"reasoning_content", "."}, {"content", "Yes"}}));
        RequestResult result;
        result.text = "<think>Hm.</think>\n\nYes";
        const Json message = Json::parse(writer.whole(result))["choices"][0]["message"];
        QCOMPARE(message["content"], "Yes");
        QCOMPARE(message["reasoning_content"], "Hm.");
        // Nothing is lost if the reply ends within a tag.
        serve::ReplyWriter cut(request, "m", nullptr);
        QCOMPARE(cut.piece({"<th", {}}), std::string());
        QCOMPARE(deltaOf(cut.last(result)), Json({{"content", "<th"}}));
    }

    void partsAndRolesGiveTheSame() {
        Json parts = chatBody("", 8);
        parts["messages"] = Json::parse(R"([
            {"role":"developer","content":"Be short."},
            {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
            {"role":"assistant","content":null},
            {"role":"user","content":"three"}])");
        Json plain = parts;
        plain["messages"] = Json::parse(R"([
            {"role":"system","content":"Be short."}, {"role":"user","content":"one\ntwo"},
            {"role":"assistant","content":""}, {"role":"user","content":"three"}])");
        const auto [status, a] = post("/v1/chat/completions", parts.dump());
        QCOMPARE(status, 200);
        const Json b = post("/v1/chat/completions", plain.dump()).second;
        QCOMPARE(a["choices"], b["choices"]);
        QCOMPARE(a["usage"]["prompt_tokens"], b["usage"]["prompt_tokens"]);
    }

    void completions() {
        Json body = {{"prompt", "hello"}, {"max_tokens", 10}, {"temperature", 0}};
        const auto [status, text] = post("/v1/completions", body.dump());
        QCOMPARE(status, 200);
        QCOMPARE(text["object"], "text_completion");
        body["prompt"] = m_served->engine->tokenizer()->encode("hello", {.bos = true});
        QCOMPARE(post("/v1/completions", body.dump()).second["choices"], text["choices"]);
        body["stream"] = true;
        httplib::Client client = m_served->client();
        std::string joined;
        const auto reply = client.Post("/v1/completions", body.dump(), "application/json");
        for (const std::string& e : eventsOf(reply->body)) {
            if (e != "[DONE]") joined += Json::parse(e)["choices"][0]["text"].get<std::string>();
        }
        QCOMPARE(joined, text["choices"][0]["text"].get<std::string>());
    }

    void seedsAndStops() {
        Json body = chatBody("hello", 30);
        body["temperature"] = 1;
        body["seed"] = 7;
        const Json first = post("/v1/chat/completions", body.dump()).second["choices"];
        QCOMPARE(post("/v1/chat/completions", body.dump()).second["choices"], first);
        const std::string text = first[0]["message"]["content"];
        size_t at = text.size() / 2;
        while ((uint8_t(text[at]) & 0xc0) == 0x80) ++at;
        size_t end = at + 1;
        while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80) ++end;
        body["stop"] = text.substr(at, end - at);
        const Json cut = post("/v1/chat/completions", body.dump()).second["choices"][0];
        QCOMPARE(cut["finish_reason"], "stop");
        QCOMPARE(cut["message"]["content"].get<std::string>(),
                 text.substr(0, text.find(body["stop"].get<std::string>())));
    }

    void wrongRequestsAreExplained_data() {
        QTest::addColumn<QByteArray>("patch");
        QTest::addColumn<int>("status");
        QTest::addColumn<QByteArray>("named");
        const auto row = [](const char* patch, int status, const char* named) {
            QTest::newRow(patch) << QByteArray(patch) << status << QByteArray(named);
        };
        row(R"({"messages":null})", 400, "messages");
        row(R"({"messages":[]})", 400, "messages");
        row(R"({"messages":"hello"})", 400, "messages");
        row(R"({"messages":[7]})", 400, "messages[0]");
        row(R"({"messages":[{"role":"king","content":"x"}]})", 400, "role");
        row(R"({"messages":[{"role":"user"}]})", 400, "content");
        row(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400,
            "content[0]");
        row(R"({"model":"gpt-4"})", 404, "gpt-4");
        row(R"({"n":2})", 400, "n: 2");
        row(R"({"logprobs":3})", 400, "logprobs");
        row(R"({"top_logprobs":3})", 400, "\"logprobs\": true");
        row(R"({"logprobs":true,"top_logprobs":21})", 400, "top_logprobs");
        row(R"({"tools":[{}]})", 400, "tools");
        row(R"({"response_format":{"type":"json_object"}})", 400, "response_format");
        row(R"({"temperature":-1})", 400, "temperature");
        row(R"({"temperature":"hot"})", 400, "temperature");
        row(R"({"top_p":2})", 400, "top_p");
        row(R"({"top_p":0})", 400, "top-p");
        row(R"({"max_tokens":0})", 400, "max_tokens");
        row(R"({"max_tokens":1.5})", 400, "max_tokens");
        row(R"({"stop":[1]})", 400, "stop");
        row(R"({"stop":""})", 400, "stop");
        row(R"({"stream":"yes"})", 400, "stream");
        row(R"({"stream_options":5})", 400, "stream_options");
    }
    void wrongRequestsAreExplained() {
        QFETCH(QByteArray, patch);
        QFETCH(int, status);
        QFETCH(QByteArray, named);
        Json body = chatBody("hello", 4);
        body.merge_patch(Json::parse(patch.toStdString()));
        const auto [got, reply] = post("/v1/chat/completions", body.dump());
        QCOMPARE(got, status);
        const std::string message = reply["error"]["message"];
        QVERIFY2(message.find(named.toStdString()) != message.npos, message.c_str());
        QVERIFY(reply["error"].contains("type") && reply["error"].contains("code"));
    }

    void wrongPathsAndMethods() {
        httplib::Client client = m_served->client();
        QCOMPARE(client.Get("/v1/nothing")->status, 404);
        const auto reply = client.Get("/v1/chat/completions");
        QCOMPARE(reply->status, 405);
        QCOMPARE(reply->get_header_value("Allow"), std::string("POST"));
        QCOMPARE(client.Post("/v1/models", "{}", "application/json")->status, 405);
        QVERIFY(Json::parse(reply->body)["error"]["message"].is_string());
    }

    void aPromptThatDoesNotFit() {
        const Served small({{KnobId::ContextLength, 64}});
        httplib::Client client = small.client();
        const auto reply = client.Post(
            "/v1/chat/completions", chatBody(std::string(4000, 'x'), 4).dump(), "application/json");
        QCOMPARE(reply->status, 400);
        QVERIFY(reply->body.find("context") != std::string::npos);
    }

    void metricsCount() {
        const Served served;
        httplib::Client client = served.client();
        QCOMPARE(client.Post("/v1/chat/completions", chatBody("a", 5).dump(), "application/json")
                     ->status,
                 200);
        client.Get("/nothing");
        const auto page = client.Get("/metrics");
        QVERIFY(page->get_header_value("Content-Type").starts_with("text/plain"));
        for (const char* line :
             {"colibri_generated_tokens_total 5\n", "colibri_requests_total{end=\"completed\"} 1\n",
              "colibri_http_responses_total{code=\"404\"} 1\n", "colibri_ttft_seconds_count 1\n",
              "colibri_itl_seconds_count 4\n", "colibri_itl_seconds_bucket{le=\"+Inf\"} 4\n",
              "colibri_queue_depth 0\n", "# TYPE colibri_ttft_seconds histogram\n"}) {
            QVERIFY2(page->body.find(line) != std::string::npos, line);
        }
    }

    // Two alternating chats do not evict each other's cached tokens.
    void whatWasReusedIsTold() {
        const Served served;
        httplib::Client client = served.client();
        const auto ask = [&](const Json& messages) {
            Json body = chatBody("", 4);
            body["messages"] = messages;
            const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
            return Json::parse(reply->body);
        };
        const auto cached = [](const Json& reply) {
            return reply["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
        };
        Json a = Json::array({{{"role", "user"}, {"content", std::string(50, 'a')}}});
        const Json b = Json::array({{{"role", "user"}, {"content", std::string(50, 'b')}}});
        const Json first = ask(a);
        QVERIFY(cached(ask(b)) < 32);
        a.push_back(first["choices"][0]["message"]);
        a.push_back({{"role", "user"}, {"content", "go on"}});
        const int prompt = first["usage"]["prompt_tokens"];
        const int reused = cached(ask(a));
        QVERIFY2(reused >= prompt - 32, qPrintable(QString("%1 of %2").arg(reused).arg(prompt)));
        const std::string page = client.Get("/metrics")->body;
        for (const char* line :
             {"colibri_kv_blocks{state=\"held\"} 0\n", "colibri_kv_blocks{state=\"kept\"} ",
              "colibri_preemptions_total 0\n", "colibri_recomputed_tokens_total 0\n",
              "colibri_preempted_requests 0\n", "colibri_preempted_seconds_total 0\n"}) {
            QVERIFY2(page.find(line) != std::string::npos, line);
        }
    }

    void keys() {
        const auto engine = load(goldenModel("qwen3moe"));
        serve::ApiOptions options;
        options.host = "0.0.0.0";
        options.port = 0;
        QCOMPARE(serve::ApiServer(*engine, options).start().code(), Code::InvalidArgument);
        options.apiKey = "secret";
        serve::ApiServer server(*engine, options);
        QVERIFY(server.start().ok());
        httplib::Client client("127.0.0.1", server.port());
        QCOMPARE(client.Get("/health")->status, 200);
        QCOMPARE(client.Get("/v1/models")->status, 401);
        for (const char* key : {"", "secre", "secrets", "Secret", "s"}) {
            client.set_bearer_token_auth(key);
            QCOMPARE(client.Get("/v1/models")->status, 401);
        }
        client.set_bearer_token_auth("secret");
        QCOMPARE(client.Get("/v1/models")->status, 200);
        QCOMPARE(client.Get("/metrics")->status, 200);
    }

    // Pages of other sites get no access, even if their name resolves to this machine.
    void foreignPagesAreRefused() {
        httplib::Client client = m_served->client();
        QCOMPARE(client.Get("/v1/models", {{"Host", "evil.example:8080"}})->status, 403);
        QCOMPARE(client.Get("/v1/models", {{"Host", "localhost:8080"}})->status, 200);
        QCOMPARE(client.Get("/v1/models", {{"Host", "[::1]:8080"}})->status, 200);
        QCOMPARE(client.Get("/v1/models", {{"Origin", "http://evil.example"}})->status, 403);
        QCOMPARE(client.Get("/v1/models", {{"Origin", "null"}})->status, 403);
        QCOMPARE(client.Get("/v1/models", {{"Origin", "http://localhost:3000"}})->status, 200);
    }

    void namesThatBeginLikeThisMachineAreForeign() {
        httplib::Client client = m_served->client();
        for (const std::string host :
             {"127.0.0.1.evil.example", "127.evil.example", "127.", "127.0.0.1.", "127.0.0.256",
              "127.0.0.1:80.evil.example", "localhost.evil.example", "[::1].evil.example"}) {
            QVERIFY2(!serve::isLoopback(host), host.c_str());
            QCOMPARE(client.Get("/v1/models", {{"Host", host}})->status, 403);
            QCOMPARE(client.Get("/v1/models", {{"Origin", "http://" + host}})->status, 403);
            serve::ApiOptions options;
            options.host = host;  // therefore a key is needed
            QCOMPARE(serve::ApiServer(*m_served->engine, options).start().code(),
                     Code::InvalidArgument);
        }
        for (const std::string host : {"127.0.0.1", "127.8.9.255", "localhost", "::1", "[::1]"})
            QVERIFY2(serve::isLoopback(host), host.c_str());
        QCOMPARE(client.Get("/v1/models", {{"Host", "127.1.2.3:80"}})->status, 200);
    }

    void rangesAreNotServed() {
        httplib::Client client = m_served->client();
        const std::string whole = client.Get("/v1/models")->body;
        for (const char* range : {"bytes=0-1", "bytes=0-1,4-5"}) {
            const auto got = client.Get("/v1/models", {{"Range", range}});
            QCOMPARE(got->status, 200);
            QCOMPARE(got->body, whole);
            const auto posted = client.Post("/v1/chat/completions", {{"Range", range}},
                                            chatBody("x", 1).dump(), "application/json");
            QCOMPARE(posted->status, 200);
            QVERIFY(Json::accept(posted->body));
        }
    }

    void twoServersDoNotShareAPort() {
        serve::ApiOptions options;
        options.port = m_served->server->port();
        serve::ApiServer second(*m_served->engine, options);
        const Status status = second.start();
        QCOMPARE(status.code(), Code::IoError);
        QVERIFY(status.message().find(std::to_string(options.port)) != std::string::npos);
    }

    void stopsAndStartsAgain() {
        serve::ApiOptions options;
        options.port = 0;
        auto server = std::make_unique<serve::ApiServer>(*m_served->engine, options);
        QVERIFY(server->start().ok());
        options.port = server->port();
        QCOMPARE(httplib::Client("127.0.0.1", options.port).Get("/health")->status, 200);
        server->stop();
        QVERIFY(!server->running());
        QVERIFY(!httplib::Client("127.0.0.1", options.port).Get("/health"));
        server = std::make_unique<serve::ApiServer>(*m_served->engine, options);
        QVERIFY(server->start().ok());
        QCOMPARE(httplib::Client("127.0.0.1", options.port).Get("/health")->status, 200);
    }

    // If the queue of connections is full, Linux resets some of those that arrive at the same time.
    void asManyMayWaitAsMayConnect() {
        int backlog = -1;
        for (int fd = 0; fd < 1024; ++fd) {
            sockaddr_in address{};
            socklen_t length = sizeof(address);
            tcp_info info{};  // for a listening socket: the queue's length and its limit
            int listens = 0;
            socklen_t infoLength = sizeof(info), intLength = sizeof(listens);
            if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &intLength) || !listens ||
                getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) ||
                ntohs(address.sin_port) != m_served->server->port() ||
                getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &infoLength)) {
                continue;
            }
            backlog = int(info.tcpi_sacked);
        }
        QCOMPARE(backlog, serve::ConnectionLimits().connections);
    }

    void manyAtOnceGetTheirOwn() {
        std::vector<std::string> alone(20), together(20);
        const auto ask = [&](int i, bool stream) {
            httplib::Client client = m_served->client();
            const Json body = chatBody("question " + std::to_string(i), 16, stream);
            const auto reply = client.Post("/v1/chat/completions", body.dump(), "application/json");
            if (!reply || reply->status != 200) return std::string("failed");
            if (!stream) {
                return Json::parse(reply->body)["choices"][0]["message"]["content"]
                    .get<std::string>();
            }
            std::string text;
            for (const std::string& e : eventsOf(reply->body)) {
                if (e == "[DONE]") continue;
                text += Json::parse(e)["choices"][0]["delta"].value("content", "");
            }
            return text;
        };
        for (int i = 0; i < 20; ++i) alone[size_t(i)] = ask(i, false);
        std::vector<std::thread> threads;
        for (int i = 0; i < 20; ++i) {
            threads.emplace_back([&, i] { together[size_t(i)] = ask(i, i % 2 == 0); });
        }
        for (std::thread& t : threads) t.join();
        QCOMPARE(together, alone);
        QVERIFY(alone[0] != "failed");
    }
};

QTEST_GUILESS_MAIN(TestApiServer)
#include "test_api_server.moc"
