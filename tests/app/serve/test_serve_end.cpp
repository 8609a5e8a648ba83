// SPDX-License-Identifier: GPL-3.0-or-later
// `colibri serve` exits soon after SIGTERM in every state, and responds if the expert files are
// damaged.
#include <QtTest>
#include <csignal>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri::test;

namespace {

constexpr int kPatienceMs = 60'000;

// A server with a copy of the demo model.
class Server {
public:
    Server(const QString& model, const QStringList& options) {
        m_process.setReadChannel(QProcess::StandardError);
        m_process.start(COLIBRI_BINARY, QStringList{"serve", model, "--port", "0"} + options);
        QString said;
        while (!said.contains(" at http://") && m_process.waitForReadyRead(kPatienceMs))
            said += QString::fromUtf8(m_process.readAllStandardError());
        port = QRegularExpression(":(\\d+)/v1").match(said).captured(1).toInt();
    }
    ~Server() {
        m_process.kill();
        m_process.waitForFinished();
    }
    // Milliseconds until it exited by itself; -1: it had to be killed.
    qint64 terminate() {
        QElapsedTimer timer;
        timer.start();
        ::kill(pid_t(m_process.processId()), SIGTERM);
        if (!m_process.waitForFinished(kPatienceMs)) return -1;
        return m_process.exitStatus() == QProcess::NormalExit && m_process.exitCode() == 0
                   ? timer.elapsed()
                   : -1;
    }
    httplib::Client client() const {
        httplib::Client client("127.0.0.1", port);
        client.set_read_timeout(kPatienceMs / 1000);
        return client;
    }
    // The value of a metric; -1: absent.
    double metric(const std::string& name) const {
        const auto page = client().Get("/metrics");
        const size_t at = page ? page->body.find("\ncolibri_" + name + ' ') : std::string::npos;
        return at == std::string::npos ? -1 : std::stod(page->body.substr(at + name.size() + 10));
    }
    int port = 0;

private:
    QProcess m_process;
};

std::string chat(int words, int tokens, bool stream) {
    std::string text;
    for (int i = 0; i < words; ++i) text += "word" + std::to_string(i) + ' ';
    return chatBody(text, tokens, stream).dump();
}

}  // namespace

class TestServeEnd : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_copies = 0;

    // Makes a copy of the demo model.
    QString demo() {
        const QString copy = m_dir.filePath(QString("demo-%1").arg(m_copies++));
        QProcess::execute("cp", {"-r", COLIBRI_SOURCE_DIR "/resources/demo-model/container", copy});
        return copy;
    }
    static void emptyExperts(const QString& model) {
        for (const QFileInfo& file : QDir(model + "/experts").entryInfoList(QDir::Files))
            QVERIFY(QFile::resize(file.filePath(), 0));
    }

private slots:
    // One expert slot per layer, fewer than a step needs.
    void aServerWithoutExpertsAnswers_data() {
        QTest::addColumn<QString>("cacheSize");
        for (const char* size : {"1", "3", "32"}) QTest::newRow(size) << QString(size);
    }
    void aServerWithoutExpertsAnswers() {
        QFETCH(QString, cacheSize);
        const QString model = demo();
        Server server(model, {"--expert-cache-size", cacheSize, "--link-limit", "0"});
        QVERIFY(server.port != 0);
        emptyExperts(model);
        for (int i = 0; i < 3; ++i) {
            const auto answer = server.client().Post("/v1/chat/completions", chat(20, 4, false),
                                                     "application/json");
            QVERIFY2(answer, "no answer");
            QVERIFY(answer->status >= 400);
            QVERIFY2(answer->body.find("experts/layer_000.bin") != answer->body.npos,
                     answer->body.c_str());
            QVERIFY2(answer->body.find("byte") != answer->body.npos, answer->body.c_str());
            const auto health = server.client().Get("/health");
            QVERIFY(health && health->status == 200);
        }
        const qint64 ms = server.terminate();
        qInfo("ended after %lld ms", (long long)ms);
        QVERIFY(ms >= 0);
    }

    void endsInEveryState_data() {
        QTest::addColumn<QString>("state");
        for (const char* state :
             {"idle", "prompt", "decoding", "slow prompt", "slow decoding", "failing reads",
              "many queued", "clients that do not read", "half a request"})
            QTest::newRow(state) << QString(state);
    }
    void endsInEveryState() {
        QFETCH(QString, state);
        const QString model = demo();
        const bool slow = state.startsWith("slow");
        Server server(model, {"--expert-cache-size", slow ? "1" : "4", "--prefetch-source", "off",
                              "--link-limit", slow ? "2" : "25"});
        QVERIFY(server.port != 0);
        std::vector<std::unique_ptr<RawClient>> clients;
        const auto post = [&](const std::string& body) -> RawClient& {
            clients.push_back(std::make_unique<RawClient>(server.port));
            clients.back()->post("/v1/chat/completions", body);
            return *clients.back();
        };
        const auto decoding = [&] {
            return post(chat(1, 900, true)).readUntil("{\"content\"").find("data:") !=
                   std::string::npos;
        };
        if (state.endsWith("prompt")) {
            post(chat(150, 100, true));
            QTRY_VERIFY_WITH_TIMEOUT(server.metric("active_requests") == 1, kPatienceMs);
        } else if (state.endsWith("decoding")) {
            QVERIFY(decoding());
        } else if (state == "failing reads") {
            QVERIFY(decoding());
            emptyExperts(model);
            for (int i = 0; i < 8; ++i) post(chat(20, 50, i % 2 == 0));
        } else if (state == "many queued") {
            for (int i = 0; i < 40; ++i) post(chat(20, 500, i % 2 == 0));
            QTRY_VERIFY_WITH_TIMEOUT(server.metric("queue_depth") > 10, kPatienceMs);
        } else if (state == "clients that do not read") {
            for (int i = 0; i < 4; ++i) post(chat(1, 900, true));
            QTRY_VERIFY_WITH_TIMEOUT(server.metric("active_requests") > 0, kPatienceMs);
        } else if (state == "half a request") {
            clients.push_back(std::make_unique<RawClient>(server.port));
            clients.back()->send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nCon");
        }
        const qint64 ms = server.terminate();
        qInfo("ended after %lld ms", (long long)ms);
        QVERIFY(ms >= 0);
    }
};

QTEST_GUILESS_MAIN(TestServeEnd)
#include "test_serve_end.moc"
