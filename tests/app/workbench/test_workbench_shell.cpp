// SPDX-License-Identifier: GPL-3.0-or-later
// The window around its pages: status cells, commands, drag and drop, the pace of its timer, and
// where it stands on the screen.
#include <QDragEnterEvent>
#include <QFileIconProvider>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QScreen>

#include "app/workbench/window/placement.h"
#include "engine/knobs/knob_config.h"
#include "window_rig.h"

using namespace colibri;
using namespace colibri::ui;

class TestShell : public QObject, WindowRig {
    Q_OBJECT

    void dragOver(const QString& path, bool drop) {
        QMimeData mime;
        mime.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter(QPoint(400, 400), Qt::CopyAction, &mime, Qt::LeftButton,
                              Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &enter);
        if (!drop) return;
        QDropEvent event(QPointF(400, 400), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
    }
    QString fileOf(const QString& name, const QByteArray& text) {
        QFile file(m_sandbox->path(name));
        if (file.open(QIODevice::WriteOnly)) file.write(text);
        return file.fileName();
    }

private slots:
    void init() { openRig(); }
    void cleanup() { closeRig(); }

    // Idle did nothing; memory and recording led to a page that has neither.
    void everyStatusCellLeadsToItsDetails() {
        StatusBar* status = m_window->status();
        const auto sheet = [&](StatusBar::Cell cell) {
            QTest::mouseClick(status->cell(cell), Qt::LeftButton);
            const QString text =
                m_window->sheet()->isOpen() ? m_window->sheet()->plainText() : QString();
            m_window->sheet()->closePanel();
            return text;
        };
        QVERIFY(sheet(StatusBar::State).contains("State: idle"));
        QVERIFY(sheet(StatusBar::Memory).contains("This process: 2.86 GiB"));
        QVERIFY(sheet(StatusBar::Cost).contains("Cost, of the time of all cores"));
        QVERIFY(sheet(StatusBar::Session).contains("session 0412"));
        QVERIFY(sheet(StatusBar::Dropped).contains("Events dropped: 0"));
        QVERIFY(sheet(StatusBar::Gpu).contains("Processor"));
    }

    void theModelMenuIsFirstAndHelpIsLast() {
        m_window->commands()->add({"test.open", "Model", "Open", "folder", {}, [] {}, {}, {}});
        const QStringList groups = m_window->commands()->groups();
        QCOMPARE(groups.first(), QString("Model"));
        QCOMPARE(groups.last(), QString("Help"));
        QCOMPARE(groups.indexOf("View"), groups.size() - 2);
    }

    void aboutShowsVersionAndLicence() {
        QVERIFY(m_window->commands()->run("help.about"));
        const QString text = m_window->sheet()->plainText();
        QVERIFY(text.contains("GNU General Public License 3"));
        QVERIFY(text.contains("Apache License 2.0"));
        QVERIFY(text.contains("Colibri Workbench: "));
        m_window->sheet()->closePanel();
    }

    void thePaletteSpeaksOfKnobsAsPeopleDo() {
        CommandPalette* palette = m_window->palette();
        const auto titles = [&](const QString& query) {
            palette->openCommands(query);
            QStringList out;
            for (const PaletteList::Row& row : palette->list()->rows()) out << row.title;
            palette->closePanel();
            return out;
        };
        QVERIFY2(titles("set link").contains("Set link limit"),
                 qPrintable(titles("set link").join("|")));
        QVERIFY(titles("set threads").contains("Set prefetch threads"));
        QVERIFY(titles("set numa").contains("Set NUMA"));
        QVERIFY(titles("reads").filter("Set reads link").isEmpty());
        QVERIFY(!titles("gpu").filter("sm utilisation").isEmpty());
        m_source->setKnob(KnobId::LinkLimit, 25);
        palette->openCommands("reset link");
        QVERIFY(!palette->list()->rows().empty());
        QCOMPARE(palette->list()->rows()[0].detail, QString("none"));
        palette->closePanel();
    }

    // It took Enter and stayed, without a word.
    void aGreyedCommandSaysWhy() {
        CommandPalette* palette = m_window->palette();
        palette->openCommands("stop the reply");
        QCOMPARE(palette->list()->rows().size(), size_t(1));
        QVERIFY(!palette->list()->rows()[0].enabled);
        QCOMPARE(palette->list()->rows()[0].detail,
                 QString("not now: no reply is being generated"));
        QTest::keyClick(palette->input(), Qt::Key_Return);
        QVERIFY(palette->isOpen());
        palette->closePanel();
        m_source->setLoaded(false);
        m_window->chatPage()->chat()->newChat();
        tick();
        palette->openCommands();
        for (const PaletteList::Row& row : palette->list()->rows())
            QVERIFY2(row.enabled || row.detail.size() > 12, qPrintable(row.title));
        palette->closePanel();
    }

    void resetLayoutBringsTheKnobsBack() {
        m_window->commands()->run("engine.load");
        QVERIFY(m_window->loadTestPanel()->isVisible());
        m_window->commands()->run("view.reset_layout");
        QVERIFY(m_window->chatPage()->knobs()->isVisible());
        QVERIFY(!m_window->loadTestPanel()->isVisible());
    }

    void anotherScaleOffersToRestart() {
        bool restart = false;
        connect(m_window.get(), &MainWindow::restartWanted, this, [&] { restart = true; });
        m_window->commands()->run("view.scale_150");
        QCOMPARE(m_window->messages()->inBar()->actionText, QString("Restart now"));
        m_window->messages()->inBar()->action();
        QVERIFY(restart);
        m_window->commands()->run("view.scale_100");
    }

    void theLimitRefusesWhatItCannotBe() {
        const double before = m_window->view()->sloMs();
        for (const char* text : {"-5", "0", "abc", "20000"}) {
            m_window->commands()->run("plots.slo");
            m_window->palette()->input()->setText(text);
            QTest::keyClick(m_window->palette()->input(), Qt::Key_Return);
            QCOMPARE(m_window->view()->sloMs(), before);
            QVERIFY(m_window->messages()->inBar()->detail.contains(text));
        }
        m_window->commands()->run("plots.slo");
        m_window->palette()->input()->setText("37,5");
        QTest::keyClick(m_window->palette()->input(), Qt::Key_Return);
        QCOMPARE(m_window->view()->sloMs(), 37.5);
        m_window->view()->setSlo(before);
    }

    // Qt's own dialogs had blue and yellow icons of another age.
    void fileDialogsHaveTheProgramsIcons() {
        QFileIconProvider provider;
        for (const QIcon& icon :
             {provider.icon(QFileIconProvider::Folder), provider.icon(QFileIconProvider::File),
              QApplication::style()->standardIcon(QStyle::SP_FileDialogToParent),
              QApplication::style()->standardIcon(QStyle::SP_FileDialogNewFolder)}) {
            const QImage image = icon.pixmap(16).toImage();
            QVERIFY(!image.isNull());
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x)
                    if (const QColor c = image.pixelColor(x, y); c.alpha() > 200)
                        QVERIFY2(c.saturation() < 60, qPrintable(c.name()));
        }
    }

