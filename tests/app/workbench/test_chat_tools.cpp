// SPDX-License-Identifier: GPL-3.0-or-later
// The parts around the chat's text: the list of chats, sampling, user turns, exports, the readout.
#include <QCheckBox>
#include <QClipboard>
#include <QFile>

#include "app/workbench/chat/chat_list.h"
#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/chat/prompt_sheet.h"
#include "app/workbench/chat/template_sheet.h"
#include "app/workbench/pages/chat_page.h"
#include "chat_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestChatTools : public QObject, ChatRig {
    Q_OBJECT

    void makeChats() {
        for (const char* title : {"About apples", "About pears", "About figs"}) {
            m_chat->newChat();
            ask(title);
            answer({"ok"});
            QTest::qWait(2);  // each is later than the one before
        }
    }
    void type(SliderRow* row, const QString& text, bool enter = true) {
        row->field()->setFocus();
        row->field()->selectAll();
        QTest::keyClicks(row->field(), text);
        if (enter) QTest::keyClick(row->field(), Qt::Key_Return);
    }
    Note* noteOf(SliderRow* row) { return row->findChild<Note*>(); }
    ChatTemplates* templates() { return m_chat->findChild<ChatTemplates*>(); }
    QString renderedPrompt() {
        m_chat->showPrompt();
        const QString text = m_chat->promptSheet()->text();
        m_chat->promptSheet()->closePanel();
        return text;
    }

