// SPDX-License-Identifier: GPL-3.0-or-later
// Replies that are not watched, that are cut off, that do not fit; and the keys that send and stop.
#include <QClipboard>
#include <QDir>
#include <QInputMethodEvent>
#include <QJsonDocument>
#include <QScrollBar>

#include "app/workbench/backend/context_fit.h"
#include "app/workbench/chat/chat_list.h"
#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/window/main_window.h"
#include "chat_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestChatReplies : public QObject, ChatRig {
    Q_OBJECT

    std::optional<Conversation> stored(const QString& id) {
        m_store->flush();
        QFile file(folder() + "/" + id + ".json");
        if (!file.open(QIODevice::ReadOnly)) return std::nullopt;
        return Conversation::fromJson(QJsonDocument::fromJson(file.readAll()).object());
    }
    LinkButton* link(const QString& text) {
        for (auto* button : m_chat->findChildren<LinkButton*>())
            if (button->isVisible() && button->text() == text) return button;
        return nullptr;
    }
    void write(const QString& text) {
        m_chat->composer()->setText(text);
        QTRY_VERIFY(m_chat->composer()->meter()->used() >= int(text.size() / 4));
    }

private slots:
    void init() {
        openRig();
        ChatSettings().store({});
    }
    void cleanup() { closeRig(); }

    // ---- another chat is shown

    void anotherChatDoesNotEndTheReply() {
        ChatList list(m_store.get());
        connect(m_chat, &ChatPanel::repliesChanged, &list, &ChatList::setReplying);
        ask("First");
        const QString first = m_chat->conversation().id;
        const std::shared_ptr<ChatRun> run = m_source->lastRun;
        m_source->feed(*run, {"Once", " upon"});
        tick();
        m_chat->newChat();
        QVERIFY(!m_chat->generating());
        QCOMPARE(m_source->cancels, 0);
        QCOMPARE(m_chat->replying(), QSet<QString>{first});
        m_source->feed(*run, {" a"});
        tick();
        ask("Second");  // both at once
        QCOMPARE(m_chat->replying().size(), 2);
        answer({"Two."});
        m_chat->openById(first);  // seen again, still growing
        QVERIFY(m_chat->generating());
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("Once upon a"));
        m_chat->newChat();
        m_source->feed(*run, {" time."});
        m_source->finish(*run);
        tick();
        QVERIFY(m_chat->replying().isEmpty());
        const auto chat = stored(first);
        QVERIFY(chat.has_value());
        QCOMPARE(chat->turns[1].text, QString("Once upon a time."));
        QCOMPARE(chat->turns[1].figures.stop, QString("eos"));
    }

    // Before it is known how it ends, and when the window goes, the file says that it was cut off.
    void aSavedReplyAlwaysSaysWhyItEnded() {
        ask("First");
        const QString id = m_chat->conversation().id;
        m_source->feed(*m_source->lastRun, {"Once", " upon"});
        tick();
        m_store->flush();
        QCOMPARE(stored(id)->turns[1].figures.stop, QString(kInterrupted));
        m_chat->newChat();
        ask("Second");
        const QString second = m_chat->conversation().id;
        m_source->feed(*m_source->lastRun, {"Two"});
        m_chat->endReplies();
        QVERIFY(m_chat->replying().isEmpty());
        QCOMPARE(stored(id)->turns[1].figures.stop, QString(kInterrupted));
        QCOMPARE(stored(id)->turns[1].text, QString("Once upon"));
        QCOMPARE(stored(second)->turns[1].text, QString("Two"));
        QCOMPARE(stored(second)->turns[1].figures.stop, QString(kInterrupted));
    }

    void closingTheWindowAsksWhileAReplyStreams() {
        MainWindow window(m_source.get(), folder());
        window.show();
        ChatPanel* chat = window.chatPage()->chat();
        chat->send("Go");
        QVERIFY(chat->generating());
        chat->newChat();  // also one that is not seen
        QVERIFY(!chat->replying().isEmpty());
        window.close();
        QVERIFY(window.isVisible());
        QCOMPARE(m_source->cancels, 0);
        const Message asked = window.messages()->all().back();
        QVERIFY2(asked.detail.contains("the reply that is being written"),
                 qPrintable(asked.detail));
        asked.action();
        QTRY_VERIFY(!window.isVisible());
        QCOMPARE(m_source->cancels, 1);
        window.show();
        window.close();  // nothing to ask about
        QTRY_VERIFY(!window.isVisible());
    }

    void aDeletedChatEndsItsReply() {
        ask("First");
        const QString id = m_chat->conversation().id;
        m_chat->newChat();
        m_chat->deleteChat(id);
        QCOMPARE(m_source->cancels, 1);
        m_source->feed(*m_source->lastRun, {"late"});
        tick();
        m_store->flush();
        QVERIFY(!QFile::exists(folder() + "/" + id + ".json"));
    }

    // The data of the plots is still there: so are the session time and the way to them.
    void aChatOfThisSessionKeepsItsTimesInThePlots() {
        ask("First");
        answer({"One."});
        const QString id = m_chat->conversation().id;
        m_chat->newChat();
        ask("Second");
        answer({"Two."});
        m_store->flush();
        m_chat->openById(id);
        QTRY_COMPARE(m_chat->conversation().id, id);
        QVERIFY(lastTurn().live);
        m_chat->setSource(m_source.get());  // a new session: another clock
        QVERIFY(!lastTurn().live);
    }

    // ---- cut off, and going on

    void aReplyThatWasCutOffContinues() {
        ask("Tell me");
        answer({"Once", " upon"}, StopReason::MaxTokens);
        QCOMPARE(lastTurn().figures.limit, ChatSettings().maxTokens);
        LinkButton* go = link("Continue");
        QVERIFY(go);
        QTest::mouseClick(go, Qt::LeftButton);
        QVERIFY(m_chat->generating());
        QCOMPARE(QString::fromStdString(m_source->lastRequest.replySoFar), QString("Once upon"));
        QCOMPARE(m_source->lastRequest.messages.size(), size_t(1));
        answer({" a", " time."});
        QCOMPARE(lastTurn().text, QString("Once upon a time."));
        QCOMPARE(lastTurn().tokens.size(), 4);
        QCOMPARE(lastTurn().figures.tokens, 4);
        QCOMPARE(lastTurn().figures.promptTokens, 148);
        QCOMPARE(lastTurn().figures.cachedTokens, 119);
        QCOMPARE(lastTurn().figures.stop, QString("eos"));
        QCOMPARE(m_chat->conversation().turns.size(), 2);
        QVERIFY(!link("Continue"));
    }

    // ---- the context

    void theDraftIsCountedBeforeItIsSent() {
        m_source->setContextLength(1024);
        m_chat->setSource(m_source.get());
        const QString line = QString(59, 'x') + "\n";
        write(line.repeated(973) + QString(60, 'x'));
        QCOMPARE(m_chat->composer()->meter()->used(), 14610);
        QVERIFY2(m_chat->composer()->notice().startsWith(
                     "This message alone needs 14,610 tokens of 1,024."),
                 qPrintable(m_chat->composer()->notice()));
        QVERIFY(!m_chat->composer()->sendButton()->isEnabled());
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Return);
        QVERIFY(m_chat->conversation().isEmpty());
        QCOMPARE(m_chat->composer()->text().size(), 58440);
        m_chat->composer()->setText(line.repeated(1200));
        QTRY_VERIFY(
            m_chat->composer()->notice().contains("needs more than 15,000 tokens of 1,024"));
        m_chat->composer()->setText("short");
        QTRY_VERIFY(m_chat->composer()->sendButton()->isEnabled());
        QCOMPARE(m_chat->composer()->notice(), QString());
    }

    // Also when Enter comes before the count: pasted and sent at once.
    void aFullChatMakesNoDeadTurns() {
        m_source->setContextLength(160);
        m_chat->setSource(m_source.get());
        ask("First");
        answer({"One", " two", " three"});  // 148 + 3 of 160
        const qsizetype turns = m_chat->conversation().turns.size();
        for (int i = 0; i < 3; ++i) {
            m_chat->composer()->setText(QString(60, 'y'));
            QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Return);
        }
        QCOMPARE(m_chat->conversation().turns.size(), turns);
        QVERIFY(m_chat->composer()->notice().contains("needs 166 tokens of 160"));
        QVERIFY(link("New chat"));
        QTest::mouseClick(link("New chat"), Qt::LeftButton);
        QVERIFY(m_chat->conversation().isEmpty());
        QCOMPARE(m_chat->composer()->text(), QString(60, 'y'));  // the draft comes along
    }

    void theChosenOverflowIsRequestedAndReported() {
        ChatSettings settings;
        settings.overflow = Overflow::DropOldest;
        settings.store({});
        closeRig();
        openRig();
        m_source->setContextLength(160);
        m_chat->setSource(m_source.get());
        ask("First");
        answer({"One", " two", " three"});
        write(QString(60, 'y'));
        QTRY_VERIFY(m_chat->composer()->notice().contains("oldest turns will be omitted"));
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Return);
        QVERIFY(m_chat->generating());
        QCOMPARE(m_source->lastRequest.overflow, Overflow::DropOldest);
        m_source->lastRun->setLeftOut(2);
        answer({"Two"});
        QCOMPARE(lastTurn().figures.leftOut, 2);
        const auto again = Conversation::fromJson(m_chat->conversation().toJson());
        QCOMPARE(again->turns.last().figures.leftOut, 2);
    }

    void turnsAreLeftOutAsChosen() {
        nlohmann::ordered_json chat = nlohmann::ordered_json::array();
        const auto add = [&](const char* role, const std::string& text) {
            chat.push_back({{"role", role}, {"content", text}});
        };
        add("system", "s");
        for (const char* name : {"a", "b", "c"}) {
            add("user", name + std::string("?"));
            add("assistant", name + std::string("!"));
        }
        add("user", "d?");
        std::string sent;
        const EncodeChat encode =
            [&](const nlohmann::ordered_json& messages) -> Result<std::vector<int32_t>> {
            sent.clear();
            for (const auto& message : messages) sent += message["content"].get<std::string>();
            return std::vector<int32_t>(messages.size() * 10);
        };
        const auto fit = [&](Overflow overflow, size_t room) {
            const auto fitted = fitChat(chat, overflow, room, encode);
            return fitted ? std::pair(int(fitted->prompt.size()), fitted->leftOut)
                          : std::pair(-1, -1);
        };
        QCOMPARE(fit(Overflow::Stop, 40), std::pair(80, 0));
        QCOMPARE(fit(Overflow::DropOldest, 80), std::pair(80, 0));
        QCOMPARE(fit(Overflow::DropOldest, 60), std::pair(60, 2));
        QCOMPARE(fit(Overflow::DropOldest, 59), std::pair(40, 4));
        QCOMPARE(fit(Overflow::DropOldest, 5), std::pair(20, 6));
        QCOMPARE(sent, std::string("sd?"));  // system prompt and last message always stay
        QCOMPARE(fit(Overflow::CutMiddle, 40), std::pair(40, 4));
        QCOMPARE(fit(Overflow::CutMiddle, 20), std::pair(20, 6));
        fit(Overflow::CutMiddle, 60);
        QVERIFY2(sent == "sa?a!c?c!d?" || sent == "sa?a!d?", sent.c_str());
    }

    // ---- keys

    void enterThatConfirmsACandidateDoesNotSend() {
        MessageEdit* edit = m_chat->composer()->editor();
        edit->setFocus();
        QInputMethodEvent typing(u"にほ"_qs, {});
        QApplication::sendEvent(edit, &typing);
        QTest::keyClick(edit, Qt::Key_Return);
        QVERIFY(m_chat->conversation().isEmpty());
        QTest::keyClick(edit, Qt::Key_Escape);  // nor does Esc, which drops it, act on the chat
        QInputMethodEvent commit;
        commit.setCommitString(u"日本"_qs);
        QApplication::sendEvent(edit, &commit);
        QCOMPARE(m_chat->composer()->text(), u"日本"_qs);
        QVERIFY(m_chat->conversation().isEmpty());
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(m_chat->conversation().turns[0].text, u"日本"_qs);
        answer({"ok"});
        m_chat->view()->editLast();
        auto* editor = m_chat->view()->userTurn(0)->findChild<MessageEdit*>();
        QApplication::sendEvent(editor, &typing);
        QTest::keyClick(editor, Qt::Key_Return);
        QVERIFY(m_chat->view()->userTurn(0)->editing());
    }

    void escapeClosesWhatIsOpenBeforeItStops() {
        ask("Go");
        m_chat->findBar()->open();
        m_chat->composer()->focusEditor();
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Escape);
        QCOMPARE(m_source->cancels, 0);
        QVERIFY(!m_chat->findBar()->isVisible());
        m_chat->openSampling();
        m_chat->composer()->focusEditor();
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Escape);
        QCOMPARE(m_source->cancels, 0);
        QTest::keyClick(m_chat->composer()->editor(), Qt::Key_Escape);
        QCOMPARE(m_source->cancels, 1);
    }

    // ---- long chats

    // Nothing but the last turn is laid out while it grows, wherever one reads.
    void onlyTheLastOfManyTurnsIsLaidOutAgain() {
        Conversation chat = Conversation::create();
        for (int i = 0, at = -1; i < 400; ++i) {
            Turn turn;
            turn.role = i % 2 ? Turn::Role::Model : Turn::Role::User;
            turn.text = QString("turn %1, some words").arg(i);
            turn.figures.stop = "eos";
            at = chat.append(at, turn);
        }
        m_chat->openConversation(chat);
        ask("More");
        m_source->feed(*m_source->lastRun, {"One"});
        tick();
        m_chat->view()->verticalScrollBar()->setValue(500);
        struct Counter : QObject {
            int moved = 0;
            bool eventFilter(QObject*, QEvent* event) override {
                moved += event->type() == QEvent::Move || event->type() == QEvent::Resize ||
                         event->type() == QEvent::UpdateRequest;
                return false;
            }
        } counter;
        for (TurnWidget* turn : m_chat->view()->turns())
            if (turn != m_chat->view()->turns().back()) turn->installEventFilter(&counter);
        m_source->feed(*m_source->lastRun, {"\n\nTwo", "\n\nthree\n\n", "four"});
        tick();
        QCOMPARE(counter.moved, 0);
        QCOMPARE(m_chat->view()->verticalScrollBar()->value(), 500);
        QCOMPARE(lastWidget()->flow()->visibleText(), QString("One\nTwo\nthree\nfour"));
        QVERIFY(lastWidget()->flow()->height() > 60);
        m_source->finish(*m_source->lastRun);
        tick();
        QCOMPARE(m_chat->view()->verticalScrollBar()->value(), 500);
    }

    // What is said of a finished reply does not depend on later ones.
    void aFinishedReplyKeepsItsSlowTokens() {
        ask("Go");
        m_source->feed(*m_source->lastRun, {"A", " slow", " model", " that", " answers"}, 60);
        m_source->feed(*m_source->lastRun, {" late"}, 100);
        m_source->finish(*m_source->lastRun);
        tick();
        TextFlow* flow = lastWidget()->flow();
        const auto marked = [&] {
            const QRect rect = flow->tokenRect(5);
            return flow->grab().toImage().pixelColor(rect.center().x(), rect.bottom() + 1) ==
                   tone(Tone::Warn);
        };
        QVERIFY(marked());
        ask("Again");
        m_source->feed(*m_source->lastRun, {"a", " b", " c", " d", " e", " f", " g", " h"}, 200);
        m_source->finish(*m_source->lastRun);
        tick();
        QVERIFY(marked());
    }

    void switchingABranchKeepsThePosition() {
        ask("Pick");
        QStringList lines;
        for (int i = 0; i < 100; ++i) lines << QString("line %1\n\n").arg(i);
        answer(lines);
        m_chat->regenerate();
        answer(lines);
        m_chat->view()->verticalScrollBar()->setValue(0);
        const int y = lastWidget()->mapTo(m_window.get(), QPoint()).y();
        IconButton* left = nullptr;
        for (auto* button : lastWidget()->findChildren<IconButton*>())
            if (button->accessibleName() == "Earlier branch") left = button;
        QTest::mouseClick(left, Qt::LeftButton);
        QCOMPARE(lastWidget()->mapTo(m_window.get(), QPoint()).y(), y);
    }
};

QTEST_MAIN(TestChatReplies)
#include "test_chat_replies.moc"
