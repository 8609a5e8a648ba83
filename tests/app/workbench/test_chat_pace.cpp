// SPDX-License-Identifier: GPL-3.0-or-later
// What a long chat costs while a reply comes: what is written to disk, and what a key waits for.
// Times are printed, not judged.
#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <algorithm>

#include "chat_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestChatPace : public QObject, ChatRig {
    Q_OBJECT

    static Conversation longChat(int questions) {
        Conversation chat = Conversation::create();
        chat.title = "Long";
        int last = -1;
        for (int i = 0; i < questions; ++i) {
            Turn user;
            user.text = QString("Question %1?").arg(i);
            last = chat.append(last, user);
            Turn model;
            model.role = Turn::Role::Model;
            model.model = "Wren-14B-A1.3B";
            for (int w = 0; w < 60; ++w) {
                model.text += QString("word%1 ").arg(w);
                TokenMark mark;
                mark.end = int(model.text.size());
                mark.gapMs = 25;
                model.tokens << mark;
            }
            model.figures.stop = "eos";
            model.figures.tokens = 60;
            last = chat.append(last, model);
        }
        return chat;
    }
    QString file(const char* ending) { return folder() + "/" + m_chat->conversation().id + ending; }
    static QByteArray content(const QString& path) {
        QFile f(path);
        return f.open(QIODevice::ReadOnly) ? f.readAll() : QByteArray();
    }

    // From a key to the field's picture with it.
    class Painted : public QObject {
    public:
        bool seen = false;
        bool eventFilter(QObject*, QEvent* event) override {
            seen |= event->type() == QEvent::Paint;
            return false;
        }
    };
    double keyToPaint(QWidget* field) {
        Painted painted;
        auto* edit = m_chat->composer()->editor();
        edit->viewport()->installEventFilter(&painted);
        QElapsedTimer timer;
        timer.start();
        QKeyEvent press(QEvent::KeyPress, Qt::Key_X, {}, "x");
        QCoreApplication::sendEvent(field, &press);
        while (!painted.seen && timer.elapsed() < 5000) QCoreApplication::processEvents();
        return double(timer.nsecsElapsed()) / 1e6;
    }
    static void print(const char* what, std::vector<double> ms) {
        std::sort(ms.begin(), ms.end());
        qInfo("%s: median %.2f ms, slowest %.2f ms of %zu", what, ms[ms.size() / 2], ms.back(),
              ms.size());
    }

private slots:
    void init() {
        openRig();
        ChatSettings().store({});
    }
    void cleanup() { closeRig(); }

    // A reply that comes is written alone: the file of the chat stays as it was.
    void aLongChatIsNotWrittenAgainForEveryStretchOfAReply() {
        m_chat->openConversation(longChat(40));
        m_chat->send("Go on");
        m_store->flush();
        const QByteArray whole = content(file(".json"));
        QVERIFY(whole.contains("Go on"));
        m_source->feed(*m_source->lastRun, {"One ", "two"});
        tick();
        m_store->flush();
        QCOMPARE(content(file(".json")), whole);
        const QByteArray reply = content(file(".reply"));
        QVERIFY(reply.contains("One two"));
        QVERIFY2(reply.size() < whole.size() / 20, qPrintable(QString::number(reply.size())));
        m_source->finish(*m_source->lastRun);
        tick();
        m_store->flush();
        QVERIFY(content(file(".json")).contains("One two"));
        QVERIFY(!QFile::exists(file(".reply")));
    }

    void whatAKilledProgramHadOfAReplyComesBack() {
        m_chat->openConversation(longChat(2));
        m_chat->send("Go on");
        m_source->feed(*m_source->lastRun, {"One ", "two"});
        tick();
        m_store->flush();
        // As another program finds the folder.
        std::optional<Conversation> found;
        ChatStore other(folder());
        other.load(m_chat->conversation().id,
                   [&](std::optional<Conversation> c) { found = std::move(c); });
        QTRY_VERIFY(found.has_value());
        const Turn& turn = found->turns[found->path().last()];
        QCOMPARE(turn.text, QString("One two"));
        QCOMPARE(turn.tokens.size(), 2);
        QCOMPARE(turn.figures.stop, QString(kInterrupted));
        // A stale one, and one that is damaged, change nothing.
        const QByteArray stale = content(file(".reply"));
        m_source->feed(*m_source->lastRun, {" three"});
        m_source->finish(*m_source->lastRun);
        tick();
        m_store->flush();
        for (const QByteArray& bytes :
             {stale, QByteArray("{\"index\": 99}"), QByteArray("{"), QByteArray()}) {
            QFile f(file(".reply"));
            QVERIFY(f.open(QIODevice::WriteOnly) && f.write(bytes) == bytes.size());
            f.close();
            found.reset();
            other.load(m_chat->conversation().id,
                       [&](std::optional<Conversation> c) { found = std::move(c); });
            QTRY_VERIFY(found.has_value());
            QCOMPARE(found->turns[found->path().last()].text, QString("One two three"));
        }
        m_store->remove(m_chat->conversation().id);
        m_store->flush();
        QVERIFY(QDir(folder()).isEmpty());
    }

    void typingWhileALongChatStreams() {
        m_chat->openConversation(longChat(200));
        m_chat->send("Go on");
        auto* edit = m_chat->composer()->editor();
        edit->setFocus();
        std::vector<double> keys, ticks;
        for (int i = 0; i < 60; ++i) {
            m_source->feed(*m_source->lastRun, {"word "});
            QElapsedTimer timer;
            timer.start();
            tick();
            ticks.push_back(double(timer.nsecsElapsed()) / 1e6);
            keys.push_back(keyToPaint(edit));
        }
        QCOMPARE(edit->toPlainText(), QString(60, 'x'));
        print("a token into a chat of 400 turns", ticks);
        print("a key until it is painted, meanwhile", keys);
    }

    void typingIntoAVeryLongLine() {
        auto* edit = m_chat->composer()->editor();
        edit->setFocus();
        QString line;
        while (line.size() < 20 << 10) line += "word ";
        m_chat->composer()->setText(line);
        QCoreApplication::processEvents();
        std::vector<double> keys;
        for (int i = 0; i < 40; ++i) keys.push_back(keyToPaint(edit));
        QCOMPARE(edit->toPlainText(), line + QString(40, 'x'));
        print("a key at the end of a line of 20 kB until it is painted", keys);
        edit->moveCursor(QTextCursor::Start);
        keys.clear();
        for (int i = 0; i < 40; ++i) keys.push_back(keyToPaint(edit));
        print("a key at its begin", keys);
    }
};

QTEST_MAIN(TestChatPace)
#include "test_chat_pace.moc"
