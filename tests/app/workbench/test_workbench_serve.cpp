// SPDX-License-Identifier: GPL-3.0-or-later
// The Serve dock: the loaded model driven by other programs while the window goes on.
#include <httplib.h>

#include <QClipboard>
#include <QPlainTextEdit>
#include <thread>

#include "app/workbench/backend/inspection.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/widgets/data_table.h"
#include "engine_window.h"
#include "session_path.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

using State = ModelServer::State;
using Json = nlohmann::json;

std::string chatBody(int tokens, bool stream = false) {
    return Json{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
                {"max_tokens", tokens},
                {"temperature", 0},
                {"ignore_eos", true},
                {"stream", stream}}
        .dump();
}

}  // namespace

class TestWorkbenchServe : public EngineWindow {
    Q_OBJECT

    ServePanel* panel() { return m_window->servePanel(); }
    ModelServer* server() { return m_window->server(); }
    // Through the switch, as a user does.
    bool switchTo(bool on) {
        Segment* s = panel()->switcher();
        QTest::mouseClick(s, Qt::LeftButton, {}, QPoint(on ? s->width() - 8 : 8, s->height() / 2));
        return waitUntil(
            [&] { return server()->state() == State::On || server()->state() == State::Off; });
    }
    bool serve(const QString& host = "127.0.0.1", const QString& key = {}) {
        m_window->commands()->run("engine.serve");
        panel()->host()->setText(host);
        panel()->port()->setText("0");
        panel()->apiKey()->setText(key);
        return switchTo(true) && server()->state() == State::On;
    }
    httplib::Client client() {
        httplib::Client c("127.0.0.1", server()->port());
        c.set_read_timeout(60);
        return c;
    }
    QString figure(const QString& name) {
        panel()->tick();
        for (const auto& row : panel()->figures()->rows())
            if (row[0].text == name) return row[1].text;
        return {};
    }

private slots:
    void initTestCase() {
        makeModel();
        ChatSettings settings;  // within the small model's context
        settings.sampling.temperature = 0;
        settings.maxTokens = 40;
        settings.store({});
    }
    void init() { open(); }
    void cleanup() { drop(); }

    void thereIsNothingToServeWithoutAModel() {
        m_window->commands()->run("engine.serve");
        QVERIFY(panel()->isVisible());
        QVERIFY(!panel()->switcher()->isEnabled());
        QVERIFY2(panel()->note().contains("Open a model"), qPrintable(panel()->note()));
        QVERIFY(!m_window->commands()->run("engine.serve_start"));
        QVERIFY(load());
        QVERIFY(panel()->switcher()->isEnabled());
    }

    void programsAndTheChatAreAnsweredTogether() {
        QVERIFY(load());
        QVERIFY(serve());
        const QString address = server()->address();
        QCOMPARE(address, QString("http://127.0.0.1:%1/v1").arg(server()->port()));
        QVERIFY(panel()->example().contains(address + "/chat/completions"));
        m_window->commands()->run("engine.serve_copy");
        QCOMPARE(QGuiApplication::clipboard()->text(), address);
        QVERIFY(m_window->status()->cell(StatusBar::Serving)->isVisible());
        QVERIFY(!m_window->status()->cell(StatusBar::Serving)->content().badge);

        // A question typed into the chat meanwhile.
        ChatPanel* chat = m_window->chatPage()->chat();
        chat->newChat();
        chat->composer()->editor()->setPlainText("Hello");
        QTest::keyClick(chat->composer()->editor(), Qt::Key_Return);
        QVERIFY(chat->generating());
        httplib::Client c = client();
        QCOMPARE(c.Get("/v1/models")->status, 200);
        const auto reply = c.Post("/v1/chat/completions", chatBody(6), "application/json");
        QVERIFY(reply);
        QCOMPARE(reply->status, 200);
        QCOMPARE(Json::parse(reply->body)["usage"]["completion_tokens"].get<int>(), 6);
        QCOMPARE(c.Get("/v1/nothing")->status, 404);
        QVERIFY(waitUntil([&] { return !chat->generating(); }));
        const QString error = chat->conversation().turns[chat->conversation().path().last()].error;
        QVERIFY2(error.isEmpty(), qPrintable(error));

        QVERIFY(waitUntil([&] { return figure("In flight") == "0"; }));
        QCOMPARE(figure("Answered"), QString("2"));
        QCOMPARE(figure("Refused"), QString("1: 404 × 1"));
        QCOMPARE(figure("Generated tokens"), QString("6"));
        QVERIFY(!figure("TTFT P50").startsWith("n/a"));
        // The log has each that ended, the newest first: tokens, and how it ended.
        QVERIFY(waitUntil([&] { return panel()->log()->rows().size() == 2; }));
        QCOMPARE(panel()->log()->rows()[0][4].text, QString("404"));
        QVERIFY2(panel()->log()->rows()[1][1].text.endsWith(", 6"),
                 qPrintable(panel()->log()->rows()[1][1].text));
        QVERIFY(panel()->log()->fits());
        // In the plots they are requests as those of the chat.
        QVERIFY(waitUntil([&] {
            int turns = 0;
            const auto snapshot = m_host->snapshot();
            for (const Marker& marker : snapshot->markers) turns += marker.request != 0;
            return turns >= 2;
        }));
        QVERIFY(switchTo(false));
        QCOMPARE(server()->state(), State::Off);
        QCOMPARE(figure("Answered"), QString("2"));  // what it did stays to be read
        QVERIFY(!m_window->status()->cell(StatusBar::Serving)->isVisible());
        QVERIFY(!c.Get("/v1/models"));
    }

