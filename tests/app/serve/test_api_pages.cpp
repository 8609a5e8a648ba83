// SPDX-License-Identifier: GPL-3.0-or-later
// Web pages as clients: preflights, CORS headers, and the pages that each option admits.
#include <QtTest>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestApiPages : public QObject {
    Q_OBJECT

    static constexpr const char* kChat = "/v1/chat/completions";
    static constexpr const char* kAllow = "Access-Control-Allow-Origin";

    static httplib::Result preflight(httplib::Client& client, const std::string& origin,
                                     const std::string& path = kChat) {
        return client.Options(path, {{"Origin", origin},
                                     {"Access-Control-Request-Method", "POST"},
                                     {"Access-Control-Request-Headers",
                                      "authorization,content-type,x-stainless-os"}});
    }
    static std::string messageOf(const httplib::Result& reply) {
        return Json::parse(reply->body)["error"]["message"];
    }

private slots:
    void preflightsAreAnswered_data() {
        QTest::addColumn<QByteArray>("key");
        QTest::newRow("no key") << QByteArray();
        QTest::newRow("key") << QByteArray("secret");
    }
    void preflightsAreAnswered() {
        QFETCH(QByteArray, key);
        serve::ApiOptions options;
        options.apiKey = key.toStdString();
        const Served served({}, options);
        httplib::Client client = served.client();
        for (const char* path : {kChat, "/v1/completions", "/v1/models", "/health"}) {
            const auto reply = preflight(client, "http://localhost:3000", path);
            QCOMPARE(reply->status, 204);
            QCOMPARE(reply->body, std::string());
            QVERIFY(!reply->has_header("Content-Length"));
            QCOMPARE(reply->get_header_value(kAllow), std::string("http://localhost:3000"));
            QVERIFY(reply->get_header_value("Access-Control-Allow-Methods").find("POST") !=
                    std::string::npos);
            QCOMPARE(reply->get_header_value("Access-Control-Allow-Headers"),
                     std::string("authorization,content-type,x-stainless-os"));
            QVERIFY(std::stoi(reply->get_header_value("Access-Control-Max-Age")) > 0);
            QVERIFY(reply->get_header_value("Vary").find("Origin") != std::string::npos);
            QVERIFY(!reply->has_header("Access-Control-Allow-Private-Network"));
        }
        const auto inside =
            client.Options(kChat, {{"Origin", "http://127.0.0.1"},
                                   {"Access-Control-Request-Method", "POST"},
                                   {"Access-Control-Request-Private-Network", "true"}});
        QCOMPARE(inside->get_header_value("Access-Control-Allow-Private-Network"),
                 std::string("true"));
        // Pages of other origins get a message about the option, which their browser does not let
        // them read.
        const auto foreign = preflight(client, "https://evil.example");
        QCOMPARE(foreign->status, 403);
        QVERIFY(!foreign->has_header(kAllow));
        QVERIFY2(messageOf(foreign).find("--cors-origin") != std::string::npos,
                 foreign->body.c_str());
        // An OPTIONS request that is not a preflight.
        QCOMPARE(client.Options(kChat, {{"Authorization", "Bearer secret"}})->status, 405);
    }

    void repliesMayBeReadByAdmittedPages() {
        const Served served;
        httplib::Client client = served.client();
        const std::string origin = "http://127.0.0.1:5173";
        for (const bool stream : {false, true}) {
            const auto reply = client.Post(kChat, {{"Origin", origin}},
                                           chatBody("x", 2, stream).dump(), "application/json");
            QCOMPARE(reply->status, 200);
            QCOMPARE(reply->get_header_value(kAllow), origin);
            QCOMPARE(reply->get_header_value_count(kAllow), size_t(1));
            QCOMPARE(reply->get_header_value("Vary"), std::string("Origin"));
        }
        // Errors need the headers too; otherwise the page sees a network error instead of the
        // reason.
        for (const auto& [body, status] : {std::pair{"{", 400}, {R"({"messages":[]})", 400}}) {
            const auto reply = client.Post(kChat, {{"Origin", origin}}, body, "application/json");
            QCOMPARE(reply->status, status);
            QCOMPARE(reply->get_header_value(kAllow), origin);
        }
        const auto missing = client.Get("/nothing", {{"Origin", origin}});
        QCOMPARE(missing->status, 404);
        QCOMPARE(missing->get_header_value(kAllow), origin);
        QVERIFY(missing->get_header_value("Access-Control-Expose-Headers").find("Retry-After") !=
                std::string::npos);
        QVERIFY(!client.Get("/health")->has_header(kAllow));  // not requested by a page
    }

    void aWrongKeyIsToldToAdmittedPages() {
        serve::ApiOptions options;
        options.apiKey = "secret";
        const Served served({}, options);
        httplib::Client client = served.client();
        const auto reply = client.Get("/v1/models", {{"Origin", "http://localhost"}});
        QCOMPARE(reply->status, 401);
        QCOMPARE(reply->get_header_value(kAllow), std::string("http://localhost"));
        // The key decides about access. A page that is not admitted cannot read the reply.
        const auto other = client.Get("/v1/models", {{"Origin", "https://other.example"},
                                                     {"Authorization", "Bearer secret"}});
        QCOMPARE(other->status, 200);
        QVERIFY(!other->has_header(kAllow));
    }

    void moreOriginsAreAdmittedByAnOption() {
        serve::ApiOptions options;
        options.corsOrigins = {"https://Chat.example.org:443/", "chrome-extension://abc"};
        const Served served({}, options);
        httplib::Client client = served.client();
        for (const char* origin : {"https://chat.example.org", "chrome-extension://abc"}) {
            QCOMPARE(preflight(client, origin)->status, 204);
            const auto reply = client.Get("/v1/models", {{"Origin", origin}});
            QCOMPARE(reply->status, 200);
            QCOMPARE(reply->get_header_value(kAllow), std::string(origin));
        }
        for (const char* origin :
             {"http://chat.example.org", "https://chat.example.org.evil.example",
              "https://chat.example.org:8443", "null", "*", "https://evil.example"}) {
            QCOMPARE(preflight(client, origin)->status, 403);
            const auto reply = client.Get("/v1/models", {{"Origin", origin}});
            QCOMPARE(reply->status, 403);
            QVERIFY(!reply->has_header(kAllow));
            QVERIFY(messageOf(reply).find("--cors-origin") != std::string::npos);
            QVERIFY(messageOf(reply).find(origin) != std::string::npos);
        }
    }

    void everyPageIsAdmittedWithAKeyOnly() {
        const auto engine = load(goldenModel("qwen3moe"));
        for (const char* origin : {"*", "null"}) {
            serve::ApiOptions options;
            options.port = 0;
            options.corsOrigins = {origin};
            const Status refused = serve::ApiServer(*engine, options).start();
            QCOMPARE(refused.code(), Code::InvalidArgument);
            QVERIFY(refused.text().find("API key") != std::string::npos);
            options.apiKey = "k";
            serve::ApiServer server(*engine, options);
            QVERIFY(server.start().ok());
            httplib::Client client("127.0.0.1", server.port());
            QCOMPARE(preflight(client, "null")->status, 204);
            QCOMPARE(preflight(client, "https://any.example")->status, *origin == '*' ? 204 : 403);
        }
    }

    void whatIsNoOriginOrNameIsRefused() {
        const auto engine = load(goldenModel("qwen3moe"));
        const auto code = [&](std::vector<std::string> origins, std::vector<std::string> hosts) {
            serve::ApiOptions options;
            options.port = 0;
            options.corsOrigins = std::move(origins);
            options.allowedHosts = std::move(hosts);
            return serve::ApiServer(*engine, options).start().code();
        };
        for (const char* origin :
             {"", "chat.example.org", "https://", "https://a/b", "http://a b", "http://user@host",
              "https://a,https://b", "htp://pc.lan", "http://pc.lan:0", "http://pc.lan:65536",
              "http://pc.lan:x", "http://pc.lan:", "http://pc.lan:80:80", "http://*.pc.lan",
              "file:///index.html", "http://pc.lan/?a", "http://[pc]"}) {
            QCOMPARE(code({origin}, {}), Code::InvalidArgument);
        }
        for (const char* host : {"", "http://pc.lan", "pc.lan:8080", "pc lan", "a/b", "*",
                                 "*.pc.lan", "pc..lan", "[pc.lan]"}) {
            QCOMPARE(code({}, {host}), Code::InvalidArgument);
        }
        QCOMPARE(code({"http://pc.lan:3000"}, {"pc.lan", "[fe80::1]", "192.168.1.5"}), Code::Ok);
        QCOMPARE(
            code({"HTTPS://Pc.Lan/", "http://[::1]:3000", "chrome-extension://abcdef"}, {"PC"}),
            Code::Ok);
        serve::ApiOptions options;
        options.allowedHosts = {"*"};
        const Status every = serve::ApiServer(*engine, options).start();
        QVERIFY2(every.text().find("API key") != std::string::npos, every.text().c_str());
        options.allowedHosts.clear();
        options.corsOrigins = {"http://pc.lan:99999"};
        const Status port = serve::ApiServer(*engine, options).start();
        QVERIFY2(port.text().find("port \"99999\"") != std::string::npos, port.text().c_str());
    }

    // The error is about the host name, not about the port.
    void aHostThatNobodyKnowsIsSaidToBeUnknown() {
        serve::ApiOptions options;
        options.apiKey = "k";
        options.port = 0;
        options.host = "no-such-host.invalid";
        const Status unknown = serve::ApiServer(options).start();
        QCOMPARE(unknown.code(), Code::InvalidArgument);
        QVERIFY2(unknown.text().find("unknown host name") != std::string::npos,
                 unknown.text().c_str());
        QVERIFY2(unknown.text().find("port") == std::string::npos, unknown.text().c_str());
        options.host = "192.0.2.1";  // reserved for documentation; no machine has it
        const Status foreign = serve::ApiServer(options).start();
        QCOMPARE(foreign.code(), Code::InvalidArgument);
        QVERIFY2(foreign.text().find("does not have the address") != std::string::npos,
                 foreign.text().c_str());
    }

    void refusedNamesAreToldTheOption() {
        serve::ApiOptions options;
        options.allowedHosts = {"PC.lan"};
        const Served served({}, options);
        httplib::Client client = served.client();
        const auto reply = client.Get("/v1/models", {{"Host", "ai.example:8080"}});
        QCOMPARE(reply->status, 403);
        QVERIFY2(messageOf(reply).find("\"ai.example\"") != std::string::npos, reply->body.c_str());
        QVERIFY2(messageOf(reply).find("--allowed-host") != std::string::npos, reply->body.c_str());
        QCOMPARE(client.Get("/v1/models", {{"Host", "pc.lan:8080"}})->status, 200);
        QCOMPARE(client.Get("/v1/models", {{"Host", "pc.lan.evil.example"}})->status, 403);
        QCOMPARE(client.Get("/v1/models", {{"Host", "pc.lan"}, {"Origin", "http://pc.lan:3000"}})
                     ->get_header_value(kAllow),
                 std::string("http://pc.lan:3000"));
        // DNS rebinding: a foreign name that resolves to this machine.
        QCOMPARE(client
                     .Options(kChat, {{"Host", "evil.example"},
                                      {"Origin", "http://localhost"},
                                      {"Access-Control-Request-Method", "POST"}})
                     ->status,
                 403);
        RawClient noHost(served.server->port());
        noHost.send("GET /v1/models HTTP/1.1\r\n\r\n");
        QVERIFY(noHost.readUntil("}}").starts_with("HTTP/1.1 403"));
        // Arbitrary bytes in a name do not make the message unreadable.
        RawClient rubbish(served.server->port());
        rubbish.send("GET /health HTTP/1.1\r\nHost: \xff" + std::string(5000, 'h') + "\r\n\r\n");
        const std::string got = rubbish.readUntil("}}");
        QVERIFY2(got.size() < 1000 && Json::accept(got.substr(got.find("\r\n\r\n"))), got.c_str());
    }

    // The HTTP library decodes %00 in a header as a NUL byte, which must not end a name.
    void namesDoNotEndAtANul() {
        const Served served;
        for (const char* header : {"Host: 127.0.0.1%00.evil.example",
                                   "Host: localhost\r\nOrigin: http://127.0.0.1%00.evil.example"}) {
            RawClient client(served.server->port());
            client.send("GET /v1/models HTTP/1.1\r\n" + std::string(header) + "\r\n\r\n");
            QVERIFY2(client.readUntil("}}").starts_with("HTTP/1.1 403"), header);
        }
    }

    // Ambiguous requests allow request smuggling.
    void requestsThatCanBeReadInTwoWaysAreRefused() {
        const Served served;
        for (const char* headers :
             {"Host: localhost\r\nHost: evil.example",
              "Host: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked"}) {
            RawClient client(served.server->port());
            client.send("POST /v1/chat/completions HTTP/1.1\r\n" + std::string(headers) +
                        "\r\n\r\n0\r\n\r\n");
            QVERIFY2(client.readUntil("}}").starts_with("HTTP/1.1 400"), headers);
        }
    }

    void theSchemeOfAKeyHasNoCase() {
        serve::ApiOptions options;
        options.apiKey = "secret";
        const Served served({}, options);
        httplib::Client client = served.client();
        for (const char* scheme : {"Bearer", "bearer", "BEARER"}) {
            const std::string value = scheme + std::string(" secret");
            QCOMPARE(client.Get("/v1/models", {{"Authorization", value}})->status, 200);
        }
        QCOMPARE(client.Get("/v1/models", {{"Authorization", "Basic secret"}})->status, 401);
    }

    // curl -d sends the content type of a form, and the HTTP library reads only small forms.
    void aLongBodyIsReadWhateverItsTypeIsSaidToBe() {
        const Served served;
        httplib::Client client = served.client();
        const std::string body = chatBody("hello", 3).dump() + std::string(20'000, ' ');
        for (const char* type :
             {"application/x-www-form-urlencoded", "text/plain", "application/json"}) {
            const auto reply = client.Post(kChat, body, type);
            QVERIFY(reply);
            QVERIFY2(reply->status == 200, reply->body.c_str());
        }
    }

    void manyTemplateArgumentsAreRefused() {
        const Served served;
        httplib::Client client = served.client();
        Json body = chatBody("hello", 3);
        for (int i = 0; i < 300; ++i) body["chat_template_kwargs"]["k" + std::to_string(i)] = i;
        const auto reply = client.Post(kChat, body.dump(), "application/json");
        QCOMPARE(reply->status, 400);
        QVERIFY(messageOf(reply).find("more than 256 names") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestApiPages)
#include "test_api_pages.moc"
