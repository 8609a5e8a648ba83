// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/resource.h>
#include <QClipboard>
#include <QDir>
#include <QJsonDocument>
#include <QScrollBar>
#include <csignal>

#include "app/workbench/chat/chat_files.h"
#include "app/workbench/chat/chat_list.h"
#include "app/workbench/chat/chat_parts.h"
#include "chat_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestChat : public QObject, ChatRig {
    Q_OBJECT

private slots:
    void init() { openRig(); }
    void cleanup() { closeRig(); }

    // ---- a reply

    void replyStreamsAndIsSaved() {
        ask("Why is it slow?");
        QVERIFY(m_chat->generating());
        QCOMPARE(m_chat->composer()->text(), QString());
        QCOMPARE(QString::fromStdString(m_source->lastRequest.messages[0]["content"]),
                 QString("Why is it slow?"));
        m_source->feed(*m_source->lastRun, {"Because", " of", " misses"});
        tick();
        QCOMPARE(lastTurn().text, QString("Because of misses"));
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("Because of misses"));
        QCOMPARE(m_chat->composer()->meter()->used(), 148 + 3);
        QVERIFY(m_chat->composer()->stopButton()->isVisible());
        m_source->feed(*m_source->lastRun, {"."});
        m_source->finish(*m_source->lastRun);
        tick();
        QVERIFY(!m_chat->generating());
        QCOMPARE(lastTurn().figures.stop, QString("eos"));
        QCOMPARE(lastTurn().figures.tokS, 34.2);
        QCOMPARE(lastTurn().figures.hitRate, 67.5);
        QCOMPARE(lastTurn().tokens.size(), 4);
        m_store->flush();
        const QStringList files = QDir(folder()).entryList({"*.json"});
        QCOMPARE(files.size(), 1);
        QFile file(folder() + "/" + files[0]);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto stored =
            Conversation::fromJson(QJsonDocument::fromJson(file.readAll()).object());
        QVERIFY(stored.has_value());
        QCOMPARE(stored->turns.size(), 2);
        QCOMPARE(stored->turns[1].text, QString("Because of misses."));
        QCOMPARE(stored->turns[1].tokens[3].layer, lastTurn().tokens[3].layer);
        QCOMPARE(stored->turns[1].figures.bytesRead, lastTurn().figures.bytesRead);
        QCOMPARE(stored->title, QString("Why is it slow?"));
    }

    void typingContinuesWhileAReplyStreams() {
        ask("One");
        QTest::keyClicks(m_chat->composer()->editor(), "Two");
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Return);  // not sent yet
        QCOMPARE(m_chat->composer()->text(), QString("Two"));
        answer({"done"});
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Return);
        QCOMPARE(m_source->lastRequest.messages.size(), size_t(3));
    }

    void escapeStopsAndKeepsThePart() {
        ask("Tell me");
        m_source->feed(*m_source->lastRun, {"Once", " upon"});
        tick();
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Escape);
        QCOMPARE(m_source->cancels, 1);
        QVERIFY(m_source->lastRun->cancelled());
        m_source->finish(*m_source->lastRun, StopReason::Cancelled);
        tick();
        QCOMPARE(lastTurn().text, QString("Once upon"));
        QCOMPARE(lastTurn().figures.stop, QString("cancelled"));
    }

    void failureIsShownWithTryAgain() {
        ask("Tell me");
        m_source->lastRun->fail({Code::IoError, "layer_014.bin, byte 180043776: input/output error",
                                 "Check the disk, then verify hashes"});
        tick();
        QVERIFY(lastTurn().error.contains("byte 180043776"));
        auto* retry = lastWidget()->findChild<LinkButton*>();
        QVERIFY(retry->isVisible());
        QTest::mouseClick(retry, Qt::LeftButton);
        QVERIFY(m_chat->generating());
    }

    void stopStringIsCutFromTheText() {
        ask("List");
        m_source->feed(*m_source->lastRun, {"a", "b", "END"});
        tick();
        RequestResult result;
        result.stop = StopReason::StopString;
        result.tokens = {1, 2, 3};
        result.text = "ab";
        m_source->lastRun->finish(result);
        tick();
        QCOMPARE(lastTurn().text, QString("ab"));
        QCOMPARE(lastTurn().tokens.last().end, 2);
    }

    void fullContextOffersANewChatInsteadOfTheSameAgain() {
        ask("One more");
        m_source->lastRun->fail({Code::InvalidArgument, "the prompt has 9000 tokens"},
                                StopReason::ContextFull);
        tick();
        QVERIFY2(lastTurn().error.contains("fills the context"), qPrintable(lastTurn().error));
        QVERIFY(lastTurn().error.contains("new chat"));
        auto* link = lastWidget()->findChild<LinkButton*>();
        QCOMPARE(link->text(), QString("New chat"));
        const QString id = m_chat->conversation().id;
        QTest::mouseClick(link, Qt::LeftButton);
        QVERIFY(m_chat->conversation().id != id);
        QVERIFY(m_chat->conversation().isEmpty());
        QVERIFY(!m_chat->generating());
    }

    void openedChatShowsItsOwnTurns() {
        ask("First");
        answer({"One."});
        const QString id = m_chat->conversation().id;
        m_chat->newChat();
        ask("Second");
        answer({"Two."});
        m_store->flush();
        m_chat->openById(id);
        QTRY_COMPARE(m_chat->conversation().id, id);
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("One."));
    }

    void anotherModelBeginsAnotherChat() {
        ask("First");
        answer({"One."});
        QVERIFY(lastTurn().live);
        const QString id = m_chat->conversation().id;
        m_chat->setSource(m_source.get());  // the same model again: the chat goes on
        QCOMPARE(m_chat->conversation().id, id);
        QVERIFY(!lastTurn().live);  // but its times are of another session
        m_source->setModelName("Another");
        m_chat->setSource(m_source.get());
        QVERIFY(m_chat->conversation().isEmpty());
        QCOMPARE(m_chat->composer()->meter()->used(), 0);
    }

    void cursorGoesWithThePointerAndWithTheChat() {
        ask("First");
        answer({"One", " two", " three"});
        emit lastWidget()->tokenHovered(lastWidget()->turnIndex(), 1);
        QVERIFY(m_view->hasCursor());
        emit lastWidget()->tokenHovered(lastWidget()->turnIndex(), -1);
        QVERIFY(!m_view->hasCursor());
        emit lastWidget()->tokenHovered(lastWidget()->turnIndex(), 1);
        m_chat->newChat();
        QVERIFY(!m_view->hasCursor());
    }

    // ---- branches

    void regenerateMakesABranchAndArrowsSwitch() {
        ask("Pick");
        answer({"first"});
        m_chat->regenerate();
        QCOMPARE(m_source->lastRequest.sampling.seed, ChatSettings().sampling.seed + 1);
        answer({"second"});
        QCOMPARE(lastTurn().text, QString("second"));
        QCOMPARE(lastTurn().figures.drawn,
                 QString("seed %1").arg(m_source->lastRequest.sampling.seed));
        QCOMPARE(m_chat->conversation().turns.size(), 3);
        IconButton* left = nullptr;
        for (auto* button : lastWidget()->findChildren<IconButton*>())
            if (button->accessibleName() == "Earlier branch") left = button;
        QVERIFY(left && left->isVisible());
        QTest::mouseClick(left, Qt::LeftButton);
        QCOMPARE(lastTurn().text, QString("first"));
    }

    void editingAMessageBranchesTheConversation() {
        ask("Teh question");
        answer({"what?"});
        m_chat->view()->editLast();
        auto* user = qobject_cast<UserTurn*>(m_chat->view()->turns()[0]);
        QVERIFY(user->editing());
        auto* editor = user->findChild<QPlainTextEdit*>();
        editor->selectAll();
        QTest::keyClicks(editor, "The question");
        QTest::keyClick(editor, Qt::Key_Return);
        QVERIFY(m_chat->generating());
        QCOMPARE(QString::fromStdString(m_source->lastRequest.messages[0]["content"]),
                 QString("The question"));
        answer({"Ah."});
        QCOMPARE(m_chat->conversation().path().size(), 2);
        QCOMPARE(m_chat->conversation().turns.size(), 4);
    }

    void reasoningBegunByThePrompt() {
        ask("Q1");
        m_source->lastRun->beginInReasoning();
        m_source->feed(*m_source->lastRun, {"hm", ", well"});
        tick();
        QCOMPARE(lastWidget()->flow()->visibleText(), QString());
        answer({"</think>", "A1"});
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("A1"));
        const auto again = Conversation::fromJson(m_chat->conversation().toJson());
        QVERIFY(again && again->turns.last().inReasoning);
    }

    void systemPromptAndReasoningInMessages() {
        m_chat->view()->openSystemPrompt();
        QTest::keyClicks(m_chat->view()->systemFold()->editor(), "Be brief.");
        ask("Q1");
        answer({"<think>", "hm", "</think>", "A1"});
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("A1"));
        ask("Q2");
        const auto& messages = m_source->lastRequest.messages;
        QCOMPARE(messages.size(), size_t(4));
        QCOMPARE(messages[0]["role"].get<std::string>(), std::string("system"));
        QCOMPARE(messages[2]["content"].get<std::string>(), std::string("A1"));
    }

    // ---- tokens

    void hoveredTokenSaysWhatItWaitedFor() {
        ask("Go");
        m_source->feed(*m_source->lastRun, {"A", " fast", " one"}, 20);
        m_source->feed(*m_source->lastRun, {" slow"}, 44.6);
        m_source->feed(*m_source->lastRun, {" end"}, 20);
        m_source->finish(*m_source->lastRun);
        tick();
        TextFlow* flow = lastWidget()->flow();
        const QRect rect = flow->tokenRect(3);
        QVERIFY(rect.width() > 10);
        hover(flow, rect.center());
        QCOMPARE(flow->hoveredToken(), 3);
        const Readout::Content& content = m_chat->findChild<Readout*>()->content();
        QCOMPARE(content.token, QString("␣slow"));
        QCOMPARE(content.gap, QString("44.6 ms"));
        QVERIFY(content.slow);
        QCOMPARE(spansText(content.reason), QString("layer 14 waited 12.6 ms for expert 37"));
        QVERIFY(m_view->hasCursor());
        // The slow one alone is underlined.
        const QImage image = flow->grab().toImage();
        QCOMPARE(image.pixelColor(rect.center().x(), rect.bottom() + 1), tone(Tone::Warn));
        QVERIFY(image.pixelColor(flow->tokenRect(1).center().x(), rect.bottom() + 1) !=
                tone(Tone::Warn));
        flow->setFocus();
        QTest::keyClick(flow, Qt::Key_Left);
        QCOMPARE(flow->hoveredToken(), 2);
    }

    // Where every token is slow only those that stand out are marked: as it streams and at its end.
    void theSameTokensAreSlowWhileItStreamsAndAfter() {
        ask("Go");
        m_source->feed(*m_source->lastRun, {"A", " slow", " model", " that", " answers"}, 60);
        m_source->feed(*m_source->lastRun, {" late"}, 140);
        m_source->feed(*m_source->lastRun, {" and", " slowly"}, 60);
        tick();
        TextFlow* flow = lastWidget()->flow();
        const auto marks = [&] {
            const QImage image = flow->grab().toImage();
            QList<int> marked;
            for (int token = 1; token < 8; ++token) {
                const QRect rect = flow->tokenRect(token);
                if (image.pixelColor(rect.center().x(), rect.bottom() + 1) == tone(Tone::Warn))
                    marked << token;
            }
            return marked;
        };
        QCOMPARE(marks(), QList<int>{5});
        // The rate of the prompt is known at the end: what was found in the cache is not in it.
        const auto figures = [this] {
            const Conversation& c = m_chat->conversation();
            return c.turns[c.path().last()].figures;
        };
        QVERIFY(!std::isfinite(figures().promptTokS));
        m_source->finish(*m_source->lastRun);
        tick();
        QCOMPARE(figures().promptTokS, 148.0);
        QCOMPARE(marks(), QList<int>{5});
    }

    // ---- scrolling and finding

    void followsOnlyAtTheBottom() {
        ask("Long");
        QStringList lines;
        for (int i = 0; i < 120; ++i) lines << QString("line %1\n\n").arg(i);
        m_source->feed(*m_source->lastRun, lines);
        tick();
        QVERIFY(m_chat->view()->atBottom());
        m_chat->view()->verticalScrollBar()->setValue(100);
        m_source->feed(*m_source->lastRun, {"more\n\n", "and more"});
        tick();
        QCOMPARE(m_chat->view()->verticalScrollBar()->value(), 100);
        Button* pill = nullptr;
        for (auto* button : m_chat->findChildren<Button*>())
            if (button->text().startsWith("Newest")) pill = button;
        QVERIFY(pill && pill->isVisible());
        QCOMPARE(pill->text(), QString("Newest, 2 tokens below"));
        QTest::mouseClick(pill, Qt::LeftButton);
        QVERIFY(m_chat->view()->atBottom());
        QVERIFY(!pill->isVisible());
    }

    void pageKeysScrollFromTheMessageField() {
        ask("Long");
        QStringList lines;
        for (int i = 0; i < 120; ++i) lines << QString("line %1\n\n").arg(i);
        answer(lines);
        QScrollBar* bar = m_chat->view()->verticalScrollBar();
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_PageUp);
        QVERIFY(bar->value() < bar->maximum());
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_PageDown);
        QCOMPARE(bar->value(), bar->maximum());
    }

    void findMarksMatches() {
        ask("apple pie");
        answer({"An apple", " and an Apple."});
        m_chat->findBar()->open();
        QTest::keyClicks(m_chat->findBar()->input(), "apple");
        QCOMPARE(m_chat->view()->find("apple"), 3);
        QTest::keyClick(m_chat->findBar()->input(), Qt::Key_Escape);
        QVERIFY(!m_chat->findBar()->isVisible());
    }

    void copyGivesPlainText() {
        ask("x");
        answer({"Some **bold** text"});
        TextFlow* flow = lastWidget()->flow();
        flow->selectAll();
        QCOMPARE(flow->selectedText(), QString("Some bold text"));
        flow->setFocus();
        QTest::keyClick(flow, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QApplication::clipboard()->text(), QString("Some bold text"));
    }

    // ---- history

    void historyListsSearchesRenamesDeletesAndRestores() {
        ask("About apples");
        answer({"ok"});
        m_chat->newChat();
        ask("About pears");
        answer({"fine"});
        ChatList list(m_store.get());
        QCOMPARE(list.rows()->rows().size(), 2);
        list.search()->setText("apples");
        QCOMPARE(list.rows()->rows().size(), 1);
        const QString apples = list.rows()->rows()[0].id;
        m_store->rename(apples, "Fruit");
        m_store->flush();
        QTRY_COMPARE(list.rows()->rows().size(), 1);
        QCOMPARE(list.rows()->rows()[0].title, QString("Fruit"));
        m_chat->openById(apples);
        QTRY_COMPARE(m_chat->conversation().id, apples);
        QTRY_COMPARE(m_chat->conversation().title, QString("Fruit"));
        m_chat->deleteChat(m_chat->conversation().id);
        m_store->flush();
        QVERIFY(list.rows()->rows().isEmpty());
        QCOMPARE(QDir(folder()).entryList({"*.json"}).size(), 1);
        QVERIFY(m_store->restore());  // also before the deleted chat has been read
        QTRY_COMPARE(QDir(folder()).entryList({"*.json"}).size(), 2);
        // A new program reads the same list.
        ChatStore again(folder());
        QSignalSpy listed(&again, &ChatStore::listed);
        again.list();
        QTRY_COMPARE(listed.size(), 1);
        QCOMPARE(again.summaries().size(), 2);
    }

    void brokenFilesAreLeftOut() {
        QDir().mkpath(folder());
        for (const QByteArray& content :
             {QByteArray(""), QByteArray("{"), QByteArray("[]"),
              QByteArray(R"({"schema":1,"id":"x","roots":[5],"turns":[]})"),
              QByteArray(
                  R"({"schema":1,"id":"x","roots":[0],"turns":[{"role":"user","children":[9]}]})"),
              QByteArray(R"({"schema":9,"id":"x","roots":[],"turns":[]})")}) {
            QFile file(folder() + QString("/%1.json").arg(content.size()));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(content);
        }
        QSignalSpy listed(m_store.get(), &ChatStore::listed);
        m_store->list();
        QTRY_COMPARE(listed.size(), 1);
        QVERIFY(m_store->summaries().isEmpty());
    }

    void exportAndImport() {
        ask("Keep this");
        answer({"Kept."});
        const QString json = m_sandbox->path("chat.json"), md = m_sandbox->path("chat.md");
        QVERIFY(exportConversation(m_chat->conversation(), json).ok());
        QVERIFY(exportConversation(m_chat->conversation(), md).ok());
        QFile file(md);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QVERIFY(file.readAll().contains("## You\n\nKeep this"));
        const QString id = m_chat->conversation().id;
        const auto imported = importConversation(json);
        QVERIFY(imported.ok());
        QVERIFY(imported->id != id);
        QCOMPARE(imported->turns[imported->path().last()].text, QString("Kept."));
        const Status notJson = importConversation(md).status();
        QVERIFY2(notJson.text().find("chat.md: byte ") != std::string::npos,
                 notJson.text().c_str());
    }

    // A disk that is full, as a file may not grow any more: what was saved stays whole.
    void fullDiskKeepsWhatWasSavedAndIsReported() {
        ask("First");
        answer({"One."});
        m_store->flush();
        const auto content = [&] {
            QFile file(folder() + "/" + QDir(folder()).entryList({"*.json"}).value(0));
            return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
        };
        const QByteArray before = content();
        QVERIFY(before.contains("One."));
        QSignalSpy failed(m_store.get(), &ChatStore::failed);
        std::signal(SIGXFSZ, SIG_IGN);
        rlimit whole{};
        getrlimit(RLIMIT_FSIZE, &whole);
        const rlimit tiny{64, whole.rlim_max};
        setrlimit(RLIMIT_FSIZE, &tiny);
        m_chat->rename(m_chat->conversation().id, "Second");
        m_store->flush();
        const Status exported =
            exportConversation(m_chat->conversation(), m_sandbox->path("full.json"));
        setrlimit(RLIMIT_FSIZE, &whole);
        QVERIFY(exported.text().find("full.json") != std::string::npos);
        QVERIFY(!QFile::exists(m_sandbox->path("full.json")));
        QTRY_VERIFY(!failed.isEmpty());
        QVERIFY(failed[0][0].toString().contains(folder()));
        QCOMPARE(content(), before);
        QCOMPARE(QDir(folder()).entryList(QDir::Files).size(), 1);  // nothing half-written is left
    }

    void withoutAModelNothingIsSent() {
        m_source->setLoaded(false);
        m_chat->setSource(m_source.get());
        ask("Hello?");
        QVERIFY(!m_chat->generating());
        QCOMPARE(m_chat->composer()->text(), QString("Hello?"));  // what was typed stays
    }

    void samplingIsKept() {
        m_chat->openSampling();
        SliderRow* temperature = m_chat->samplingPanel()->temperature();
        temperature->field()->setFocus();
        temperature->field()->selectAll();
        QTest::keyClicks(temperature->field(), "0");
        QTest::keyClick(temperature->field(), Qt::Key_Return);
        QVERIFY(m_chat->composer()->samplingButton()->text().startsWith("greedy"));
        QCOMPARE(ChatSettings::load({}).sampling.temperature, 0.0f);
        ask("x");
        QCOMPARE(m_source->lastRequest.sampling.temperature, 0.0f);
        ChatSettings().store({});
    }

    // What nobody has set is the model's own, with the next model too.
    void samplingFollowsTheModel() {
        ChatSettings model;
        model.sampling.temperature = 0.3f;
        model.sampling.topK = 20;
        ChatSettings changed = model;
        changed.sampling.topK = 5;
        changed.store(model);
        QCOMPARE(ChatSettings::load(model).sampling.temperature, 0.3f);
        QCOMPARE(ChatSettings::load(model).sampling.topK, 5);
        QCOMPARE(ChatSettings::load({}).sampling.temperature, chatSampling({}).temperature);
        QCOMPARE(ChatSettings::load({}).sampling.topK, 5);
        model.store(model);
        QCOMPARE(ChatSettings::load(model).sampling.topK, 20);
    }

    void templateArgumentsReachTheRequest() {
        m_chat->openSampling();
        SamplingPanel* panel = m_chat->samplingPanel();
        const auto type = [&](const char* text) {
            panel->templateArgs()->setText(text);
            QTest::keyClick(panel->templateArgs(), Qt::Key_Return);
        };
        type("enable_thinking=false | effort = \"low\"");
        ask("x");
        QCOMPARE(m_source->lastRequest.chat.templateArgs.dump(),
                 std::string("{\"enable_thinking\":false,\"effort\":\"low\"}"));
        QVERIFY(m_chat->samplingPanel()->settings().options().contains(
            "--template-arg enable_thinking=false"));
        // What is not sound is said, and changes nothing.
        type("enable_thinking=flase");
        QVERIFY(!panel->templateNote()->isHidden());
        QCOMPARE(panel->settings().templateArgs.size(), 2);
        type("messages=[]");
        QVERIFY(!panel->templateNote()->isHidden());
        type("");
        QVERIFY(panel->templateNote()->isHidden());
        QVERIFY(panel->settings().templateVariables().is_null());
        ChatSettings().store({});
    }
};

QTEST_MAIN(TestChat)
#include "test_workbench_chat.moc"