    void otherMachinesNeedAKey() {
        QVERIFY(load());
        QVERIFY(!serve("0.0.0.0"));
        QCOMPARE(server()->state(), State::Off);
        // The server's own words, whole.
        QCOMPARE(panel()->note(), QString::fromStdString(server()->error().text()));
        QVERIFY2(panel()->note().contains("API key"), qPrintable(panel()->note()));
        QVERIFY(serve("0.0.0.0", "secret"));
        QVERIFY(m_window->status()->cell(StatusBar::Serving)->content().badge);
        QVERIFY(panel()->example().contains("Authorization"));
        QVERIFY(!panel()->example().contains("secret"));
        httplib::Client c = client();
        QCOMPARE(c.Get("/v1/models")->status, 401);
        c.set_bearer_token_auth("secret");
        QCOMPARE(c.Get("/v1/models")->status, 200);
        QCOMPARE(figure("Refused"), QString("1: 401 × 1"));
    }

    void moreOriginsAndNamesAreAdmitted() {
        QVERIFY(load());
        m_window->commands()->run("engine.serve");
        QTest::keyClicks(panel()->origins(), "https://chat.example.org/path");
        QVERIFY2(panel()->note().contains("not the origin of a web page"),
                 qPrintable(panel()->note()));
        panel()->origins()->clear();
        QTest::keyClicks(panel()->origins(), "https://chat.example.org, http://pc.lan:3000");
        QTest::keyClicks(panel()->hostNames(), "http://pc.lan");
        QVERIFY2(panel()->note().contains("not the name of a host"), qPrintable(panel()->note()));
        panel()->hostNames()->clear();
        QTest::keyClicks(panel()->hostNames(), "pc.lan");
        QCOMPARE(panel()->options().corsOrigins,
                 (QStringList{"https://chat.example.org", "http://pc.lan:3000"}));
        QVERIFY(serve());
        httplib::Client c = client();
        const auto statusOf = [&](const httplib::Headers& headers) {
            return c.Get("/v1/models", headers)->status;
        };
        QCOMPARE(statusOf({{"Origin", "https://chat.example.org"}}), 200);
        QCOMPARE(statusOf({{"Origin", "https://other.example.org"}}), 403);
        QCOMPARE(statusOf({{"Host", "pc.lan"}}), 200);
        QVERIFY(statusOf({{"Host", "other.lan"}}) >= 400);
        QVERIFY(switchTo(false));
        drop();
        open();  // both are kept
        m_window->commands()->run("engine.serve");
        QCOMPARE(panel()->options().allowedHosts, QStringList("pc.lan"));
        QCOMPARE(panel()->options().corsOrigins.size(), 2);
        for (const char* key : {"serve/cors_origins", "serve/allowed_hosts"})
            settings().remove(key);
    }

