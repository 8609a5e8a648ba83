// SPDX-License-Identifier: GPL-3.0-or-later
// The two targets of load tests: a server, and an engine in this process.
#include <QtTest>

#include "app/serve/http_target.h"
#include "profiler/loadtest/engine_target.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

// A foreign server, which answers every chat with the same bytes, a few at a time.
class OtherServer {
public:
    explicit OtherServer(std::string stream, size_t pieceBytes = 1, int status = 200) {
        m_server.Get("/v1/models", [](const httplib::Request&, httplib::Response& res) {
            res.set_content(R"({"data": [{"id": "m"}]})", "application/json");
        });
        m_server.Post("/v1/chat/completions",
                      [=, this](const httplib::Request& req, httplib::Response& res) {
                          m_asked = Json::parse(req.body);
                          res.status = status;
                          res.set_chunked_content_provider(
                              "text/event-stream", [=](size_t offset, httplib::DataSink& sink) {
                                  if (offset < stream.size()) {
                                      const std::string piece = stream.substr(offset, pieceBytes);
                                      sink.write(piece.data(), piece.size());
                                  } else {
                                      sink.done();
                                  }
                                  return true;
                              });
                      });
        m_port = m_server.bind_to_any_port("127.0.0.1");
        m_listener = std::thread([this] { m_server.listen_after_bind(); });
        while (!m_server.is_running()) QThread::msleep(1);
    }
    ~OtherServer() {
        m_server.stop();
        m_listener.join();
    }

    std::unique_ptr<serve::HttpTarget> target(serve::HttpTargetOptions options = {}) const {
        auto target =
            serve::HttpTarget::connect("http://127.0.0.1:" + std::to_string(m_port), options);
        if (!target.ok()) throw std::runtime_error(target.status().text());
        return std::move(*target);
    }
    LoadReply send(serve::HttpTargetOptions options = {}) const {
        return target(options)->send(shippedLoadPrompts()[0], CancelFlag(false));
    }
    LoadReport load() const {
        const CancelFlag run(false);
        return *runLoad(*target(), shippedLoadPrompts(), {.users = 1, .requests = 2}, {}, run);
    }
    const Json& asked() const { return m_asked; }

private:
    httplib::Server m_server;
    std::thread m_listener;
    int m_port = 0;
    Json m_asked;
};

constexpr const char* kDone = "data: [DONE]\n\n";
constexpr const char* kUsage =
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 7}}\n\n";