    // ---- drag and drop

    void draggingSaysWhatLettingGoWillDo() {
        auto* hint = m_window->findChild<DropHint*>();
        QVERIFY(!hint->isVisible());
        dragOver(fileOf("tiny.gguf", "GGUF"), false);
        QVERIFY(hint->isVisible());
        QCOMPARE(hint->text(), QString("Open tiny.gguf"));
        QDragLeaveEvent leave;
        QApplication::sendEvent(m_window.get(), &leave);
        QVERIFY(!hint->isVisible());
        dragOver(fileOf("blob.bin", QByteArray("\0\1\2", 3)), false);
        QVERIFY(hint->text().contains("not a model"));
        QApplication::sendEvent(m_window.get(), &leave);
    }

    void aTextFileGoesIntoTheMessage() {
        QSignalSpy opened(m_window.get(), &MainWindow::openWanted);
        auto* editor = m_window->chatPage()->chat()->composer()->editor();
        editor->setPlainText("Sum up: ");
        editor->moveCursor(QTextCursor::End);
        dragOver(fileOf("notes.txt", "One. Two."), true);
        QCOMPARE(editor->toPlainText(), QString("Sum up: One. Two."));
        QCOMPARE(m_window->currentPage(), QString("chat"));
        QCOMPARE(opened.count(), 0);
        dragOver(fileOf("blob.bin", QByteArray("\0\1\2", 3)), true);
        QVERIFY(m_window->messages()->inBar()->text.startsWith("blob.bin"));
        QCOMPARE(m_window->currentPage(), QString("chat"));
        // The editor itself does not take a file for text.
        QMimeData mime;
        mime.setUrls({QUrl::fromLocalFile("/tmp/notes.txt")});
        QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(editor->viewport(), &enter);
        QCOMPARE(editor->toPlainText(), QString("Sum up: One. Two."));
    }

