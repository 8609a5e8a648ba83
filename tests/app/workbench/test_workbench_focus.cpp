// SPDX-License-Identifier: GPL-3.0-or-later
// Where the keyboard goes: Tab, F6, and what happens when the widget with the focus goes away.
#include <QMimeData>
#include <QPlainTextEdit>

#include "window_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestFocus : public QObject, WindowRig {
    Q_OBJECT

    ChatPanel* chat() { return m_window->chatPage()->chat(); }
    QPlainTextEdit* editor() { return chat()->composer()->editor(); }
    IconButton* button(QWidget* in, const QString& name) {
        for (auto* candidate : in->findChildren<IconButton*>())
            if (candidate->accessibleName() == name && candidate->isVisible()) return candidate;
        return nullptr;
    }
    // A chat with a user turn of two replies.
    void makeBranches() {
        chat()->newChat();
        for (int i = 0; i < 2; ++i) {
            if (i == 0)
                chat()->send("What is an expert?");
            else
                chat()->regenerate();
            m_source->feed(*m_source->lastRun, {"One", " answer."});
            m_source->finish(*m_source->lastRun);
            tick();
        }
    }

private slots:
    void init() { openRig(); }
    void cleanup() { closeRig(); }

    void theCaretIsInTheComposerWhenTheModelHasLoaded() {
        auto* other = new QWidget;
        auto* field = new QLineEdit(other);
        m_window->addPage({"start", "", "", other, false, {}, [field] { return field; }});
        m_source->setLoaded(false);
        m_window->showPage("start");
        QCOMPARE(QApplication::focusWidget(), field);
        m_source->setLoaded(true);
        m_window->showPage("chat");
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
        QTest::keyClicks(QApplication::focusWidget(), "What is an expert?");
        QCOMPARE(editor()->toPlainText(), QString("What is an expert?"));
    }

    void aResizeOverAThresholdLeavesTheFocusWhereItWas() {
        editor()->setFocus();
        QTest::keyClicks(editor(), "half a thou");
        for (const int width : {1270, 990, 1100, 1300, 2000, 1440, 800}) {
            m_window->resize(width, 700);
            tick();
            QVERIFY2(QApplication::focusWidget() == editor(),
                     qPrintable(QString::number(width) + " " +
                                QApplication::focusWidget()->metaObject()->className()));
        }
        QTest::keyClicks(QApplication::focusWidget(), "ght");
        QCOMPARE(editor()->toPlainText(), QString("half a thought"));
        // A place that only another layout has: the composer takes over.
        m_window->resize(1440, 700);
        tick();
        m_window->chatPage()->knobs()->control(KnobId::ExpertCacheSize)->focusControl();
        m_window->resize(1100, 700);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
    }

    void sendingAnEditedMessageLeavesTheCaretInTheComposer() {
        makeBranches();
        chat()->view()->editLast();
        QWidget* edit = QApplication::focusWidget();
        QVERIFY(qobject_cast<QPlainTextEdit*>(edit) && edit != editor());
        QTest::keyClicks(edit, "Again: ");
        QTest::keyClick(edit, Qt::Key_Return);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
        m_source->finish(*m_source->lastRun);
        tick();
        chat()->view()->editLast();
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
    }

    void theArrowsBetweenBranchesKeepTheFocus() {
        makeBranches();
        editor()->setFocus();
        IconButton* left = button(chat()->view(), "Earlier branch");
        QVERIFY(left);
        QTest::mouseClick(left, Qt::LeftButton);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());  // the mouse leaves the caret alone
        IconButton* right = button(chat()->view(), "Later branch");
        right->setFocus(Qt::TabFocusReason);
        QTest::keyClick(right, Qt::Key_Space);
        tick();
        auto* now = qobject_cast<IconButton*>(QApplication::focusWidget());
        QVERIFY(now);
        QCOMPARE(now->accessibleName(), QString("Earlier branch"));  // this is the last one
        QVERIFY(button(chat()->view(), "Earlier branch") == now);
    }

    // Any widget with the focus may go: what one types next lands in the message, not in a menu.
    void whateverLosesTheFocusTheComposerHasItNext() {
        int tried = 0;
        for (int i = 0; i < 60; ++i) {
            const QVector<QWidget*> stops = readingOrder(m_window->centralWidget());
            if (i >= stops.size()) break;
            QWidget* stop = stops[i];
            if (stop == editor() || m_window->topBar()->isAncestorOf(stop)) continue;
            stop->setFocus();
            stop->hide();
            tick(1);
            QVERIFY2(QApplication::focusWidget() == editor(), stop->metaObject()->className());
            stop->show();
            stop->setFocus();
            stop->setEnabled(false);
            tick(1);
            QVERIFY2(QApplication::focusWidget() == editor(), stop->metaObject()->className());
            stop->setEnabled(true);
            ++tried;
        }
        QVERIFY(tried > 30);
        auto* gone = new QLineEdit(m_window->chatPage());
        gone->show();
        gone->setFocus();
        delete gone;
        tick(1);
        QCOMPARE(QApplication::focusWidget(), editor());
    }

    void stopAndTheMessagesOwnButtonsGiveTheFocusBack() {
        chat()->send("Tell me a story");
        tick();
        Button* stop = chat()->composer()->stopButton();
        stop->setFocus();
        QTest::keyClick(stop, Qt::Key_Space);
        m_source->finish(*m_source->lastRun, StopReason::Cancelled);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
        m_window->messages()->error("It broke.", "file, byte 3");
        tick();
        IconButton* close = button(m_window.get(), "Close message");
        QVERIFY(close);
        close->setFocus();
        QTest::keyClick(close, Qt::Key_Space);
        tick();
        QCOMPARE(QApplication::focusWidget(), editor());
    }

    void tabGoesThroughTheWindowAsOneReadsIt() {
        editor()->setFocus();
        QVector<QWidget*> seen;
        for (int i = 0; i < 200; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            QWidget* now = QApplication::focusWidget();
            QVERIFY(now);
            if (seen.contains(now)) break;
            seen << now;
        }
        QVERIFY(seen.size() > 40);
        QCOMPARE(seen.last(), static_cast<QWidget*>(editor()));  // once round
        const auto areaOf = [this](QWidget* widget) {
            ChatPage* page = m_window->chatPage();
            if (m_window->topBar()->isAncestorOf(widget)) return 0;
            if (page->chat()->isAncestorOf(widget)) return 1;
            if (page->plots()->isAncestorOf(widget)) return 2;
            return m_window->status()->isAncestorOf(widget) ? 4 : 3;
        };
        // From the composer on: the rest of the chat, plots, docks, status bar, then the top.
        int changes = 0;
        for (int i = 1; i < seen.size(); ++i) changes += areaOf(seen[i]) != areaOf(seen[i - 1]);
        QCOMPARE(changes, 5);
    }

    void everyStopShowsThatItHasTheFocus() {
        const QRgb accent = tone(Tone::Accent).rgb();
        const auto count = [&](QWidget* stop) {
            const QRect around = QRect(stop->mapTo(m_window.get(), QPoint(0, 0)), stop->size())
                                     .adjusted(-16, -16, 16, 16);
            const QImage image = m_window->grab(around).toImage();
            int n = 0;
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x)
                    n += (image.pixel(x, y) | 0xFF000000) == accent;
            return n;
        };
        for (QWidget* stop : readingOrder(m_window->centralWidget())) {
            m_window->status()->cell(StatusBar::State)->setFocus();
            if (stop == QApplication::focusWidget()) m_window->topBar()->chip()->setFocus();
            QCoreApplication::processEvents();
            const int without = count(stop);
            focusShown(stop, Qt::TabFocusReason);
            QCoreApplication::processEvents();
            QVERIFY2(count(stop) > without,
                     qPrintable(QString("%1 \"%2\"")
                                    .arg(stop->metaObject()->className(), stop->accessibleName())));
        }
    }

    void f6GoesFromPaneToPane() {
        editor()->setFocus();
        ChatPage* page = m_window->chatPage();
        const auto next = [this](Qt::KeyboardModifiers modifiers = {}) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_F6, modifiers);
            return QApplication::focusWidget();
        };
        QVERIFY(page->plots()->isAncestorOf(next()));
        QVERIFY(page->knobs()->parentWidget()->isAncestorOf(next()));
        QVERIFY(m_window->status()->isAncestorOf(next()));
        QVERIFY(m_window->topBar()->isAncestorOf(next()));
        QCOMPARE(next(), static_cast<QWidget*>(editor()));
        QVERIFY(m_window->topBar()->isAncestorOf(next(Qt::ShiftModifier)));
    }
};

QTEST_MAIN(TestFocus)
#include "test_workbench_focus.moc"
