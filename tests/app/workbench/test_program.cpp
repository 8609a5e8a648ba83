// SPDX-License-Identifier: GPL-3.0-or-later
// The program as it starts: window, pages before the chat and an engine behind them.
#include <QPlainTextEdit>
#include <QTextBrowser>

#include "app/workbench/pages/guide_page.h"
#include "app/workbench/pages/load_page.h"
#include "app/workbench/pages/welcome_page.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/window/program.h"
#include "session_path.h"
#include "test_model.h"
#include "window_test.h"

using namespace colibri;
using namespace colibri::ui;

class TestProgram : public QObject {
    Q_OBJECT

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<Program> m_program;
    QString m_model, m_base;

    EngineHost* host() { return m_program->host(); }
    MainWindow* window() { return m_program->window(); }
    ChatPanel* chat() { return window()->chatPage()->chat(); }
    void start(ProgramOptions options = {}) {
        if (!options.size) options.size = QSize(1440, 900);
        m_program = std::make_unique<Program>(options);
        m_program->start();
        window()->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(window()));
    }
    void startWithDemo() {
        ProgramOptions options;
        options.demo = true;
        start(options);
        QVERIFY(waitUntil([&] { return ready() && window()->currentPage() == "chat"; }));
    }
    bool ready() { return host()->state() == SessionSource::State::Ready; }
    Message lastMessage() {
        const auto& all = window()->messages()->all();
        return all.empty() ? Message() : all.back();
    }
    bool reply(const QString& text) {
        chat()->send(text);
        return waitUntil([&] { return !chat()->generating(); });
    }

