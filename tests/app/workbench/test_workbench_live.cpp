// SPDX-License-Identifier: GPL-3.0-or-later
// The window on the bundled model: typed question, streamed reply, knobs moved on the way.
#include <QClipboard>
#include <QDir>
#include <QEventLoop>
#include <QFile>
#include <QMap>
#include <QPlainTextEdit>
#include <QTimer>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/window/main_window.h"
#include "window_test.h"

using namespace colibri;
using namespace colibri::ui;

class TestWorkbenchLive : public QObject {
    Q_OBJECT

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<MainWindow> m_window;

    ChatPanel* chat() { return m_window->chatPage()->chat(); }
    const Turn& lastTurn() {
        const Conversation& c = chat()->conversation();
        return c.turns[c.path().last()];
    }
    void ask(const QString& text) {
        chat()->newChat();
        QPlainTextEdit* edit = chat()->composer()->editor();
        edit->setPlainText(text);
        QTest::keyClick(edit, Qt::Key_Return);
        QVERIFY(chat()->generating());
    }
    bool waitTokens(int n) {
        return QTest::qWaitFor(
            [&] { return lastTurn().tokens.size() >= n || !chat()->generating(); }, 60000);
    }
    bool waitDone() {
        return QTest::qWaitFor([&] { return !chat()->generating(); }, 60000);
    }

    // Of a request that is answered with one token.
    int promptTokens(ChatRequest request) {
        request.maxTokens = 1;
        const auto run = m_host->startChat(std::move(request));
        std::optional<RequestResult> result;
        const bool ended =
            QTest::qWaitFor([&] { return (result = run->take().result).has_value(); }, 60000);
        return ended && result->status.ok() ? int(result->promptTokens) : -1;
    }
    // Clock ticks of each thread so far, by its name.
    static QMap<QString, qint64> processorTicks() {
        QMap<QString, qint64> out;
        for (const QString& task :
             QDir("/proc/self/task").entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
            QFile file("/proc/self/task/" + task + "/stat");
            if (!file.open(QIODevice::ReadOnly)) continue;
            const QString line = file.readAll();
            const QStringList fields = line.section(')', -1).split(' ', Qt::SkipEmptyParts);
            out[line.section('(', 1).section(')', 0, -2)] +=
                fields.value(11).toLongLong() + fields.value(12).toLongLong();
        }
        return out;
    }
    static void print(const char* what) {
        const int seconds = std::max(2, qEnvironmentVariableIntValue("COLIBRI_IDLE_SECONDS"));
        const auto wait = [](int ms) {  // QTest::qWait() wakes up a hundred times a second
            QEventLoop loop;
            QTimer::singleShot(ms, &loop, &QEventLoop::quit);
            loop.exec();
        };
        wait(2500);  // what went before is over
        const QMap<QString, qint64> before = processorTicks();
        wait(1000 * seconds);
        const QMap<QString, qint64> after = processorTicks();
        QStringList parts;
        double all = 0;
        for (auto it = after.begin(); it != after.end(); ++it) {
            const double share = double(it.value() - before.value(it.key())) / seconds;
            all += share;
            if (share > 0) parts << QString("%1 %2").arg(it.key()).arg(share, 0, 'f', 2);
        }
        qInfo("%s: %.2f %% of a processor (%s)", what, all, qPrintable(parts.join(", ")));
    }

private slots:
    void initTestCase() {
        m_sandbox = std::make_unique<Sandbox>();
        ChatSettings settings;
        settings.sampling.temperature = 0;
        settings.maxTokens = 80;
        settings.store({});
        m_host = std::make_unique<EngineHost>(m_sandbox->path("data"));
        m_window = std::make_unique<MainWindow>(m_host.get(), m_sandbox->path("chats"));
        m_window->resize(1440, 900);
        m_window->show();
        const QString model = QStringLiteral(COLIBRI_SOURCE_DIR "/resources/demo-model/container");
        KnobValues knobs;
        knobs[size_t(KnobId::ExpertCacheSize)] = 8;
        knobs[size_t(KnobId::ComputeThreads)] = 1;
        QSignalSpy failed(m_host.get(), &EngineHost::loadFailed);
        m_host->load(model.toStdString(), knobs);
        QVERIFY(QTest::qWaitFor(
            [&] { return m_host->state() == SessionSource::State::Ready || failed.size(); },
            60000));
        QVERIFY(m_host->model());
        m_window->showPage("chat");
    }

    void cleanupTestCase() {
        m_window.reset();
        m_host.reset();
    }