    // What others use is not ended without a question.
    void closingAServedModelAsksFirst() {
        int closed = 0;
        const auto close = [&] {
            m_window->whenUnused("Close the model?", "Close it", [&] { ++closed; });
        };
        QVERIFY(load());
        close();
        QCOMPARE(closed, 1);
        QVERIFY(serve());
        close();
        QCOMPARE(closed, 1);
        QCOMPARE(server()->state(), State::On);
        const Message question = m_window->messages()->all().back();
        QVERIFY2(question.detail.contains(server()->address()), qPrintable(question.detail));
        QCOMPARE(question.actionText, QString("Close it"));
        question.action();
        QCOMPARE(closed, 2);
    }
    void aPortThatIsTakenIsNamed() {
        QVERIFY(load());
        httplib::Server other;
        const QString port = QString::number(other.bind_to_any_port("127.0.0.1"));
        m_window->commands()->run("engine.serve");
        panel()->host()->setText("127.0.0.1");
        panel()->port()->setText(port);
        QVERIFY(switchTo(true));
        QCOMPARE(server()->state(), State::Off);
        QVERIFY2(panel()->note().contains(port), qPrintable(panel()->note()));
        panel()->port()->clear();  // any other
        QTest::keyClicks(panel()->port(), "many");
        QCOMPARE(panel()->options().port, 0);
        QVERIFY(switchTo(true));
        QCOMPARE(server()->state(), State::On);
        QVERIFY(QString::number(server()->port()) != port);
    }

    void anotherModelEndsIt_data() {
        QTest::addColumn<bool>("closeWindow");
        QTest::newRow("another model") << false;
        QTest::newRow("closed window") << true;
    }
    void anotherModelEndsIt() {
        QFETCH(bool, closeWindow);
        KnobValues slow;
        slow[size_t(KnobId::LinkLimit)] = 1;
        slow[size_t(KnobId::ExpertCacheSize)] = 1;
        QVERIFY(load(slow));
        QVERIFY(serve());
        const std::string session = sessionPath(*m_host).toStdString();
        std::string streamed;
        std::thread program([&, c = std::make_shared<httplib::Client>(client())] {
            const auto reply =
                c->Post("/v1/chat/completions", chatBody(4000, true), "application/json");
            if (reply) streamed = reply->body;
        });
        const bool begun = waitUntil([&] { return figure("In flight") == "1"; });
        if (closeWindow)
            m_window->close();
        else
            m_host->load(m_model.toStdString(), {});
        const bool ended = waitUntil([&] { return server()->state() == State::Off; });
        program.join();
        QVERIFY(begun);
        QVERIFY(ended);
        QVERIFY2(streamed.find("the server is shutting down") != streamed.npos, streamed.c_str());
        if (closeWindow) QCOMPARE(figure("Cancelled"), QString("1"));
        QCOMPARE(figure("In flight"), QString("0"));
        QVERIFY(server()->error().ok());
        if (closeWindow) return;
        QVERIFY(waitUntil([&] { return m_host->state() == SessionSource::State::Ready; }));
        QCOMPARE(figure("Cancelled"), QString("0"));  // figures of the former model have left
        // The session of the model that was served ended cleanly, with its request.
        QVERIFY(waitUntil([&] {
            const auto summary = readSessionSummary(session);
            return summary && summary->endedCleanly && summary->requests == 1;
        }));
        QVERIFY(switchTo(true));  // and the new one can be served
        QCOMPARE(server()->state(), State::On);
    }

    void theDockIsThereInEveryWidth_data() {
        QTest::addColumn<int>("width");
        for (const int width : {800, 1100, 1440, 1920}) QTest::addRow("%d", width) << width;
    }
    void theDockIsThereInEveryWidth() {
        QFETCH(int, width);
        m_window->resize(width, 700);
        QTRY_COMPARE(m_window->chatPage()->width(), width);
        m_window->commands()->run("engine.serve");
        QTRY_VERIFY(panel()->isVisible());
        QVERIFY(panel()->width() >= 260);
        m_window->commands()->run("engine.load");
        QTRY_VERIFY(m_window->loadTestPanel()->isVisible());
        QVERIFY(!panel()->isVisible());
        m_window->chatPage()->showKnobs();
        QTRY_VERIFY(m_window->chatPage()->knobs()->isVisible());
        QVERIFY(!m_window->loadTestPanel()->isVisible());
    }
};

QTEST_MAIN(TestWorkbenchServe)
#include "test_workbench_serve.moc"
