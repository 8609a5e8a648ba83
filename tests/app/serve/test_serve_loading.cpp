// SPDX-License-Identifier: GPL-3.0-or-later
// Clients that connect while the model is loading get the loading status, and replies once it is
// loaded.
#include <fcntl.h>
#include <unistd.h>

#include <QtTest>
#include <csignal>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

constexpr int kWaitMs = 60'000;

int freePort() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket, plain, size) != 0 || getsockname(socket, plain, &size) != 0)
        qFatal("no free port");
    close(socket);
    return ntohs(address.sin_port);
}

// `colibri serve` whose messages are not read: it blocks at the first one, after it has started to
// listen and before the model is loaded, until the messages are read.
class HeldServer {
public:
    explicit HeldServer(const QString& model) : port(freePort()) {
        if (pipe2(m_pipe, O_CLOEXEC) != 0) qFatal("no pipe");
        fcntl(m_pipe[1], F_SETFL, O_NONBLOCK);
        const std::string full(1 << 20, '.');
        while (::write(m_pipe[1], full.data(), full.size()) > 0) {
        }
        fcntl(m_pipe[1], F_SETFL, 0);
        process.setChildProcessModifier([this] { dup2(m_pipe[1], STDERR_FILENO); });
        process.start(COLIBRI_BINARY, {"serve", model, "--port", QString::number(port)});
        if (!process.waitForStarted(kWaitMs)) qFatal("cannot start");
        close(m_pipe[1]);
    }
    ~HeldServer() {
        process.kill();
        process.waitForFinished();
        letGo();
        if (m_reader.joinable()) m_reader.join();
        close(m_pipe[0]);
    }
    void letGo() {
        if (m_reader.joinable()) return;
        m_reader = std::thread([this] {
            char buffer[4096];
            while (::read(m_pipe[0], buffer, sizeof buffer) > 0) {
            }
        });
    }
    // Status of the response; 0: no connection.
    int status(const char* path) const {
        httplib::Client client("127.0.0.1", port);
        const auto reply = client.Get(path);
        return reply ? reply->status : 0;
    }

    const int port;
    QProcess process;

private:
    int m_pipe[2];
    std::thread m_reader;
};

}  // namespace

class TestServeLoading : public QObject {
    Q_OBJECT

    const QString m_demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";

private slots:
    void clientsAreToldThatTheModelIsLoading() {
        serve::ApiOptions options;
        options.port = 0;
        serve::ApiServer server(options);
        QVERIFY(server.start().ok());
        httplib::Client client("127.0.0.1", server.port());
        auto health = client.Get("/health");
        QVERIFY(health);
        QCOMPARE(health->status, 503);
        QCOMPARE(Json::parse(health->body), Json({{"status", "loading"}}));
        server.setLoadProgress({"Dense weights", 25, 100});
        health = client.Get("/health");
        QCOMPARE(Json::parse(health->body),
                 Json({{"status", "loading"}, {"stage", "Dense weights"}, {"progress", 0.25}}));
        const auto refused = [&](const httplib::Result& reply) {
            return reply && reply->status == 503 && reply->has_header("Retry-After") &&
                   Json::parse(reply->body)["error"]["message"].get<std::string>().find(
                       "the model is loading (Dense weights, 25 %)") != std::string::npos;
        };
        QVERIFY(refused(client.Get("/v1/models")));
        QVERIFY(refused(client.Get("/metrics")));
        QVERIFY(refused(
            client.Post("/v1/chat/completions", chatBody("hello", 2).dump(), "application/json")));
        // The access rules are the same as later.
        QCOMPARE(client.Get("/health", {{"Host", "evil.example"}})->status, 403);

        const auto engine = load(goldenModel("qwen3moe"));
        server.serve(*engine);
        QCOMPARE(client.Get("/health")->body, std::string(R"({"status":"ok"})"));
        QCOMPARE(
            client.Post("/v1/chat/completions", chatBody("hello", 2).dump(), "application/json")
                ->status,
            200);
        server.stop();
    }

    void listensBeforeTheModelIsThere() {
        HeldServer server(m_demo);
        QTRY_COMPARE_WITH_TIMEOUT(server.status("/health"), 503, kWaitMs);
        QCOMPARE(server.status("/v1/models"), 503);
        server.letGo();
        QTRY_COMPARE_WITH_TIMEOUT(server.status("/health"), 200, kWaitMs);
        QCOMPARE(server.status("/v1/models"), 200);
    }

    void endsWhileItLoads() {
        HeldServer server(m_demo);
        QTRY_COMPARE_WITH_TIMEOUT(server.status("/health"), 503, kWaitMs);
        ::kill(pid_t(server.process.processId()), SIGTERM);
        server.letGo();
        QVERIFY(server.process.waitForFinished(kWaitMs));
        QCOMPARE(server.process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(server.process.exitCode(), 1);
    }

    void aLoadThatFailsEndsTheServer() {
        QProcess process;
        process.start(COLIBRI_BINARY, {"serve", m_demo + "-none", "--port", "0"});
        QVERIFY(process.waitForFinished(kWaitMs));
        QCOMPARE(process.exitCode(), 3);
        const QByteArray said = process.readAllStandardError();
        QVERIFY2(said.contains("-none"), said);
    }
};

QTEST_GUILESS_MAIN(TestServeLoading)
#include "test_serve_loading.moc"