    void movingTheCacheSliderWhileAReplyStreamsChangesNothingInTheText() {
        ask("Tell me a story about a fox.");
        QVERIFY(waitDone());
        const QString alone = lastTurn().text;
        QVERIFY(alone.size() > 40);
        QCOMPARE(lastTurn().figures.tokens, int(lastTurn().tokens.size()));
        QVERIFY(lastTurn().figures.hitRate >= 0);

        // Paced reads, so that there is time to move things.
        KnobsPanel* knobs = m_window->chatPage()->knobs();
        knobs->request(KnobId::LinkLimit, 60);
        ask("Tell me a story about a fox.");
        QVERIFY(waitTokens(5));
        SliderRow* cache = knobs->control(KnobId::ExpertCacheSize)->sliderRow();
        drag(cache->slider(), QPoint(int(cache->slider()->xOf(8)), 11),
             QPoint(int(cache->slider()->xOf(24)), 11));
        QVERIFY(QTest::qWaitFor(
            [&] { return m_host->knobState(KnobId::ExpertCacheSize).effective == 24; }, 5000));
        QVERIFY(waitTokens(20));
        knobs->request(KnobId::ExpertCacheSize, 4);
        knobs->request(KnobId::PrefetchSource, int64_t(PrefetchSource::PreviousToken));
        QVERIFY(waitTokens(30));
        knobs->request(KnobId::LinkLimit, 0);
        QVERIFY(waitDone());
        QCOMPARE(lastTurn().text, alone);

        // The changes left a marker in the lane; steps within a second are one change.
        QVERIFY(QTest::qWaitFor(
            [&] {
                int found = 0;
                const auto snapshot = m_host->snapshot();
                for (const Marker& marker : snapshot->markers)
                    found +=
                        marker.kind == Marker::Kind::Knob && marker.knob == KnobId::ExpertCacheSize;
                return found >= 1;
            },
            5000));
        QVERIFY(!m_window->chatPage()->plots()->lane()->flags().empty());
    }

    void aChosenTemplateMakesThePrompt() {
        QVERIFY(!m_host->model()->templates.empty());
        const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "Hello"}}};
        QVERIFY(m_host->renderChat(messages, {}).ok());
        auto parsed =
            ChatTemplate::parse("{% for m in messages %}Q: {{ m.content }}\n{% endfor %}\nA:", "t");
        QVERIFY(parsed.ok());
        ChatRequest request;
        request.messages = messages;
        request.chat.chatTemplate = std::move(*parsed);
        const auto rendered = m_host->renderChat(messages, request.chat);
        QVERIFY2(rendered.ok(), rendered.status().text().c_str());
        QCOMPARE(QString::fromStdString(*rendered), QString("Q: Hello\nA:"));
        QCOMPARE(promptTokens(request), m_host->countTokens("Q: Hello\nA:"));
    }

    void controlTokensInAContinuedReplyAreText() {
        ChatRequest request;
        request.messages = {{{"role", "user"}, {"content", "Hello"}}};
        const int before = promptTokens(request);
        const Engine& engine = *m_host->engine();
        request.replySoFar = engine.tokenizer()->idToToken(engine.info().config.eosIds.front());
        QCOMPARE(m_host->countTokens(QString::fromStdString(request.replySoFar)), 1);
        QVERIFY(promptTokens(request) > before + 1);
    }

    // With nothing to do the window asks little of the processor. Printed by thread, not judged.
    void whatAnIdleWindowAsksOfTheProcessor() {
        QVERIFY(waitDone());
        print("visible");
        m_window->view()->setPaused(true);
        print("visible, paused");
        m_window->showMinimized();
        print("minimised, paused");
        m_window->showNormal();
        m_window->view()->setPaused(false);
    }

    void escapeEndsAReplyAndTheNextOneRuns() {
        m_window->chatPage()->knobs()->request(KnobId::LinkLimit, 20);
        ask("Tell me a long story about the sea.");
        QVERIFY(waitTokens(3));
        QTest::keyClick(chat()->composer()->editor(), Qt::Key_Escape);
        QVERIFY(waitDone());
        QCOMPARE(lastTurn().figures.stop, QString("cancelled"));
        QVERIFY(!lastTurn().text.isEmpty());
        m_window->chatPage()->knobs()->request(KnobId::LinkLimit, 0);
        ask("What is an expert?");
        QVERIFY(waitDone());
        QVERIFY(lastTurn().error.isEmpty());
    }

    void closingTheModelEndsTheReplyThatRuns() {
        m_window->chatPage()->knobs()->request(KnobId::LinkLimit, 20);
        ask("Tell me a long story about the sea.");
        QVERIFY(waitTokens(2));
        m_host->close();
        QVERIFY(QTest::qWaitFor([&] { return !chat()->generating(); }, 20000));
        QVERIFY(!m_host->model());
        m_window->tick();
        QVERIFY(!m_window->topBar()->followButton()->isVisible());
    }
};

QTEST_MAIN(TestWorkbenchLive)
#include "test_workbench_live.moc"