private slots:
    void initTestCase() {
        m_sandbox = std::make_unique<Sandbox>();
        m_model = m_sandbox->path("tiny");
        QCOMPARE(convertGolden("qwen3moe", m_model), QString());
        m_base = m_sandbox->path("base");
        QCOMPARE(convertGolden("qwen3moe", m_base), QString());
        QVERIFY(QFile::remove(m_base + "/chat_template.jinja"));
        qputenv("COLIBRI_DEMO_MODEL", m_model.toUtf8());
    }
    void cleanup() { m_program.reset(); }

    void typingAfterTheModelHasLoadedGoesIntoTheMessage() {
        startWithDemo();
        QCoreApplication::processEvents();
        QWidget* focus = QApplication::focusWidget();
        QVERIFY(focus);
        QTest::keyClicks(focus, "What is an expert?");
        QCOMPARE(chat()->composer()->text(), QString("What is an expert?"));
    }

    // The welcome page, which makes the offer, is not seen where the demo opens at once.
    void aKilledSessionIsOfferedAlsoWithTheDemo() {
        const QString sessions =
            QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + "/sessions";
        const QString left = sessions + "/killed." + kSessionSuffix;
        {
            EngineHost host(m_sandbox->path("killed"));
            host.load(m_model.toStdString(), {});
            QVERIFY(waitUntil([&] { return host.state() == SessionSource::State::Ready; }));
            QDir().mkpath(sessions);
            QVERIFY(waitUntil([&] {
                for (const char* suffix : {"", "-wal"}) {
                    QFile::remove(left + suffix);
                    QFile::copy(sessionPath(host) + suffix, left + suffix);
                }
                const auto summary = readSessionSummary(left.toStdString());
                return summary && !summary->endedCleanly;
            }));
        }
        startWithDemo();
        QVERIFY(waitUntil([&] { return window()->messages()->inBar() != nullptr; }));
        const Message offer = *window()->messages()->inBar();
        QCOMPARE(offer.actionText, QString("Recover session"));
        QVERIFY2(offer.detail.contains("intact up to"), qPrintable(offer.detail));
        offer.action();
        QVERIFY(waitUntil([&] { return window()->recorded()->isOpen(); }));
        QCOMPARE(window()->currentPage(), QString("chat"));
        QVERIFY(readSessionSummary(left.toStdString())->endedCleanly);
        QFile::remove(left);
    }

    void aFailedOpenFromTheChatLeavesTheChat() {
        startWithDemo();
        QVERIFY(QDir().mkpath(m_sandbox->path("hf")));
        m_program->startPages()->openPath(m_sandbox->path("hf"));
        QVERIFY(waitUntil([&] { return window()->messages()->inBar() != nullptr; }));
        QCOMPARE(window()->currentPage(), QString("chat"));
        QVERIFY2(lastMessage().text.endsWith("hf could not be opened."),
                 qPrintable(lastMessage().text));
        QVERIFY(!lastMessage().detail.isEmpty());
    }

    void aModelThatIsNotThereLeavesTheWelcomePage() {
        ProgramOptions options;
        options.model = m_sandbox->path("nowhere");
        start(options);
        QVERIFY(waitUntil([&] { return m_program->startPages()->strip()->isVisible(); }));
        QCOMPARE(window()->currentPage(), QString("start"));
        QVERIFY(m_program->startPages()->strip()->text().endsWith("nowhere could not be opened."));
    }

    void loadingAnotherModelWhileServingAsks() {
        startWithDemo();
        window()->servePanel()->port()->setText("0");
        window()->servePanel()->setOn(true);
        QVERIFY(waitUntil([&] { return window()->server()->state() == ModelServer::State::On; }));
        m_program->startPages()->loadPath(m_base, {});
        QVERIFY(waitUntil([&] { return !window()->messages()->all().empty(); }));
        const Message question = lastMessage();
        QVERIFY2(question.detail.contains(window()->server()->address()),
                 qPrintable(question.detail));
        QCOMPARE(window()->server()->state(), ModelServer::State::On);
        QCOMPARE(host()->model()->folder, m_model);
        question.action();
        QVERIFY(waitUntil([&] { return ready() && host()->model()->folder == m_base; }));
        QVERIFY(waitUntil([&] { return window()->server()->state() == ModelServer::State::Off; }));
        QCOMPARE(window()->server()->figures().answered, uint64_t(0));
    }

    // Enter did nothing, and nothing said why.
    void aBaseModelContinuesAText() {
        startWithDemo();
        m_program->startPages()->loadPath(m_base, {});
        QVERIFY(waitUntil([&] { return ready() && host()->model()->folder == m_base; }));
        QVERIFY(host()->model()->continues);
        QVERIFY(reply("Once upon a time"));
        const Conversation& conversation = chat()->conversation();
        QCOMPARE(conversation.turns.size(), 2);
        QVERIFY(conversation.turns[1].figures.stop != "error");
        QVERIFY(conversation.turns[1].figures.tokens > 0);
        // No template is in the prompt: it has the tokens of the text, and one that begins it.
        const int plain = host()->countTokens("Once upon a time");
        QVERIFY(conversation.turns[1].figures.promptTokens <= plain + 1);
    }

    void theLoadTestOfAnotherModelLeavesTheDock() {
        startWithDemo();
        LoadPlan plan;
        plan.load.users = 1;
        plan.load.requests = 1;
        plan.maxTokens = 2;
        window()->loadTest()->start(plan);
        QVERIFY(waitUntil([&] { return !window()->loadTest()->running(); }));
        QVERIFY(window()->loadTest()->report());
        m_program->startPages()->loadPath(m_base, {});
        QVERIFY(waitUntil([&] { return ready() && host()->model()->folder == m_base; }));
        QVERIFY(!window()->loadTest()->report());
        bool posted = false;
        for (const Message& message : window()->messages()->all())
            posted =
                posted || (message.text.contains("load test") && message.actionText == "Export");
        QVERIFY(posted);  // and nothing is lost
    }

    void theUserGuideIsThere() {
        start();
        QTest::keyClick(window(), Qt::Key_F1, Qt::ShiftModifier);
        QCOMPARE(window()->currentPage(), QString("guide"));
        auto* guide = window()->findChild<GuidePage*>();
        const QString text = guide->browser()->toPlainText();
        QVERIFY(text.contains("Open a model") && text.contains("Hit rate"));
        QVERIFY(guide->showPage("session-file.md"));
        QVERIFY(!guide->showPage("nowhere.md"));
        QTest::keyClick(guide->browser(), Qt::Key_Escape);
        QCOMPARE(guide->shown(), QString("user-guide.md"));
        QTest::keyClick(guide->browser(), Qt::Key_Escape);
        QCOMPARE(window()->currentPage(), QString("start"));
        // Every link leads to a page there is.
        static const QRegularExpression link("href=\"([^\"]*)\"");
        for (const char* page : {"user-guide.md", "session-file.md"}) {
            QVERIFY(guide->showPage(page));
            auto found = link.globalMatch(guide->browser()->toHtml());
            while (found.hasNext()) QVERIFY(guide->showPage(found.next().captured(1)));
        }
    }

    void aRequestedSizeReplacesTheSavedOne() {
        QWidget kept;
        kept.setWindowState(Qt::WindowMaximized);
        settings().setValue("layout/window", kept.saveGeometry());
        ProgramOptions options;
        options.size = QSize(1280, 800);
        start(options);
        QCOMPARE(window()->size(), QSize(1280, 800));
        QVERIFY(!window()->isMaximized());
        settings().remove("layout/window");
    }
};

QTEST_MAIN(TestProgram)
#include "test_program.moc"