    void ourOwnExportsAreKnown() {
        KnobValues knobs;
        knobs[size_t(KnobId::ExpertCacheSize)] = 9;
        dragOver(
            fileOf("colibri-config.json", QByteArray::fromStdString(knobsToJson(knobs, "", ""))),
            true);
        QCOMPARE(m_source->knobState(KnobId::ExpertCacheSize).requested, int64_t(9));
        Conversation story = storyConversation(false);
        story.title = "From a file";
        dragOver(fileOf("chat.json", QJsonDocument(story.toJson()).toJson()), true);
        QCOMPARE(m_window->chatPage()->chat()->conversation().title, QString("From a file"));
    }

    // ---- what runs while nothing happens

    void aMinimisedWindowWorksOnNothingThatIsNotSeen() {
        const auto dropped = [&] {
            return m_window->status()->cell(StatusBar::Dropped)->content().value;
        };
        m_window->showMinimized();
        m_source->editable()->eventsDropped = 7;
        const auto messages = m_window->messages()->all().size();
        tick();
        QCOMPARE(dropped(), QString("0"));
        QCOMPARE(m_window->messages()->all().size(), messages + 1);  // one message
        m_window->showNormal();
        tick();
        QCOMPARE(dropped(), QString("7"));
    }

    void theWindowTicksSlowlyWhileNothingHappens() {
        const auto pause = [] {
            QTest::qWait(1600);
        };  // what was touched is shown smoothly for a while
        pause();
        tick(1);
        QVERIFY(m_window->tickInterval() >= 250);
        m_source->active = 1;
        tick(1);
        QCOMPARE(m_window->tickInterval(), 33);
        m_window->view()->setPaused(true);
        tick(1);
        QVERIFY(m_window->tickInterval() >= 250);
        m_window->view()->setPaused(false);
        tick(1);
        QCOMPARE(m_window->tickInterval(), 33);
        m_window->showMinimized();
        pause();
        tick(1);
        QVERIFY(m_window->tickInterval() >= 1000);
        m_window->showNormal();
        QTest::keyClick(m_window.get(), Qt::Key_Shift);
        QCOMPARE(m_window->tickInterval(), 33);
        m_source->active = 0;
    }

    // ---- where the window stands

    void aWindowIsNeverLargerThanItsScreen() {
        const QMargins frame(4, 28, 4, 4);
        const QRect laptop(0, 24, 1366, 744);
        for (const QRect& window :
             {QRect(2, 40, 1440, 900), QRect(-500, -300, 2880, 1800), QRect(4000, 2000, 1440, 900),
              QRect(100, 100, 900, 600), QRect(1200, 700, 800, 500)}) {
            const QRect place = fittedInto(window, laptop, frame);
            QVERIFY2(laptop.contains(place.marginsAdded(frame)),
                     qPrintable(QString::number(window.x())));
            QVERIFY(place.width() <= window.width() && place.height() <= window.height());
        }
        QCOMPARE(fittedInto({100, 100, 900, 600}, laptop, frame), QRect(100, 100, 900, 600));
        // The monitor that it stood on is gone; this one has another origin.
        QCOMPARE(fittedInto({100, 100, 900, 600}, {1920, 0, 1920, 1080}, frame).topLeft(),
                 QPoint(1924, 100));
    }

    // The screen of these tests has 800x800.
    void whatDoesNotFitIsMaximised() {
        const QSize screen = QGuiApplication::primaryScreen()->availableSize();
        QWidget window;
        window.setMinimumSize(800, 500);
        auto* placement = new Placement(&window);
        placement->restore({}, {1440, 900});
        QVERIFY(window.windowState() & Qt::WindowMaximized);
        QVERIFY(window.minimumWidth() <= screen.width());
        // A size that was asked for goes before what was kept, maximised or not.
        QWidget left;
        left.setWindowState(Qt::WindowMaximized);
        const QByteArray kept = left.saveGeometry();
        QWidget again;
        auto* other = new Placement(&again);
        other->restore(kept, {1440, 900});
        other->setSize({900, 600});
        QVERIFY(!(again.windowState() & Qt::WindowMaximized));
        QCOMPARE(again.size(), QSize(900, 600));
        // What was kept on a larger screen comes back within this one.
        QWidget large;
        large.setGeometry(3000, 2000, 700, 700);
        const QByteArray far = large.saveGeometry();
        QWidget here;
        (new Placement(&here))->restore(far, {1440, 900});
        QVERIFY(QRect(QPoint(), screen).contains(here.geometry()));
    }
};

QTEST_MAIN(TestShell)
#include "test_workbench_shell.moc"
