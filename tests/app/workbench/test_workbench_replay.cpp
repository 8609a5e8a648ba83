// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded session in the window: it is opened, played, moved through and closed; the live
// session returns.
#include <QSignalSpy>

#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/knobs/changes_list.h"
#include "app/workbench/plots/plot_canvas.h"
#include "profiler/metrics/effect.h"
#include "profiler/session/session_open.h"
#include "profiler/session/session_writer.h"
#include "window_rig.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

Event requestOf(EventType type, uint64_t id) {
    Event event{};
    event.type = type;
    event.request.request = id;
    event.request.stop = StopReason::Eos;
    return event;
}

Event cacheChange(int64_t size) {
    Event event{};
    event.type = EventType::KnobChanged;
    event.knob.knob = uint8_t(KnobId::ExpertCacheSize);
    event.knob.requested = event.knob.effective = size;
    return event;
}

QByteArray fileContent(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

class TestWorkbenchReplay : public QObject, WindowRig {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_path;

    // 60 s, two turns (5..20, 30..50), the cache 8 -> 16 at 40 s, an expert read at 10 s.
    void writeSession() {
        auto made = SessionWriter::create(
            m_path.toStdString(),
            {{"model", "tiny"}, {"layers", "1"}, {"experts", "4"}, {"top_k", "1"}});
        QVERIFY(made.ok());
        SessionWriter& writer = **made;
        QVERIFY(writer.write(cacheChange(8), 0).ok());
        const double turns[][2] = {{5, 20}, {30, 50}};
        for (uint64_t id = 1; id <= 2; ++id) {
            QVERIFY(writer.write(requestOf(EventType::RequestArrived, id), turns[id - 1][0]).ok());
            QVERIFY(writer.write(requestOf(EventType::RequestAdmitted, id), turns[id - 1][0]).ok());
            QVERIFY(writer.write(requestOf(EventType::RequestDone, id), turns[id - 1][1]).ok());
        }
        Event read{};
        read.type = EventType::ExpertRead;
        read.expertRead = {.layer = 0, .expert = 2, .bytes = 4096, .readNs = 1000, .needNs = 1000};
        QVERIFY(writer.write(read, 10).ok());
        Event step{};
        step.type = EventType::Step;
        step.step = {};
        step.step.step = step.step.rows = step.step.requests = 1;
        step.step.totalNs = 9'000'000;
        QVERIFY(writer.write(step, 10).ok());
        QVERIFY(writer.write(cacheChange(16), 40).ok());
        QVERIFY(writer
                    .mark(40, "effect",
                          "Cache size 8 → 16: +18.2 % tok/s (95 %: 15.1..21.4), from 92 tokens "
                          "before, 160 after")
                    .ok());
        Snapshot sample;
        for (int i = 0; i <= 600; ++i) {
            const double t = i / 10.0;
            const bool runs = (t >= 5 && t < 20) || (t >= 30 && t < 50);
            sample.series[size_t(SeriesId::HitRate)].y = {runs ? t : std::nan("")};
            sample.series[size_t(SeriesId::TokensPerSecond)].y = {runs ? 20 + t : std::nan("")};
            sample.series[size_t(SeriesId::MemoryGiB)].y = {1.5};
            QVERIFY(writer.sample(sample, t).ok());
        }
        QVERIFY(writer.finish().ok());
    }
    RecordedView* view() { return m_window->recorded(); }
    Player* player() { return view()->player(); }
    void openSession() {
        const auto session = openSessionFile(m_path.toStdString());
        QVERIFY2(session.ok(), session.status().text().c_str());
        view()->open(*session);
        QTRY_VERIFY(view()->source()->complete());
        settle();
    }
    // Until the window shows the newest state.
    void settle() {
        for (int i = 0; i < 400; ++i) {
            tick(1);
            if (view()->isOpen() && !view()->source()->current())
                QTest::qWait(2);
            else if (i > 4)
                break;
        }
        tick();
    }
    QString card(int index) const {
        return m_window->chatPage()->plots()->figures()->cards()[index].value;
    }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
        QTest::keyClick(view()->bar()->scrubber(), key, modifiers);
        settle();
    }

private slots:
    void initTestCase() {
        m_path = m_dir.filePath("evening.colibri-session");
        writeSession();
    }
    void init() { openRig(); }
    void cleanup() { closeRig(); }

    void aSessionFillsTheWindow() {
        openSession();
        player()->seek(45);
        settle();
        const ChatPage* page = m_window->chatPage();
        QVERIFY(view()->bar()->isVisible());
        QCOMPARE(view()->bar()->positionText(), QString("00:45.0 / 01:00"));
        QVERIFY(page->recordedChat()->isVisible() && !page->chat()->isVisible());
        QVERIFY(page->recordedKnobs()->isVisible() && !page->knobs()->isVisible());
        QCOMPARE(card(0), QString("65.0"));
        QCOMPARE(card(2), QString("45.0"));
        QVERIFY(page->plots()->plot("hit")->hasData());
        QCOMPARE(page->recordedKnobs()->valueText(KnobId::ExpertCacheSize).section(' ', 0, 0),
                 QString("16"));
        const auto snapshot = view()->source()->snapshot();
        QCOMPARE(
            std::count(snapshot->residency.begin(), snapshot->residency.end(), Residency::Resident),
            1);
        // The source is named everywhere.
        QCOMPARE(m_window->status()->cell(StatusBar::State)->content().label,
                 QString("Recorded session"));
        QCOMPARE(m_window->status()->cell(StatusBar::State)->content().value, QString("evening"));
        QCOMPARE(m_window->status()->cell(StatusBar::Device)->content().value,
                 QString("00:45.0 of 01:00"));
        QVERIFY(!m_window->topBar()->recording()->isVisible());
        QVERIFY(!m_window->topBar()->followButton()->isVisible());
        // The playhead is the cursor, until the pointer is in a plot.
        QCOMPARE(m_window->view()->cursor(), 45.0);
        m_window->view()->setCursor(12);
        QCOMPARE(m_window->view()->cursor(), 12.0);
        m_window->view()->setCursor(std::nan(""));
        QCOMPARE(m_window->view()->cursor(), 45.0);
    }
    void itPlaysAtItsSpeed() {
        openSession();
        player()->setPlaying(true);
        QVERIFY(player()->playing());
        player()->advance(2);
        QCOMPARE(player()->time(), 2.0);
        player()->setSpeed(4);  // 4x
        player()->advance(2);
        QCOMPARE(player()->time(), 10.0);
        player()->setSpeed(0);
        player()->advance(4);
        QCOMPARE(player()->time(), 11.0);
        QCOMPARE(view()->source()->time(), 11.0);
        // At the end it stops, and the next play begins again.
        player()->setSpeed(7);
        player()->advance(100);
        QCOMPARE(player()->time(), 60.0);
        QVERIFY(!player()->playing());
        player()->setPlaying(true);
        QCOMPARE(player()->time(), 0.0);
    }
    void theKeyboardMovesIt() {
        openSession();
        QVERIFY(view()->bar()->scrubber()->hasFocus());
        press(Qt::Key_Right);
        QCOMPARE(player()->time(), 1.0);
        press(Qt::Key_Left);
        QCOMPARE(player()->time(), 0.0);
        press(Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(player()->time(), 5.0);
        press(Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(player()->time(), 30.0);
        press(Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(player()->time(), 5.0);
        QTest::keyClick(m_window.get(), Qt::Key_End);
        QCOMPARE(player()->time(), 60.0);
        press(Qt::Key_Home);
        QCOMPARE(player()->time(), 0.0);
        press(Qt::Key_Plus);
        QCOMPARE(player()->speed(), kNormalSpeed + 1);
        press(Qt::Key_Minus);
        press(Qt::Key_Minus);
        QCOMPARE(player()->speed(), kNormalSpeed - 1);
        press(Qt::Key_Space);
        QVERIFY(player()->playing());
        press(Qt::Key_Space);
        QVERIFY(!player()->playing());
        // The keys also work while a button of the bar has the focus.
        player()->seek(10);
        view()->bar()->playButton()->setFocus();
        QTest::keyClick(view()->bar()->playButton(), Qt::Key_Right);
        QCOMPARE(player()->time(), 11.0);
    }
    void scrubbingShowsEachTime() {
        openSession();
        Scrubber* scrubber = view()->bar()->scrubber();
        const auto at = [&](double t) { return QPoint(int(std::lround(scrubber->xOf(t))), 32); };
        drag(scrubber, at(0), at(35));
        settle();
        QVERIFY(std::abs(player()->time() - 35) < 0.2);
        QVERIFY(std::abs(card(2).toDouble() - 35) < 0.2);
        QCOMPARE(m_window->chatPage()
                     ->recordedKnobs()
                     ->valueText(KnobId::ExpertCacheSize)
                     .section(' ', 0, 0),
                 QString("8"));
        // In a pause the cards keep the end of the turn before.
        QTest::mouseClick(scrubber, Qt::LeftButton, {}, at(25));
        settle();
        QVERIFY(std::abs(player()->time() - 25) < 0.2);
        QCOMPARE(card(2), QString("19.9"));
        // A click in a plot goes there.
        PlotCanvas* canvas = m_window->chatPage()->plots()->plot("hit")->canvas();
        QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(int(canvas->x(40)), 20));
        QVERIFY(std::abs(player()->time() - 40) < 0.3);
    }
    void changesLeadToTheirTimes() {
        openSession();
        const ChangesList* changes = m_window->chatPage()->recordedKnobs()->changes();
        QCOMPARE(changes->shown(), 1);
        auto* button = changes->findChild<Button*>();
        QVERIFY(button && button->text() == "Go to");
        button->click();
        QCOMPARE(player()->time(), 40.0);
    }
    void zoomAndRangeWorkAsWhenLive() {
        openSession();
        ViewState* state = m_window->view();
        QVERIFY(state->whole() && state->span() == 60);
        state->setRange(30, 40);
        settle();
        const auto snapshot = view()->source()->snapshot();
        const SeriesData& hits = snapshot->series[size_t(SeriesId::HitRate)];
        QVERIFY(std::count_if(hits.t.begin(), hits.t.end(),
                              [](double t) { return t >= 30 && t <= 40; }) >= 100);
        // The range follows a playhead that leaves it.
        player()->seek(35);
        player()->seek(45);
        QVERIFY(state->lower() > 40 && state->upper() > 45);
        state->reset();
        QVERIFY(state->whole() && state->lower() == 0);
    }
    void closingReturnsToTheLiveSession() {
        const QString live = card(0);
        openSession();
        QVERIFY(card(0) != live);
        QSignalSpy closed(view(), &RecordedView::closed);
        view()->bar()->closeButton()->click();
        QCOMPARE(closed.size(), 1);
        QVERIFY(!view()->isOpen() && !view()->bar()->isVisible());
        tick();
        const ChatPage* page = m_window->chatPage();
        QVERIFY(page->chat()->isVisible() && page->knobs()->isVisible());
        QVERIFY(!page->recordedChat()->isVisible());
        QCOMPARE(card(0), live);
        QVERIFY(m_window->topBar()->recording()->isVisible());
        QVERIFY(!m_window->view()->hasPlayhead());
        QVERIFY(m_source->knobCalls.empty());
        // And again.
        openSession();
        QVERIFY(view()->isOpen());
    }
    void everyActionIsACommand() {
        openSession();
        for (const char* id :
             {"session.play", "session.back", "session.forward", "session.turn_before",
              "session.next_turn", "session.begin", "session.end", "session.faster",
              "session.slower", "session.totals", "session.export", "session.close"})
            QVERIFY2(m_window->commands()->find(id), id);
        QVERIFY(m_window->commands()->run("session.next_turn"));
        QCOMPARE(player()->time(), 5.0);
        QSignalSpy totals(view(), &RecordedView::totalsWanted);
        QVERIFY(m_window->commands()->run("session.totals"));
        QCOMPARE(totals.size(), 1);
        QCOMPARE(totals[0][0].toString(), m_path);
        QVERIFY(m_window->commands()->run("session.close"));
        QVERIFY(!m_window->commands()->run("session.play"));
    }
    void whatLimitsItIsSaid() {
        openSession();
        const VerdictChip* chip = m_window->chatPage()->plots()->verdict();
        QTRY_VERIFY(chip->isVisible());
        // Without tokens nothing can be said, which is what it says.
        QCOMPARE(chip->verdicts()[0].name, std::string("too_short"));
        QVERIFY(chip->text().endsWith('.'));
        QVERIFY(m_window->commands()->run("session.verdicts"));
        QVERIFY(m_window->sheet()->isOpen());
        m_window->sheet()->closePanel();
        view()->close();
        QVERIFY(!chip->isVisible());
    }
    void itIsExportedWithItsSize() {
        openSession();
        view()->bar()->exportButton()->click();
        auto* panel = m_window->findChild<ExportPanel*>();
        QVERIFY(panel && panel->isOpen());
        QTRY_VERIFY(panel->estimateText().startsWith("About "));
        QVERIFY2(panel->command().startsWith("colibri export " + m_path + " --format perfetto -o "),
                 qPrintable(panel->command()));
        panel->format()->setCurrentIndex(2);
        emit panel->format()->activated(2);
        m_window->view()->setRange(5, 20);
        emit panel->range()->chosen(1);
        panel->range()->setCurrent(1);
        emit panel->range()->chosen(1);
        QVERIFY2(panel->command().contains("--format csv --from 5.0 --to 20.0"),
                 qPrintable(panel->command()));
        QSignalSpy exported(panel, &ExportPanel::exported);
        const QString csv = m_dir.filePath("out.csv");
        panel->exportTo(csv);
        QTRY_COMPARE(exported.size(), 1);
        QVERIFY(!panel->isOpen() && !panel->running());
        QVERIFY(fileContent(csv).size() > 500);
        // An existing file is not replaced, and the reason is shown.
        QSignalSpy failed(panel, &ExportPanel::failed);
        panel->exportTo(m_path);
        QTRY_COMPARE(failed.size(), 1);
        QVERIFY(failed[0][1].toString().contains("exist"));
        QFile::remove(csv);
    }
    void everyWindowWidthShowsIt() {
        openSession();
        for (const QSize size :
             {QSize(800, 500), QSize(1100, 700), QSize(2560, 1440), QSize(1440, 900)}) {
            m_window->resize(size);
            settle();
            QVERIFY(m_window->chatPage()->recordedChat()->isVisible());
            QVERIFY(view()->bar()->isVisible());
        }
        m_window->resize(800, 500);
        view()->close();
        tick();
        QVERIFY(m_window->chatPage()->chat()->isVisible());
    }
    void theFileNeverChanges() {
        const QByteArray before = fileContent(m_path);
        const QDateTime time = QFileInfo(m_path).lastModified();
        openSession();
        player()->setPlaying(true);
        player()->advance(3);
        settle();
        view()->close();
        QVERIFY(fileContent(m_path) == before);
        QCOMPARE(QFileInfo(m_path).lastModified(), time);
        QVERIFY(!QFile::exists(m_path + "-wal"));
    }
    void aDamagedSessionSaysWhatIsMissing() {
        const QString damaged = m_dir.filePath("damaged.colibri-session");
        QVERIFY(QFile::copy(m_path, damaged));
        {
            auto db = openWritable(damaged.toStdString());
            QVERIFY(db.ok());
            QCOMPARE(sqlite3_exec(db->get(), "DROP TABLE knobs", nullptr, nullptr, nullptr),
                     SQLITE_OK);
        }
        const auto session = openSessionFile(damaged.toStdString());
        QVERIFY2(session.ok(), session.status().text().c_str());
        view()->open(*session);
        const Message* message = m_window->messages()->inBar();
        QVERIFY(message && message->kind == Message::Kind::Error);
        QVERIFY2(message->detail.contains("damaged.colibri-session") &&
                     message->detail.contains("knobs"),
                 qPrintable(message->detail));
        QTRY_VERIFY(view()->source()->complete());
        player()->seek(45);
        settle();
        QCOMPARE(card(2), QString("45.0"));
    }
    void aSessionWithoutItsModelSaysWhy() {
        openSession();
        player()->seek(10);
        QTRY_VERIFY((settle(), !m_window->chatPage()->recordedChat()->conversation().isEmpty()));
        const Conversation& chat = m_window->chatPage()->recordedChat()->conversation();
        QCOMPARE(chat.turns.size(), 4);
        QVERIFY2(chat.turns[1].text.startsWith("n/a: "), qPrintable(chat.turns[1].text));
    }
};

QTEST_MAIN(TestWorkbenchReplay)
#include "test_workbench_replay.moc"
