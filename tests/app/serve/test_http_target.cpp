// SPDX-License-Identifier: GPL-3.0-or-later
// The load generator's two targets: a server, and an engine in this process.
#include <QtTest>

#include "app/serve/http_target.h"
#include "profiler/load/engine_target.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestHttpTarget : public QObject {
    Q_OBJECT

    const CancelFlag m_run{false};

private slots:
    void bothTargetsCountTheSame() {
        const Served served;
        auto http = serve::HttpTarget::connect(served.server->url() + "/v1/",
                                               {.maxTokens = 9, .ignoreEos = true});
        QVERIFY2(http.ok(), http.status().text().c_str());
        Request model;
        model.maxTokens = 9;
        model.ignoreEos = true;
        EngineTarget engine(*served.engine, model);
        for (LoadTarget* target :
             {static_cast<LoadTarget*>(http->get()), static_cast<LoadTarget*>(&engine)}) {
            const auto report =
                runLoad(*target, shippedLoadPrompts(), {.users = 5, .requests = 20}, {}, m_run);
            QVERIFY(report.ok());
            QVERIFY2(report->errors.empty(), loadJson(*report).dump().c_str());
            QCOMPARE(report->completed, int64_t(20));
            QCOMPARE(report->tokens, uint64_t(20 * 9));
            QCOMPARE(report->ttft.count(), uint64_t(20));
            QVERIFY(report->promptTokens > 20);
        }
    }

    void wrongAddresses() {
        const auto code = [](const char* url) {
            return serve::HttpTarget::connect(url, {}).status().code();
        };
        QCOMPARE(code("ftp://x"), Code::InvalidArgument);
        QCOMPARE(code("http://"), Code::InvalidArgument);
        QCOMPARE(code("http://127.0.0.1/other"), Code::InvalidArgument);
        QCOMPARE(code("http://127.0.0.1:1"), Code::IoError);
    }

    // Of a server that is not ours.
    void figuresOfAWrongTypeAreLeftOut() {
        httplib::Server server;
        server.Get("/v1/models", [](const httplib::Request&, httplib::Response& res) {
            res.set_content(R"({"data": [{"id": "m"}]})", "application/json");
        });
        server.Post("/v1/chat/completions", [](const httplib::Request&, httplib::Response& res) {
            std::string events;
            for (const char* event :
                 {R"({"usage": {"prompt_tokens": null, "completion_tokens": "many"}})",
                  R"({"usage": {"prompt_tokens": -3}})", R"({"usage": [1]})", R"({"choices": [4]})",
                  R"({"choices": [{"delta": {"content": 3}}]})", R"({"choices": {"delta": 1}})",
                  R"([])", R"({"choices": [)", R"({"choices": [{"delta": {"content": "a"}}]})",
                  "[DONE]"}) {
                events += std::string("data: ") + event + "\n\n";
            }
            res.set_content(events, "text/event-stream");
        });
        const int port = server.bind_to_any_port("127.0.0.1");
        std::thread listener([&] { server.listen_after_bind(); });
        while (!server.is_running()) QThread::msleep(1);
        auto target = serve::HttpTarget::connect("http://127.0.0.1:" + std::to_string(port), {});
        LoadReply reply;
        if (target.ok()) reply = (*target)->ask(shippedLoadPrompts()[0], m_run);
        server.stop();
        listener.join();
        QVERIFY2(target.ok(), target.status().text().c_str());
        QCOMPARE(reply.error, std::string());
        QCOMPARE(reply.promptTokens, 0u);
        QCOMPARE(reply.tokens, 0u);
        QCOMPARE(reply.timesNs.size(), size_t(1));
    }

    void keysAndLostServersAreTold() {
        serve::ApiOptions options;
        options.apiKey = "k";
        Served served({}, options);
        const Status refused = serve::HttpTarget::connect(served.server->url(), {}).status();
        QVERIFY(refused.message().find("401") != std::string::npos);
        auto target = serve::HttpTarget::connect(served.server->url(), {.apiKey = "k"});
        QVERIFY(target.ok());
        QCOMPARE((*target)->ask(shippedLoadPrompts()[0], m_run).error, std::string());
        served.server->stop();
        QCOMPARE((*target)->ask(shippedLoadPrompts()[0], m_run).error,
                 std::string("no connection"));
    }
};

QTEST_GUILESS_MAIN(TestHttpTarget)
#include "test_http_target.moc"
