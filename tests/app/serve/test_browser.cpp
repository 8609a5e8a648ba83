// SPDX-License-Identifier: GPL-3.0-or-later
// A web page in a real browser, headless Chromium, that streams a chat from the server: a page of
// this machine, one of an admitted origin with a key, and one of an origin that is not admitted.
#include <QProcess>
#include <QStandardPaths>
#include <QtTest>
#include <cstdio>
#include <mutex>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

QString browser() {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
        if (const QString path = QStandardPaths::findExecutable(name); !path.isEmpty()) return path;
    }
    return {};
}

// Streams a chat as browser programs do, and reports the result to its own server.
constexpr const char* kPage = R"HTML(<!doctype html><title>chat</title><script>
const url = new URLSearchParams(location.search).get("api");
const key = new URLSearchParams(location.search).get("key");
(async () => {
  const seen = {reads: 0, text: "", done: false};
  try {
    const reply = await fetch(url + "/v1/chat/completions", {
      method: "POST",
      headers: {"Content-Type": "application/json", "Authorization": "Bearer " + key,
                "X-Stainless-Lang": "js"},
      body: JSON.stringify({messages: [{role: "user", content: "hello"}], max_tokens: 12,
                            temperature: 0, ignore_eos: true, stream: true})});
    seen.status = reply.status;
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part; !(part = await reader.read()).done; ++seen.reads) text += part.value;
    for (const line of text.split("\n").filter(l => l.startsWith("data: "))) {
      if (line == "data: [DONE]") seen.done = true;
      else seen.text += JSON.parse(line.slice(6)).choices[0].delta.content || "";
    }
    const wrong = await fetch(url + "/v1/chat/completions", {
      method: "POST",
      headers: {"Content-Type": "application/json", "Authorization": "Bearer " + key},
      body: JSON.stringify({messages: [], n: 2})});
    seen.error = (await wrong.json()).error.param;
  } catch (error) { seen.failed = String(error); }
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
})();
</script>)HTML";

// Serves the page and receives its report.
class PageServer {
public:
    PageServer() {
        m_server.Get("/", [](const httplib::Request&, httplib::Response& res) {
            res.set_content(kPage, "text/html");
        });
        m_server.Post("/seen", [this](const httplib::Request& req, httplib::Response&) {
            std::lock_guard lock(m_mutex);
            m_seen = Json::parse(req.body);
        });
        port = m_server.bind_to_any_port("127.0.0.1");
        m_listener = std::thread([this] { m_server.listen_after_bind(); });
    }
    ~PageServer() {
        m_server.stop();
        m_listener.join();
    }
    Json seen() {
        std::lock_guard lock(m_mutex);
        return m_seen;
    }
    int port = 0;

private:
    httplib::Server m_server;
    std::thread m_listener;
    std::mutex m_mutex;
    Json m_seen;
};

}  // namespace

class TestBrowser : public QObject {
    Q_OBJECT

    // The report of a page of `host`.
    static Json visit(const Served& served, const std::string& host, const std::string& key) {
        PageServer pages;
        QTemporaryDir profile;
        const QString url =
            QString("http://%1:%2/?api=%3&key=%4")
                .arg(QString::fromStdString(host))
                .arg(pages.port)
                .arg(QString::fromStdString(served.server->url()), QString::fromStdString(key));
        QProcess process;
        process.setProcessChannelMode(QProcess::MergedChannels);
        // The name resolves to this machine; no other network is accessible.
        process.start(browser(),
                      {"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                       "--disable-background-networking", "--disable-component-update",
                       "--disable-dev-shm-usage", "--user-data-dir=" + profile.path(),
                       "--host-resolver-rules=MAP page.example 127.0.0.1, MAP * ~NOTFOUND, "
                       "EXCLUDE localhost, EXCLUDE 127.0.0.1",
                       url});
        if (!process.waitForStarted()) return {{"failed", "the browser does not start"}};
        const bool seen = QTest::qWaitFor([&] { return !pages.seen().is_null(); }, 180'000);
        process.kill();
        process.waitForFinished();
        if (!seen) return {{"failed", process.readAll().toStdString()}};
        return pages.seen();
    }
    static std::string lone(const Served& served) {
        httplib::Client client = served.client();
        client.set_bearer_token_auth("secret");
        const auto reply =
            client.Post("/v1/chat/completions", chatBody("hello", 12).dump(), "application/json");
        return Json::parse(reply->body)["choices"][0]["message"]["content"];
    }
    static void readAll(const Json& seen, const Served& served) {
        QVERIFY2(!seen.contains("failed"), seen.dump().c_str());
        QCOMPARE(seen["status"], 200);
        QCOMPARE(seen["text"].get<std::string>(), lone(served));
        QVERIFY(seen["done"] == true && seen["reads"] >= 1);
        QCOMPARE(seen["error"], "n");  // errors are readable too
    }

private slots:
    void pagesOfThisMachineStreamAChat() {
        const Served served;
        readAll(visit(served, "localhost", "any"), served);
    }
    void pagesOfAnAdmittedOriginStreamAChat() {
        serve::ApiOptions options;
        options.apiKey = "secret";
        options.corsOrigins = {"*"};
        const Served served({}, options);
        readAll(visit(served, "page.example", "secret"), served);
    }
    void otherPagesReadNothing() {
        const Served served;
        const Json seen = visit(served, "page.example", "any");
        QVERIFY2(seen.contains("failed") && !seen.contains("status"), seen.dump().c_str());
        QVERIFY(seen["failed"].get<std::string>().find("TypeError") != std::string::npos);
        QCOMPARE(served.server->stats().started, uint64_t(0));
    }
};

int main(int argc, char** argv) {
    QCoreApplication program(argc, argv);
    if (browser().isEmpty()) {
        std::fputs("SKIPPED: there is no chromium; tests/install-packages --all installs it\n",
                   stderr);
        return 77;
    }
    TestBrowser test;
    return QTest::qExec(&test, argc, argv);
}
#include "test_browser.moc"