std::string chunk(const std::string& delta) {
    return "data: {\"choices\": [{\"delta\": " + delta + ", \"finish_reason\": null}]}\n\n";
}

}  // namespace

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
            QCOMPARE(report->tokens, std::optional<uint64_t>(20 * 9));
            QCOMPARE(report->ttft.count(), uint64_t(20));
            QVERIFY(*report->promptTokens > 20);
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

    // Only the cancellation ends the wait for a server that never replies.
    void aSilentServerIsNotWaitedForAfterACancellation() {
        std::atomic<bool> listOfModels{true}, ended{false};
        std::atomic<int> waiting{0};
        httplib::Server silent;
        const auto wait = [&] {
            ++waiting;
            while (!ended) QThread::msleep(1);
        };
        silent.Get("/v1/models", [&](const httplib::Request&, httplib::Response& res) {
            if (!listOfModels) wait();
            res.set_content(R"({"data": [{"id": "m", "max_model_len": 32}]})", "application/json");
        });
        silent.Post("/v1/chat/completions",
                    [&](const httplib::Request&, httplib::Response&) { wait(); });
        const int port = silent.bind_to_any_port("127.0.0.1");
        std::thread listener([&] { silent.listen_after_bind(); });
        const std::string url = "http://127.0.0.1:" + std::to_string(port);

        const auto target = serve::HttpTarget::connect(url, {});
        listOfModels = false;
        CancelFlag cancel(false);
        Code code = Code::Ok;
        LoadReply reply;
        std::thread connecting(
            [&] { code = serve::HttpTarget::connect(url, {}, &cancel).status().code(); });
        std::thread asking([&] {
            if (target.ok()) reply = (*target)->send(shippedLoadPrompts()[0], cancel);
        });
        while (waiting < 2) QThread::msleep(1);
        cancel.store(true);
        connecting.join();
        asking.join();
        ended = true;
        silent.stop();
        listener.join();
        QVERIFY(target.ok());
        QCOMPARE((*target)->contextLength(), std::optional<int64_t>(32));
        QCOMPARE(code, Code::Cancelled);
        QCOMPARE(reply.error, std::string("cancelled"));
    }

    void figuresOfAWrongTypeAreLeftOut() {
        std::string events;
        for (const char* event :
             {R"({"usage": {"prompt_tokens": null, "completion_tokens": "many"}})",
              R"({"usage": {"prompt_tokens": -3}})", R"({"usage": [1]})", R"({"choices": [4]})",
              R"({"choices": [{"delta": {"content": 3}}]})", R"({"choices": {"delta": 1}})",
              R"([])", R"({"choices": [)", "", "ping",
              R"({"choices": [{"delta": {"content": "a"}}]})", "[DONE]"}) {
            events += std::string("data: ") + event + "\n\n";
        }
        const LoadReply reply = OtherServer(events).send();
        QCOMPARE(reply.error, std::string());
        QVERIFY(!reply.promptTokens && !reply.tokens);
        QCOMPARE(reply.timesNs.size(), size_t(1));
    }

    void reasoningIsTheFirstToken_data() {
        QTest::addColumn<QByteArray>("delta");
        for (const char* delta : {R"({"reasoning": "Hm"})", R"({"reasoning_content": "Hm"})",
                                  R"({"content": null, "reasoning": "Hm"})",
                                  R"({"content": "", "reasoning_content": "Hm"})",
                                  R"({"content": [{"type": "thinking", "thinking": "Hm"}]})"}) {
            QTest::newRow(delta) << QByteArray(delta);
        }
    }
    void reasoningIsTheFirstToken() {
        QFETCH(QByteArray, delta);
        OtherServer server(chunk(R"({"role": "assistant", "content": ""})") +
                           chunk(delta.toStdString()) + chunk(R"({"content": "Yes"})") + kUsage +
                           kDone);
        const LoadReply reply = server.send();
        QCOMPARE(reply.error, std::string());
        QCOMPARE(reply.timesNs.size(), size_t(2));
        QCOMPARE(reply.tokens, std::optional<uint32_t>(7));
        // A reply that consists of reasoning only also has a first token.
        OtherServer thinks(chunk(delta.toStdString()) + kDone);
        const auto report = thinks.load();
        QCOMPARE(report.ttft.count(), uint64_t(2));
    }

    void aStreamWithoutUsageHasNoRate() {
        OtherServer server(chunk(R"({"content": "several words"})") +
                           chunk(R"({"content": " at once"})") + kDone);
        const LoadReport report = server.load();
        QCOMPARE(report.completed, int64_t(2));
        QVERIFY(!report.tokens && !report.promptTokens);
        QVERIFY(std::isnan(report.tokensPerSecond()));
        QCOMPARE(report.pieces, uint64_t(4));
        QCOMPARE(report.itl.count(), uint64_t(2));
        const auto json = loadJson(report);
        QVERIFY(json["tokens"]["generated"].is_null() && json["tokens"]["prompt"].is_null());
        QVERIFY(json["throughput"]["tok_s"].is_null());
        QCOMPARE(json["pieces"]["count"], 4);
        QVERIFY(json["pieces"]["tokens_each"].is_null());
        const std::string csv = loadCsv(report);
        QVERIFY2(csv.ends_with(",,,\n"), csv.c_str());  // neither counts nor an error
    }

    void countsStandInSeveralPlaces_data() {
        QTest::addColumn<QByteArray>("event");
        QTest::addColumn<int>("tokens");
        const auto row = [](const char* text, int tokens) {
            QTest::newRow(text) << QByteArray(text) << tokens;
        };
        row(R"({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 7}})", 7);
        row(R"({"choices": [{"delta": {}, "usage": {"completion_tokens": 8}}]})", 8);
        row(R"({"choices": [], "x_groq": {"usage": {"completion_tokens": 9}}})", 9);
        row(R"({"choices": [{"delta": {}}], "timings": {"predicted_n": 10}})", 10);
        row(R"({"usage": {"completion_tokens": 11}, "timings": {"predicted_n": 12}})", 11);
    }
    void countsStandInSeveralPlaces() {
        QFETCH(QByteArray, event);
        QFETCH(int, tokens);
        OtherServer server(chunk(R"({"content": "x"})") + "data: " + event.toStdString() + "\n\n" +
                           R"(data: {"choices": [], "usage": null})" + "\n\n" + kDone);
        QCOMPARE(server.send().tokens, std::optional<uint32_t>(uint32_t(tokens)));
    }

    // The variants that the standard for event streams allows, in pieces of any size.
    void streamsOfEveryForm_data() {
        QTest::addColumn<QByteArray>("stream");
        const std::string three = chunk(R"({"content": "a"})") + chunk(R"({"content": "b"})") +
                                  chunk(R"({"content": "c"})") + kUsage + kDone;
        const auto with = [&](const std::string& from, const std::string& to) {
            return QByteArray::fromStdString(
                QString::fromStdString(three)
                    .replace(QString::fromStdString(from), QString::fromStdString(to))
                    .toStdString());
        };
        QTest::newRow("LF") << with("", "");
        QTest::newRow("CRLF") << with("\n", "\r\n");
        QTest::newRow("CR") << with("\n", "\r");
        QTest::newRow("comments") << with("\n\n", "\n\n: ping\n\n:\n");
        QTest::newRow("ping events") << with("\n\n", "\n\nevent: ping\ndata: {}\n\n");
        QTest::newRow("ping texts") << with("\n\n", "\n\nevent: ping\ndata: ping\n\n");
        QTest::newRow("ids and times") << with("data:", "id: 7\nretry: 100\nevent: message\ndata:");
        QTest::newRow("no space") << with("data: ", "data:");
        QTest::newRow("no empty lines") << with("\n\n", "\n");
        QTest::newRow("byte order mark") << "\xef\xbb\xbf" + with("", "");
        QTest::newRow("several lines") << with(": [{", ":\r\ndata: [{");
        QTest::newRow("the end in a text") << with("\"b\"", "\"[DONE]\"");
        QTest::newRow("torn UTF-8") << with("\"b\"", "\"@\"").replace('@', "\xf0\x9f");
        QTest::newRow("torn UTF-16") << with("\"b\"", "\"\\ud83d\"");
        QTest::newRow("two bytes") << with("\"b\"", "\"\xc3\xa4\"");
        QTest::newRow("no end but a reason")
            << with(kDone, R"(data: {"choices": [{"delta": {}, "finish_reason": "stop"}]})"
                           "\n\n");
    }
    void streamsOfEveryForm() {
        QFETCH(QByteArray, stream);
        for (const size_t size : {size_t(1), size_t(7), size_t(100'000)}) {
            const LoadReply reply = OtherServer(stream.toStdString(), size).send();
            QCOMPARE(reply.error, std::string());
            QCOMPARE(reply.timesNs.size(), size_t(3));
            QCOMPARE(reply.tokens, std::optional<uint32_t>(7));
            QCOMPARE(reply.promptTokens, std::optional<uint32_t>(5));
        }
    }

    void whatIsNoCompleteReplyIsTold() {
        const auto error = [](const std::string& stream, int status = 200) {
            return OtherServer(stream, 3, status).send().error;
        };
        QCOMPARE(error(chunk(R"({"content": "a"})")), std::string("truncated"));
        for (const char* garbage :
             {"data: {not json}\n\n", "data: {\"choices\":5}\n\n", "data: [1]\n\n"})
            QCOMPARE(error(garbage + std::string("data: [DONE]\n\n")),
                     std::string("no valid events"));
        QCOMPARE(error(R"({"choices": [{"message": {"content": "whole"}}]})"),
                 std::string("not an event stream"));
        QCOMPARE(error(R"({"error": {"message": "no such\nmodel"}})", 404),
                 std::string("HTTP 404: no such model"));
        QCOMPARE(error(R"({"error": "plain"})", 400), std::string("HTTP 400: plain"));
        QCOMPARE(error("<html>", 502), std::string("HTTP 502"));
        QCOMPARE(error("data: {\"error\": {\"message\": \"x\"}}\n\n"), std::string("failed"));
    }

    // Strict servers reject unknown parameters.
    void onlyWhatIsWantedIsAsked() {
        OtherServer server(chunk(R"({"content": "a"})") + kDone);
        server.send();
        QVERIFY(!server.asked().contains("ignore_eos"));
        QCOMPARE(server.asked()["stream"], true);
        server.send({.ignoreEos = true});
        QCOMPARE(server.asked()["ignore_eos"], true);
    }

    void keysAndLostServersAreTold() {
        serve::ApiOptions options;
        options.apiKey = "k";
        Served served({}, options);
        const Status refused = serve::HttpTarget::connect(served.server->url(), {}).status();
        QVERIFY(refused.message().find("401") != std::string::npos);
        auto target = serve::HttpTarget::connect(served.server->url(), {.apiKey = "k"});
        QVERIFY(target.ok());
        QCOMPARE((*target)->send(shippedLoadPrompts()[0], m_run).error, std::string());
        served.server->stop();
        QCOMPARE((*target)->send(shippedLoadPrompts()[0], m_run).error,
                 std::string("no connection"));
    }
};

QTEST_GUILESS_MAIN(TestHttpTarget)
#include "test_http_target.moc"
