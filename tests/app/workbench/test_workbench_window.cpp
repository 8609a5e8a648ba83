// SPDX-License-Identifier: GPL-3.0-or-later
#include <QClipboard>
#include <QSet>

#include "app/workbench/window/program.h"
#include "window_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestWindow : public QObject, WindowRig {
    Q_OBJECT

private slots:
    void init() { openRig(); }
    void cleanup() { closeRig(); }

    // A limit that no latency can have is refused, not turned into another.
    void theLimitIsRefusedOutOfItsRange() {
        const auto set = [&](const char* text) {
            m_window->commands()->run("plots.slo");
            m_window->palette()->input()->selectAll();
            QTest::keyClicks(m_window->palette()->input(), text);
            QTest::keyClick(m_window->palette()->input(), Qt::Key_Return);
        };
        set("35");
        QCOMPARE(m_window->view()->sloMs(), 35.0);
        const auto before = m_window->messages()->all().size();
        set("-5");
        QCOMPARE(m_window->view()->sloMs(), 35.0);
        QCOMPARE(m_window->messages()->all().size(), before + 1);
        set("20000");
        set("abc");
        QCOMPARE(m_window->view()->sloMs(), 35.0);
        QCOMPARE(m_window->messages()->all().size(), before + 3);
        set("1,000");
        QCOMPARE(m_window->view()->sloMs(), 1000.0);
        m_window->view()->setSlo(40);
    }

    // With nothing typed End is the plots'; with text it moves the caret. Sending follows as well.
    void endAndSendingFollowTheNewestData() {
        QPlainTextEdit* edit = m_window->chatPage()->chat()->composer()->editor();
        edit->setFocus();
        m_window->view()->setRange(20, 40);
        QTest::keyClick(edit, Qt::Key_End);
        QVERIFY(m_window->view()->following());
        m_window->view()->setRange(20, 40);
        QTest::keyClicks(edit, "Hello");
        QTest::keyClick(edit, Qt::Key_Home);
        QTest::keyClick(edit, Qt::Key_End);
        QVERIFY(!m_window->view()->following());
        QCOMPARE(edit->textCursor().position(), 5);
        QTest::keyClick(edit, Qt::Key_Return);
        QVERIFY(m_window->chatPage()->chat()->generating());
        QVERIFY(m_window->view()->following());
        m_window->chatPage()->chat()->stop();
    }

    void everyCommandHasItsOwnIdAndKey() {
        QSet<QString> ids, keys;
        for (const Command& command : m_window->commands()->all()) {
            QVERIFY2(!ids.contains(command.id), qPrintable(command.id));
            ids.insert(command.id);
            const QString key = command.key.toString();
            QVERIFY2(key.isEmpty() || !keys.contains(key), qPrintable(command.id + " " + key));
            if (!key.isEmpty()) keys.insert(key);
            QVERIFY2(bool(command.run), qPrintable(command.id));
        }
    }

    void paletteFiltersAndRuns() {
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        CommandPalette* palette = m_window->palette();
        QVERIFY(palette->isOpen());
        QTest::keyClicks(palette->input(), "cache policy slru");
        QCOMPARE(palette->list()->rows().size(), size_t(1));
        QTest::keyClick(palette->input(), Qt::Key_Return);
        QVERIFY(!palette->isOpen());
        QCOMPARE(m_source->knobState(KnobId::CachePolicy).requested,
                 int64_t(CachePolicyKind::Slru));
    }

    void paletteCopiesTheCommandLineAndEscapeCloses() {
        m_window->palette()->openCommands();
        QTest::keyClick(m_window->palette()->input(), Qt::Key_C, Qt::ControlModifier);
        QVERIFY(QApplication::clipboard()->text().startsWith("colibri chat"));
        QTest::keyClick(m_window->palette()->input(), Qt::Key_Escape);
        QVERIFY(!m_window->palette()->isOpen());
    }

    void helpKeyOpensTheKeyboardSheet() {
        QTest::keyClick(m_window.get(), Qt::Key_F1);
        QVERIFY(m_window->sheet()->isOpen());
        QVERIFY(m_window->sheet()->plainText().contains("New chat: Ctrl+N"));
        QTest::keyClick(m_window->sheet(), Qt::Key_Escape);
        QVERIFY(!m_window->sheet()->isOpen());
    }

    // What lies under it is not acted on, and Esc closes it wherever the focus went.
    void keysDoNotActBehindTheSheet() {
        int closed = 0;
        m_window->commands()->add({"test.close",
                                   "Model",
                                   "Close",
                                   "close",
                                   QKeySequence("Ctrl+W"),
                                   [&] { ++closed; },
                                   {},
                                   {}});
        QTest::keyClick(m_window.get(), Qt::Key_W, Qt::ControlModifier);
        QCOMPARE(closed, 1);
        m_window->commands()->run("help.keyboard");
        QTest::keyClick(m_window->sheet(), Qt::Key_W, Qt::ControlModifier);
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier);
        QCOMPARE(closed, 1);
        QVERIFY(!m_window->view()->paused());
        auto* editor = m_window->chatPage()->chat()->composer()->editor();
        editor->setFocus();
        QTest::keyClick(editor, Qt::Key_A);
        QCOMPARE(editor->toPlainText(), QString());
        editor->setFocus();
        QTest::keyClick(editor, Qt::Key_Escape);
        QVERIFY(!m_window->sheet()->isOpen());
        QTest::keyClick(m_window.get(), Qt::Key_W, Qt::ControlModifier);
        QCOMPARE(closed, 2);
    }

    // It lay over the chat's head, the figures and, in a small window, over the tabs of the pane.
    void aMessageCoversNothing() {
        for (const QSize size : {QSize(800, 500), QSize(1440, 900)}) {
            m_window->resize(size);
            tick();
            ChatPage* page = m_window->chatPage();
            const int before = page->mapTo(m_window.get(), QPoint(0, 0)).y();
            m_window->messages()->error(
                "The config was not written.",
                QString("/a/long/path/").repeated(20) + "config.json: no space left on device");
            tick();
            auto* bar = m_window->findChild<MessageBar*>();
            QVERIFY(bar->isVisible());
            QCOMPARE(bar->width(), m_window->width());
            const int top = page->mapTo(m_window.get(), QPoint(0, 0)).y();
            QCOMPARE(top, before + bar->height());
            QVERIFY(bar->height() >=
                    bar->heightForWidth(bar->width()));  // and all of it can be read
            QVERIFY(bar->mapTo(m_window.get(), QPoint(0, bar->height())).y() <= top);
            m_window->messages()->close(m_window->messages()->inBar()->id);
            tick();
            QCOMPARE(page->mapTo(m_window.get(), QPoint(0, 0)).y(), before);
        }
    }

    // Whatever there is to tell, and at any width: what is drawn has its whole room.
    void theStatusBarNeverCuts() {
        StatusBar* status = m_window->status();
        m_source->setKnob(KnobId::LinkLimit, 25);
        m_source->publishKnobs();
        m_source->active = 1;
        for (const int width : {800, 1000, 1024, 1100, 1280, 1440, 1600, 2560}) {
            m_window->resize(width, 700);
            tick();
            status->cell(StatusBar::Serving)
                ->setContent({.icon = "send",
                              .label = "Serving",
                              .value = ":8080",
                              .brief = ":8080",
                              .briefLabel = false});
            status->setWanted(StatusBar::Serving, true);
            QCoreApplication::sendPostedEvents();  // no timers: the window knows of no server
            int right = 0;
            for (int i = 0; i < StatusBar::CellCount; ++i) {
                StatusCell* cell = status->cell(StatusBar::Cell(i));
                if (!cell->isVisible()) continue;
                QVERIFY2(cell->width() >= cell->sizeHint().width(),
                         qPrintable(QString("%1 px: %2").arg(width).arg(cell->shownText())));
                right = std::max(right, cell->geometry().right());
            }
            QVERIFY2(right < width, qPrintable(QString::number(width)));
            for (const auto cell :
                 {StatusBar::State, StatusBar::Memory, StatusBar::LinkBadge, StatusBar::Serving})
                QVERIFY2(status->cell(cell)->isVisible(),
                         qPrintable(QString("%1: %2").arg(width).arg(int(cell))));
            QVERIFY(status->cell(StatusBar::Memory)->shownText().endsWith("GiB"));
        }
        QCOMPARE(status->cell(StatusBar::Session)->shownText(), QString("session 0412, 18.4 MiB"));
    }

    // What a narrower window folds away has a button that brings it.
    void theDrawerHasAButton() {
        m_window->resize(1024, 700);
        tick();
        ChatPage* page = m_window->chatPage();
        IconButton* docks = m_window->topBar()->docksButton();
        QVERIFY(docks->isVisible());
        QVERIFY(!page->knobs()->isVisible());
        QTest::mouseClick(docks, Qt::LeftButton);
        QVERIFY(page->knobs()->isVisible());
        QTest::mouseClick(docks, Qt::LeftButton);
        QVERIFY(!page->knobs()->isVisible());
        for (auto* button : m_window->topBar()->findChildren<QAbstractButton*>())
            if (button->isVisible())
                QVERIFY2(button->geometry().right() < 1024 && button->width() >= 24,
                         qPrintable(button->accessibleName()));
        m_window->resize(1440, 900);
        tick();
        QVERIFY(!docks->isVisible());
    }

    void theCommandLineHasSamplingAndSystemPrompt() {
        ChatPanel* chat = m_window->chatPage()->chat();
        Conversation conversation = storyConversation(false);
        conversation.system = "Be brief, it's late.";
        chat->openConversation(conversation);
        m_window->commands()->run("knobs.copy_command");
        const QString line = QApplication::clipboard()->text();
        for (const char* part : {"colibri chat ", " --temperature ", " --top-p ", " --seed ",
                                 " --max-tokens ", " --system 'Be brief, it'\\''s late.'"})
            QVERIFY2(line.contains(part), qPrintable(line));
    }

    void themeSwitchesLive() {
        const QColor dark = m_window->grab().toImage().pixelColor(700, 20);
        QTest::keyClick(m_window.get(), Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(!Theme::get().dark());
        QCoreApplication::processEvents();
        const QColor light = m_window->grab().toImage().pixelColor(700, 20);
        QCOMPARE(dark, QColor("#111518"));
        QCOMPARE(light, QColor("#e9edf0"));
    }

    void nothingIsLeftUnpainted() {
        for (const QSize size :
             {QSize(800, 500), QSize(1100, 700), QSize(1440, 900), QSize(2560, 1440)}) {
            m_window->resize(size);
            tick();
            QImage image(size, QImage::Format_RGB32);
            image.fill(Qt::magenta);
            m_window->render(&image);
            int bad = 0;
            for (int y = 0; y < image.height(); ++y) {
                const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
                bad += int(std::count(line, line + image.width(), QColor(Qt::magenta).rgb()));
            }
            QCOMPARE(bad, 0);
        }
    }

    void layoutsFollowTheWidth() {
        ChatPage* page = m_window->chatPage();
        QVERIFY(page->knobs()->isVisible());
        QVERIFY(page->plots()->experts()->isVisible());
        m_window->resize(800, 500);
        tick();
        QCOMPARE(page->windowClass(), WindowClass::Small);
        QVERIFY(page->plots()->isVisible());
        QVERIFY(!page->knobs()->isVisible());
        QVERIFY(!m_window->status()->cell(StatusBar::Gpu)->isVisible());
        page->showPane("experts");
        tick();
        QVERIFY(page->plots()->experts()->isVisible());
        page->showKnobs();
        QVERIFY(page->knobs()->isVisible());
        m_window->resize(1100, 700);
        tick();
        QVERIFY(!page->knobs()->isVisible());
        QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
        QVERIFY(page->knobs()->isVisible());  // as a drawer
        QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
        QVERIFY(!page->knobs()->isVisible());
        m_window->resize(2560, 1440);
        tick();
        QVERIFY(page->list()->isVisible());
        QVERIFY(page->plots()->plot("memory")->isVisible());
        m_window->resize(1440, 900);
        tick();
        QVERIFY(page->knobs()->isVisible());
        QVERIFY(page->plots()->experts()->isVisible());
        QVERIFY(!page->list()->isVisible());
    }

    void statusBarShowsTheSession() {
        StatusBar* status = m_window->status();
        QCOMPARE(status->cell(StatusBar::State)->content().label, QString("Idle"));
        QCOMPARE(status->cell(StatusBar::Memory)->content().value, QString("2.86 of 4.81 GiB"));
        QCOMPARE(status->cell(StatusBar::Gpu)->content().value, QString("n/a: no NVIDIA driver"));
        QCOMPARE(status->cell(StatusBar::Session)->content().value,
                 QString("session 0412, 18.4 MiB"));
        m_source->active = 1;
        tick();
        QCOMPARE(status->cell(StatusBar::State)->content().label, QString("Generating"));
    }

    // What only says that something ran is not called the GPU's utilisation, and clocks that a
    // measurement locks are noticed.
    void statusBarNamesWhatItShowsOfTheGpu() {
        const StatusCell* cell = m_window->status()->cell(StatusBar::Gpu);
        auto snapshot = m_source->editable();
        SeriesData& busy = snapshot->series[size_t(SeriesId::GpuBusy)];
        busy = {{1}, {100}, ""};
        tick();
        QCOMPARE(cell->content().label, QString("GPU busy"));
        QCOMPARE(cell->content().value, QString("100 %"));
        QVERIFY(!cell->content().badge);
        snapshot->series[size_t(SeriesId::SmUtilisation)] = {{1}, {42}, ""};
        snapshot->gpuClocksLocked = true;
        tick();
        QCOMPARE(cell->content().label, QString("GPU"));
        QCOMPARE(cell->content().value, QString("42 %, clocks locked"));
        QVERIFY(cell->content().badge);
        QVERIFY(cell->toolTip().contains("locks the GPU's clocks"));
    }

    // One figure in two places is one figure, at every moment.
    void figuresAndStatusBarReadTheSameSnapshot() {
        for (int i = 1; i <= 40; ++i) {
            auto snapshot = m_source->editable();
            snapshot->now += 0.033 - 1;
            snapshot->figures.readBytesPerS = snapshot->readNowBytesPerS = i * 1e7;
            m_window->tick();
            const FigureCard& read = m_window->chatPage()->plots()->figures()->cards()[3];
            QCOMPARE(m_window->status()->cell(StatusBar::Disk)->content().value,
                     read.value + " " + read.unit);
        }
        const FigureCard& read = m_window->chatPage()->plots()->figures()->cards()[3];
        QVERIFY(read.value.toDouble() > 300);  // and goes with the session
    }

    // One click on it changed the engine.
    void theLinkLimitBadgeLeadsToItsKnob() {
        StatusCell* badge = m_window->status()->cell(StatusBar::LinkBadge);
        QVERIFY(!badge->isVisible());
        m_source->setKnob(KnobId::LinkLimit, 25);
        m_source->publishKnobs();
        tick();
        QVERIFY(badge->isVisible());
        QCOMPARE(badge->content().value, QString("25 MB/s"));
        QTest::mouseClick(badge, Qt::LeftButton);
        QCOMPARE(m_source->knobState(KnobId::LinkLimit).requested, int64_t(25));
        KnobControl* knob = m_window->chatPage()->knobs()->control(KnobId::LinkLimit);
        QVERIFY(knob->isAncestorOf(QApplication::focusWidget()));
        QVERIFY(m_window->commands()->run("knobs.lift_limit"));
        m_source->publishKnobs();
        tick();
        QVERIFY(!badge->isVisible());
    }

    void messagesStayOrGo() {
        MessageCenter* messages = m_window->messages();
        QVERIFY(!messages->inBar());
        bool acted = false;
        messages->post(
            {Message::Kind::Info, "Chat deleted.", "title", "Undo", [&] { acted = true; }});
        QCOMPARE(messages->inBar()->text, QString("Chat deleted."));
        messages->error("It broke.", "file, byte 3");
        QCOMPARE(messages->inBar()->text, QString("It broke."));
        QCOMPARE(messages->unread(), 2);
        // What it has replaced stays in the list and does not come back, an old error neither.
        messages->ok("Config written.", "somewhere");
        messages->close(messages->inBar()->id);
        QVERIFY(!messages->inBar());
        QCOMPARE(messages->all().size(), size_t(2));
        messages->all().front().action();
        QVERIFY(acted);
        QTest::mouseClick(m_window->topBar()->bell(), Qt::LeftButton);
        QCOMPARE(messages->unread(), 0);
    }

    void droppedEventsAndSessionErrorsAreSaid() {
        m_source->editable()->eventsDropped = 1204;
        tick();
        QVERIFY(m_window->messages()->all().back().text.contains("1,204"));
        QVERIFY(m_window->status()->cell(StatusBar::Dropped)->content().badge);
        m_source->editable()->sessionError = "cannot write session: no space left on device";
        tick();
        QVERIFY(m_window->messages()->all().back().detail.contains("no space left"));
    }

    void endFollowsAndPauseKeepsRecording() {
        m_window->view()->setRange(10, 30);
        QTest::keyClick(m_window->chatPage()->plots()->plot("hit"), Qt::Key_End);
        QVERIFY(m_window->view()->following());
        QTest::keyClick(m_window.get(), Qt::Key_P, Qt::ControlModifier);
        QVERIFY(m_window->view()->paused());
        QTest::mouseClick(m_window->topBar()->followButton(), Qt::LeftButton);
        QVERIFY(!m_window->view()->paused());
    }

    void endOnASliderIsItsOwn() {
        Slider* slider =
            m_window->chatPage()->knobs()->control(KnobId::ExpertCacheSize)->sliderRow()->slider();
        m_window->view()->setRange(10, 30);
        slider->setFocus();
        QTest::keyClick(slider, Qt::Key_End);
        QCOMPARE(m_source->knobState(KnobId::ExpertCacheSize).requested, int64_t(64));
        QVERIFY(!m_window->view()->following());
    }

    void rangeChoiceSetsTheSpan() {
        Select* range = m_window->topBar()->range();
        range->setFocus();
        QTest::keyClick(range, Qt::Key_Up);
        QCOMPARE(m_window->view()->span(), 30.0);
        // Its length is read on it whatever it is, and "Last" only while that is true.
        QCOMPARE(range->label() + " " + range->shownText(), QString("Last 0:30"));
        m_window->view()->setRange(10, 52);
        QCOMPARE(range->label() + " " + range->shownText(), QString("Range 00:42"));
        range->setCurrentIndex(range->findText("Whole session"));
        emit range->activated(range->currentIndex());
        QVERIFY(m_window->view()->whole());
        QCOMPARE(m_window->view()->lower(), 0.0);
        QCOMPARE(m_window->view()->upper(), 90.0);
        QCOMPARE(range->shownText(), QString("Whole session"));
        QVERIFY(m_window->view()->following());
    }

    void noteGoesToTheSession() {
        QTest::keyClick(m_window.get(), Qt::Key_M, Qt::ControlModifier);
        QTest::keyClicks(m_window->palette()->input(), "disk was busy");
        QTest::keyClick(m_window->palette()->input(), Qt::Key_Return);
        QCOMPARE(m_source->notes, QStringList{"disk was busy"});
    }

    void modelComesAndGoes() {
        m_source->setLoaded(false);
        tick();
        QCOMPARE(m_window->status()->cell(StatusBar::State)->content().label, QString("No model"));
        QVERIFY(!m_window->topBar()->followButton()->isVisible());
        m_source->setLoaded(true);
        tick();
        QVERIFY(m_window->topBar()->followButton()->isVisible());
        QVERIFY(m_window->topBar()->chip()->accessibleName().contains("Wren"));
    }

    void focusReachesEveryPartByTab() {
        m_window->chatPage()->chat()->composer()->focusEditor();
        QSet<QString> seen;
        for (int i = 0; i < 120; ++i) {
            QWidget* focus = QApplication::focusWidget();
            QVERIFY(focus);
            seen.insert(focus->metaObject()->className());
            if (!focus->accessibleName().isEmpty()) seen.insert(focus->accessibleName());
            QTest::keyClick(focus, Qt::Key_Tab);
        }
        for (const char* part :
             {"colibri::ui::PlotCanvas", "colibri::ui::Slider", "colibri::ui::NumberField",
              "colibri::ui::Segment", "colibri::ui::ModelChip", "colibri::ui::StatusCell",
              "colibri::ui::ExpertsMap"})
            QVERIFY2(seen.contains(part), part);
    }

    void controlsHaveAccessibleNames() {
        for (auto* button : m_window->findChildren<QAbstractButton*>()) {
            if (!button->isVisible()) continue;
            QVERIFY2(!button->accessibleName().isEmpty() || !button->text().isEmpty(),
                     button->metaObject()->className());
        }
    }

    void optionsAreChecked() {
        QString text, error;
        const auto parse = [&](QStringList arguments) {
            text.clear();
            error.clear();
            arguments.prepend("colibri-workbench");
            return ProgramOptions::parse(arguments, &text, &error);
        };
        const auto options =
            parse({"model", "--size", "800x500", "--theme", "light", "--expert-cache-size", "9"});
        QVERIFY(options);
        QCOMPARE(*options->size, QSize(800, 500));
        QCOMPARE(options->theme, Theme::Mode::Light);
        QCOMPARE(options->knobs[size_t(KnobId::ExpertCacheSize)], int64_t(9));
        QVERIFY(!parse({"--size", "big"}));
        QVERIFY(error.contains("1440x900"));
        for (const char* size :
             {"1440", "1440x", "16384x16384", "799x500", "-800x500", "1440x900x2"})
            QVERIFY2(!parse({"--size", size}), size);
        for (const char* scale : {"abc", "0", "1000", "110", "-100"})
            QVERIFY2(!parse({"--scale", scale}), scale);
        QCOMPARE(parse({"--scale", "150"})->scale, 150);
        QVERIFY(!parse({"--ask", "Hello"}));
        QVERIFY(error.contains("--demo"));
        QVERIFY(parse({"--demo", "--ask", "Hello"}));
        QVERIFY(!parse({"--demo", "model"}));
        QVERIFY(!parse({"--theme", "blue"}));
        QVERIFY(!parse({"--cache-policy", "best"}));
        QVERIFY(error.contains("cache_policy"));
        QVERIFY(!parse({"a", "b"}));
        QVERIFY(!parse({"--page", "nowhere"}));
        QVERIFY(parse({"--help"}));
        QVERIFY(text.contains("--screenshot"));
        // Knobs are explained as in the help of the command line.
        QVERIFY2(text.simplified().contains("Link limit, 0..100000 MB/s, default 0."),
                 qPrintable(text));
        QVERIFY(!text.contains("executable_name"));
    }
};

QTEST_MAIN(TestWindow)
#include "test_workbench_window.moc"