private slots:
    void init() {
        openRig();
        ChatSettings().store({});
    }
    void cleanup() { closeRig(); }

    // ---- the list

    void theSearchFieldOpensAndForgets() {
        makeChats();
        ChatList list(m_store.get());
        list.show();
        QSignalSpy opened(&list, &ChatList::openWanted);
        list.search()->setFocus();
        QTest::keyClicks(list.search(), "apples");
        QCOMPARE(list.rows()->rows().size(), 1);
        QTest::keyClick(list.search(), Qt::Key_Return);
        QCOMPARE(opened.size(), 1);
        QCOMPARE(opened[0][0].toString(), list.rows()->rows()[0].id);
        list.beginSearch();  // opened again: all chats
        QCOMPARE(list.search()->text(), QString());
        QCOMPARE(list.rows()->rows().size(), 3);
        QTest::keyClick(list.search(), Qt::Key_Down);
        QTest::keyClick(list.rows(), Qt::Key_Down);
        QTest::keyClick(list.rows(), Qt::Key_Return);
        QCOMPARE(opened[1][0].toString(), list.rows()->rows()[1].id);
        QCOMPARE(list.rows()->rows()[1].model, m_source->model()->name);
    }

    void aRestoredChatReturnsToItsPosition() {
        makeChats();
        const QString second = m_store->summaries()[1].id;
        m_store->remove(second);
        m_store->flush();
        QVERIFY(m_store->restore());
        QTRY_COMPARE(m_store->summaries().size(), 3);
        QCOMPARE(m_store->summaries()[1].id, second);
    }

    void aDuplicateIsAChatOfItsOwn() {
        ask("About apples");
        answer({"ok"});
        const QString id = m_chat->conversation().id;
        ChatList list(m_store.get());
        m_chat->setList(&list);
        emit list.duplicateWanted(id);
        QVERIFY(m_chat->conversation().id != id);
        QCOMPARE(m_chat->conversation().title, QString("About apples (copy)"));
        QCOMPARE(lastTurn().text, QString("ok"));
        QCOMPARE(m_store->summaries().size(), 2);
    }

    // ---- the page round it

    void escapeClosesTheDrawerBeforeItStopsTheReply() {
        QWidget window;
        window.resize(1100, 700);
        ChatPage page(m_store.get(), m_view.get(), &window);
        page.setParent(&window);
        page.resize(1100, 700);
        page.setSource(m_source.get());
        window.show();
        window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&window));
        ChatPanel* chat = page.chat();
        chat->send("Go");
        const auto drawer = [&] { return page.knobs()->isVisible(); };
        for (const bool inDrawer : {true, false}) {
            page.showKnobs();
            QVERIFY(drawer());
            if (!inDrawer) chat->composer()->focusEditor();
            QTest::keyClick(window.focusWidget(), Qt::Key_Escape);
            QVERIFY(!drawer());
            QCOMPARE(m_source->cancels, 0);
            QVERIFY(chat->composer()->editor()->hasFocus());
        }
        page.showKnobs();
        QTest::mouseClick(page.findChild<IconButton*>("closeDrawer"), Qt::LeftButton);
        QVERIFY(!drawer());
        QTest::keyClick(window.focusWidget(), Qt::Key_Escape);
        QCOMPARE(m_source->cancels, 1);
    }

    void theListShowsAllChatsWhenItOpensAgain() {
        QWidget window;
        window.resize(1300, 700);
        ChatPage page(m_store.get(), m_view.get(), &window);
        page.setParent(&window);
        page.resize(1300, 700);
        page.setSource(m_source.get());
        window.show();
        makeChats();
        page.toggleList(nullptr);
        page.list()->search()->setText("pears");
        QCOMPARE(page.list()->rows()->rows().size(), 1);
        page.toggleList(nullptr);
        page.toggleList(nullptr);
        QCOMPARE(page.list()->rows()->rows().size(), 3);
    }

    // ---- sampling

    void anErrorGoesWithWhatWasTyped() {
        m_chat->openSampling();
        SliderRow* row = m_chat->samplingPanel()->temperature();
        const QString note = noteOf(row)->text();
        type(row, "7");
        QCOMPARE(noteOf(row)->text(), QString("Use 0.00..2.00."));
        m_chat->samplingPanel()->maxTokens()->field()->setFocus();
        QCOMPARE(row->field()->text(), QString("0.70"));
        QCOMPARE(noteOf(row)->text(), note);
        type(row, "9");
        QTest::keyClick(row->field(), Qt::Key_Escape);
        QCOMPARE(noteOf(row)->text(), note);
    }

    void aCommaIsReadAsTheUserMeansIt() {
        m_chat->openSampling();
        SliderRow* row = m_chat->samplingPanel()->temperature();
        type(row, "1,5");
        QCOMPARE(row->value(), int64_t(150));
        SliderRow* most = m_chat->samplingPanel()->maxTokens();
        type(most, "1,024");
        QCOMPARE(most->value(), int64_t(1024));
        type(most, "1,5");
        QCOMPARE(most->value(), int64_t(1024));
    }

    void mostTokensEndAtTheContext() {
        m_source->setContextLength(1024);
        m_chat->setSource(m_source.get());
        SliderRow* most = m_chat->samplingPanel()->maxTokens();
        QCOMPARE(most->slider()->range().max, int64_t(1024));
        m_chat->openSampling();
        type(most, "2000");
        QCOMPARE(noteOf(most)->text(), QString("Use 1..1,024."));
    }

    void aRandomSeedDiffersEachTimeAndIsShown() {
        m_chat->openSampling();
        m_chat->samplingPanel()->randomSeed()->setChecked(true);
        QVERIFY(m_chat->composer()->samplingButton()->text().contains("random seed"));
        QSet<uint64_t> seeds;
        for (int i = 0; i < 4; ++i) {
            ask("x");
            seeds << m_source->lastRequest.sampling.seed;
            answer({"y"});
            QCOMPARE(lastTurn().figures.drawn,
                     QString("seed %1").arg(m_source->lastRequest.sampling.seed));
        }
        QVERIFY(seeds.size() > 1);
    }

    void aPresetIsChosenAndSaved() {
        m_source->facts().recommendsSampling = true;
        m_source->facts().sampling.temperature = 0.6f;
        m_source->facts().sampling.topK = 20;
        m_chat->setSource(m_source.get());
        m_chat->openSampling();
        SamplingPanel* panel = m_chat->samplingPanel();
        Select* preset = panel->preset();
        QCOMPARE(preset->shownText(), QString("Recommended by the model"));
        const auto choose = [&](const QString& name) {
            emit preset->activated(preset->findText(name));
        };
        choose("Greedy");
        QCOMPARE(preset->shownText(), QString("Greedy"));
        QCOMPARE(m_chat->composer()->samplingButton()->text(), QString("greedy"));
        choose("Creative");
        ask("x");
        QCOMPARE(m_source->lastRequest.sampling.temperature, 1.1f);
        QCOMPARE(m_source->lastRequest.sampling.minP, 0.05f);
        answer({"y"});
        type(panel->temperature(), "0.85");
        QCOMPARE(preset->shownText(), QString("Custom"));
        QTest::mouseClick(panel->savePresetButton(), Qt::LeftButton);
        QVERIFY(panel->presetName()->isVisible());
        QTest::keyClicks(panel->presetName(), "greedy");  // that one is always there
        QTest::keyClick(panel->presetName(), Qt::Key_Return);
        QCOMPARE(preset->shownText(), QString("Custom"));
        panel->presetName()->clear();
        QTest::keyClicks(panel->presetName(), "My tales");
        QTest::keyClick(panel->presetName(), Qt::Key_Return);
        QCOMPARE(preset->shownText(), QString("My tales"));
        choose("Precise");
        QVERIFY(panel->removePresetButton()->isHidden());
        m_source->facts().recommendsSampling = false;
        m_chat->setSource(m_source.get());  // kept, for every model
        QCOMPARE(preset->findText("Recommended by the model"), -1);
        choose("My tales");
        QCOMPARE(panel->temperature()->value(), int64_t(85));
        QTest::mouseClick(panel->removePresetButton(), Qt::LeftButton);
        QCOMPARE(preset->findText("My tales"), -1);
        QCOMPARE(preset->shownText(), QString("Custom"));
        ChatSettings().store({});
    }

    // ---- chat templates

    void aChosenTemplateIsUsedAndKeptForItsModel() {
        m_source->facts().templates = {{"default", "own", "chat_template.jinja"},
                                       {"rag", "{{ messages[0].content }}!", ""}};
        m_chat->setSource(m_source.get());
        Select* choice = m_chat->samplingPanel()->chatTemplate();
        QCOMPARE(choice->itemText(0), QString("Model's own"));
        QCOMPARE(choice->itemText(1), QString("rag"));
        QVERIFY(choice->findText("ChatML") > 1 && choice->findText("Alpaca") > 1);
        QCOMPARE(choice->itemText(choice->count() - 1), QString("Edit..."));
        ask("x");
        QVERIFY(!m_source->lastRequest.chat.chatTemplate);
        answer({"y"});
        templates()->choose(1);
        m_chat->composer()->setText("z");
        QCOMPARE(renderedPrompt(), QString("x!"));
        templates()->choose(choice->findText("ChatML"));
        ask("!");
        QVERIFY(m_source->lastRequest.chat.chatTemplate != nullptr);
        answer({"y"});
        m_source->setModelName("Another model");
        m_chat->setSource(m_source.get());
        QCOMPARE(choice->currentIndex(), 0);
        m_source->setModelName("Wren-14B-A1.3B");
        m_chat->setSource(m_source.get());
        QCOMPARE(choice->currentText(), QString("ChatML"));
        templates()->choose(0);
        QCOMPARE(templates()->choice().kind, TemplateChoice::Kind::Own);
    }

    void aTemplateGivesABaseModelChats() {
        m_source->facts().continues = true;
        m_source->facts().chatProblem = "This model has no chat template.";
        m_chat->setSource(m_source.get());
        QVERIFY(m_chat->composer()->editor()->hint().contains("continues"));
        Select* choice = m_chat->samplingPanel()->chatTemplate();
        QCOMPARE(choice->itemText(0), QString("None: continue a text"));
        templates()->choose(choice->findText("User and Assistant"));
        QCOMPARE(m_chat->composer()->editor()->hint(), "Message " + m_source->model()->name);
        m_chat->composer()->setText("Hello");
        QCOMPARE(renderedPrompt(), QString("User: Hello\n\nAssistant:"));
        templates()->choose(0);
    }

    void aTemplateIsWrittenWithItsErrorsAndPreviewInView() {
        Select* choice = m_chat->samplingPanel()->chatTemplate();
        m_chat->openSampling();
        emit choice->activated(choice->count() - 1);
        TemplateSheet* sheet = templates()->sheet();
        QVERIFY(sheet->isOpen());
        QVERIFY(!m_chat->samplingPanel()->isOpen());
        sheet->editor()->setPlainText("{% for m in messages %}\n{{ m.content }}\n{% endfo %}");
        sheet->refresh();
        QVERIFY2(sheet->note().startsWith("Line 3, column "), qPrintable(sheet->note()));
        QVERIFY(!sheet->useButton()->isEnabled());
        QCOMPARE(sheet->editor()->extraSelections().size(), 1);
        sheet->editor()->setPlainText("{{ raise_exception('No chats today.') }}");
        sheet->refresh();
        QVERIFY2(sheet->note().contains("No chats today."), qPrintable(sheet->note()));
        m_chat->composer()->setText("Hello");
        sheet->editor()->setPlainText(
            "{% for m in messages %}\n- {{ m.content }}\n{% endfor %}\nBot:");
        QTRY_COMPARE(sheet->preview(), QString("- Hello\nBot:"));
        sheet->useButton()->click();
        QVERIFY(!sheet->isOpen());
        QCOMPARE(choice->currentText(), QString("Edited"));
        QCOMPARE(renderedPrompt(), QString("- Hello\nBot:"));
        m_chat->setSource(m_source.get());  // kept
        QCOMPARE(choice->currentText(), QString("Edited"));
        templates()->choose(0);
    }

    // ---- user turns

    void aLongPasteIsFolded() {
        QStringList lines;
        for (int i = 0; i < 230; ++i) lines << QString("line %1").arg(i);
        m_chat->send(lines.join('\n'));
        UserTurn* user = m_chat->view()->userTurn(0);
        QVERIFY(user->folded());
        QVERIFY2(user->height() < 260, qPrintable(QString::number(user->height())));
        auto* fold = user->findChild<LinkButton*>();
        QCOMPARE(fold->text(), QString("Show all 230 lines"));
        QTest::mouseClick(fold, Qt::LeftButton);
        QVERIFY(!user->folded());
        QVERIFY(user->height() > 230 * 18);
        QCOMPARE(QString::fromStdString(m_source->lastRequest.messages[0]["content"]),
                 lines.join('\n'));
    }

    void codeInAMessageIsShownAsCode() {
        m_chat->send("Why?\n```py\nprint(1)\n```");
        QCOMPARE(m_chat->view()->userTurn(0)->flow()->visibleText(), QString("Why?\nprint(1)"));
        answer({"Because."});
        m_chat->send("Not **bold** here\n# nor a heading");
        QCOMPARE(m_chat->view()->userTurn(2)->flow()->visibleText(),
                 QString("Not **bold** here\n# nor a heading"));
    }

    // ---- out of the window

    void markdownHasDateSamplingAndFigures() {
        ask("Keep: this / that?");
        answer({"Kept."});
        const QString text = m_chat->conversation().markdown();
        QVERIFY2(text.contains("Started on 20") && text.contains("*20"), qPrintable(text));
        QVERIFY2(text.contains("34.2 tok/s") && text.contains("148 tokens (119 reused)") &&
                     text.contains("hit rate 67.5 %"),
                 qPrintable(text));
        QVERIFY2(text.contains("temp 0.7") && text.contains("seed 42"), qPrintable(text));
        QCOMPARE(m_chat->conversation().fileName(), QString("keep-this-that"));
        QCOMPARE(Conversation::create().fileName(), QString("chat"));
    }

    void thePromptCanBeReadBeforeItIsSent() {
        m_chat->view()->openSystemPrompt();
        QTest::keyClicks(m_chat->view()->systemFold()->editor(), "Be brief.");
        m_chat->composer()->setText("Hello");
        m_chat->showPrompt();
        auto* sheet = m_window->findChild<PromptSheet*>();
        QVERIFY(sheet->isOpen());
        QCOMPARE(sheet->text(), QString("<|system|>Be brief.\n<|user|>Hello\n"));
        QTest::keyClick(m_window->focusWidget(), Qt::Key_Escape);
        QVERIFY(!sheet->isOpen());
        QVERIFY(m_chat->conversation().isEmpty());
    }

    // In a narrow panel the token and the SLO give way, not the reason.
    void theReasonIsNotWhatIsCutOff() {
        Readout::Content content;
        content.token = QString(30, 'w');
        content.gap = "104.6 ms";
        content.slo = "SLO 40";
        content.reason = {{"layer 14 waited 12.6 ms for expert 37, all layers 70.1 ms", Tone::Text2,
                           type::dense()}};
        content.t = 1;
        Readout readout;
        readout.resize(560, 28);
        readout.setContent(content);
        const QImage whole = readout.grab().toImage();
        // The same reason with another end: were the end cut off, the pictures would be the same.
        content.reason[0].text.replace("70.1", "70.9");
        readout.setContent(content);
        QVERIFY(readout.grab().toImage() != whole);
    }
};

QTEST_MAIN(TestChatTools)
#include "test_chat_tools.moc"
