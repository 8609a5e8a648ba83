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
