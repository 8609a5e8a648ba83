// SPDX-License-Identifier: GPL-3.0-or-later
#include <QCheckBox>
#include <QClipboard>
#include <QFile>
#include <QLineEdit>
#include <QScrollArea>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "app/workbench/pages/at_load_panel.h"
#include "app/workbench/pages/convert_panel.h"
#include "app/workbench/pages/facts_page.h"
#include "app/workbench/pages/load_facts.h"
#include "app/workbench/pages/load_page.h"
#include "app/workbench/pages/memory_panel.h"
#include "app/workbench/pages/recent_table.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/pages/welcome_page.h"
#include "app/workbench/widgets/message_strip.h"
#include "engine/convert/open_source.h"
#include "engine/convert/pipeline/target.h"
#include "engine/store/calibration.h"
#include "pages_fixture.h"
#include "session_path.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

using State = SessionSource::State;
constexpr int64_t kGiB = 1ll << 30;

// Text and colour of a page, as people see them: something is painted, and the ground is the
// theme's.
QColor groundOf(QWidget& widget) {
    return widget.grab().toImage().pixelColor(widget.width() - 3, widget.height() - 3);
}

void write(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(bytes);
}

}  // namespace

class TestPages : public PagesFixture {
    Q_OBJECT

private slots:
    void initTestCase() { prepare(); }
    void init() { openPages(); }
    void cleanup() { closePages(); }
    void welcomeOpensByKeyboardAndMouse();
    void recentListFiltersAndMissingRowsAreRemoved();
    void machineStripSaysWhatIsMissing();
    void whatALoadMeasuredIsShown();
    void loadPageShowsTheModel();
    void estimateIsTheEnginesOwn();
    void overTheLimitNeedsTheBox();
    void enterLoadsAndActualMemoryIsShown();
    void commandLineIsTheOneToCopy();
    void sessionShowsItsFigures();
    void demoThatIsNotThereIsExplained();
    void demoLoadsAtOnce();
    void aFailedOpenStaysWhereOneWas();
    void cancelledLoadSaysWhatWasClosed();
    void nothingIsClippedInASmallWindow();
    void themeChangeRecolours();
};

void TestPages::welcomeOpensByKeyboardAndMouse() {
    WelcomePage* page = m_pages->welcome();
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(page));
    // Its own signals only: nothing opens a dialog here.
    WelcomePage alone(m_host->kept().recent);
    alone.resize(1440, 836);
    alone.show();
    QSignalSpy model(&alone, &WelcomePage::openModelRequested);
    QSignalSpy demo(&alone, &WelcomePage::demoRequested);
    QSignalSpy session(&alone, &WelcomePage::openSessionRequested);
    QSignalSpy diagnose(&alone, &WelcomePage::diagnoseRequested);
    QTest::mouseClick(alone.tile(0), Qt::LeftButton);
    QTest::keyClick(alone.tile(1), Qt::Key_Return);
    QTest::keyClick(alone.tile(2), Qt::Key_Space);
    QTest::mouseClick(alone.tile(3), Qt::LeftButton);
    QCOMPARE(model.count(), 1);
    QCOMPARE(demo.count(), 1);
    QCOMPARE(session.count(), 1);
    QCOMPARE(diagnose.count(), 1);
    // The picture's geometry: tiles 480 x 64, 12 apart.
    QCOMPARE(alone.tile(0)->size(), QSize(480, 64));
    QCOMPARE(alone.tile(1)->y() - alone.tile(0)->y(), 76);
    QCOMPARE(alone.recent()->x() - alone.tile(0)->geometry().right() - 1, 48);
    QTest::mouseClick(page->tile(3), Qt::LeftButton);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->diagnose()));
    QTest::keyClick(m_pages->diagnose(), Qt::Key_Escape);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(page));
}

void TestPages::recentListFiltersAndMissingRowsAreRemoved() {
    RecentEntry model, session;
    model.path = m_model;
    model.name = "Tiny";
    model.used = QDateTime::currentDateTime();
    session.kind = RecentEntry::Kind::Session;
    session.path = m_dir.filePath("gone.colibri-session");
    session.name = "Gone";
    session.used = model.used;
    m_host->kept().recent.add(model);
    m_host->kept().recent.add(session);
    RecentTable* table = m_pages->welcome()->recent();
    QCOMPARE(table->rows().size(), 2);
    m_host->kept().recent.checkFiles();
    QVERIFY(waitUntil([&] { return m_host->kept().recent.entries()[0].missing; }));
    QVERIFY(table->rows()[0]->accessibleName().startsWith("Remove"));
    QTest::keyClick(table->filter(), Qt::Key_Right);
    QCOMPARE(table->rows().size(), 1);
    QCOMPARE(table->rows()[0]->entry().name, QString("Tiny"));
    QTest::keyClick(table->filter(), Qt::Key_Right);
    QCOMPARE(table->rows()[0]->entry().name, QString("Gone"));
    QTest::mouseClick(table->rows()[0], Qt::LeftButton);
    QCOMPARE(m_host->kept().recent.entries().size(), 1);
    QVERIFY(m_pages->strip()->isVisible());
    QTest::qWait(10);  // a layout shows its new buttons in the event loop
    // Undo brings it back.
    for (Button* button : m_pages->strip()->findChildren<Button*>())
        if (button->text() == "Undo" && button->isVisible()) button->click();
    QCOMPARE(m_host->kept().recent.entries().size(), 2);
    table->filter()->setCurrent(1);
    emit table->filter()->chosen(1);
    QTest::keyClick(table->rows()[0], Qt::Key_Return);
    QVERIFY(waitUntil([&] { return m_pages->current() == m_pages->load(); }));
}

void TestPages::machineStripSaysWhatIsMissing() {
    MachineStrip strip;
    MachineFacts facts;
    facts.cores = 8;
    facts.threads = 16;
    facts.isa = "AVX2";
    facts.memoryTotal = 16 * kGiB;
    facts.memoryFree = 6 * kGiB;
    facts.gpuReason = "no NVIDIA driver";
    facts.gpuCounters = {{"NVML GPM", "n/a: older than Hopper", "Use PM sampling", true}};
    strip.setFacts(facts, {});
    const QString text = strip.accessibleName();
    QVERIFY2(text.contains("Disk: n/a, not measured yet"), qPrintable(text));
    QVERIFY2(text.contains("GPU: n/a, no NVIDIA driver"), qPrintable(text));
    QVERIFY2(text.contains("8 cores, AVX2"), qPrintable(text));
    Calibration rates;
    rates.diskBytesPerSecond = 6.8e9;
    rates.recordBytes = 4 << 20;
    strip.setFacts(facts, rates);
    QVERIFY(strip.accessibleName().contains("6.80 GB/s"));
    const QString report = machineText(machineSections(facts, {}, "somewhere"));
    QVERIFY2(report.contains("n/a: no NVIDIA driver"), qPrintable(report));
    QVERIFY(report.contains("n/a: not measured yet"));
    QVERIFY(report.contains("n/a: older than Hopper") && report.contains("Use PM sampling"));
}

// Disk and memory are measured once, by the engine, and every page knows.
void TestPages::whatALoadMeasuredIsShown() {
    const auto info = openContainer(m_model.toStdString());
    QVERIFY(info.ok());
    Calibration rates{.diskBytesPerSecond = 3.2e9,
                      .memoryBytesPerSecond = 21e9,
                      .direct = true,
                      .reads = "io_uring",
                      .reason = "",
                      .recordBytes = 6144,
                      .measuredAt = 1'700'000'000};
    QVERIFY(keepCalibration(*info, rates).ok());
    m_pages->showDiagnose();  // looks again
    const auto strip = [this] { return m_pages->welcome()->machine()->accessibleName(); };
    QVERIFY2(waitUntil([&] { return strip().contains("21.0 GB/s measured"); }),
             qPrintable(strip()));
    // Reads of 6 KiB tell of this model's experts, not of the disk.
    QVERIFY2(strip().contains("Disk: n/a"), qPrintable(strip()));
    ContainerInfo large = *info;
    for (ExpertLayer& layer : large.expertLayers) layer.recordBytes = 4 << 20;
    rates.recordBytes = 4 << 20;
    rates.diskBytesPerSecond = 5.5e9;
    QVERIFY(keepCalibration(large, rates).ok());
    m_pages->showDiagnose();
    QVERIFY2(waitUntil([&] { return strip().contains("5.50 GB/s"); }), qPrintable(strip()));
    rates.recordBytes = 6144;
    const QString report =
        machineText(machineSections(m_pages->facts(), machineCalibration(), "somewhere"));
    QVERIFY2(!report.contains("not measured yet") && report.contains("2023-11-1"),
             qPrintable(report));
    open(m_model);
    for (const Fact& fact : tokenFactList(*info, *m_pages->load()->inspection().calibration))
        QVERIFY2(!fact.value.contains("not measured"), qPrintable(fact.name));
    // Nothing of another disk or machine is taken for it, a newer figure goes first.
    rates.diskBytesPerSecond = 4.5e9;
    rates.measuredAt += 60;
    QVERIFY(keepCalibration(*info, rates).ok());
    QCOMPARE(newestCalibration()->diskBytesPerSecond, 4.5e9);
    QCOMPARE(machineCalibration().diskBytesPerSecond, 5.5e9);
}

void TestPages::loadPageShowsTheModel() {
    open(m_model);
    LoadPage* page = m_pages->load();
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(page));
    const ContainerInfo& info = page->inspection().container;
    QStringList tags;
    for (const TagLook& tag : page->badges()->tags()) tags << tag.text;
    QVERIFY2(tags.join("; ").contains("complete: "), qPrintable(tags.join("; ")));
    QVERIFY2(tags.contains(QString("%1 dense tensors, 16 experts").arg(info.tensors.size())),
             qPrintable(tags.join("; ")));
    QVERIFY(tags.contains("template compiles"));
    QMap<QString, QString> facts;
    for (const Fact& fact : modelFactList(info)) facts[fact.name] = fact.value;
    QCOMPARE(facts["Family"], QString("Qwen3-MoE type"));
    QCOMPARE(facts["Layers"], QString("2, all with experts"));
    QCOMPARE(facts["Experts"], QString("8 per layer, top-2"));
    QCOMPARE(facts["Attention"], QString("4 heads, 2 KV, 32"));
    QCOMPARE(facts["Vocabulary"], QString("499"));
    QString unit;
    int64_t tensors = 0;
    for (const auto& row : weightRows(info, &unit))
        tensors += QString(row[1].text).remove(',').toLongLong();
    QCOMPARE(tensors, int64_t(info.tensors.size()) + 2 * 8 * 3);
    QTest::keyClick(page, Qt::Key_Escape);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->welcome()));
}

void TestPages::estimateIsTheEnginesOwn() {
    open(m_model);
    LoadPage* page = m_pages->load();
    SliderRow* cache = page->atLoad()->slider(KnobId::ExpertCacheSize);
    cache->slider()->setFocus();
    QTest::keyClick(cache->slider(), Qt::Key_Home);
    QCOMPARE(cache->value(), int64_t(1));
    QTest::keyClick(cache->slider(), Qt::Key_Right);
    QTest::keyClick(cache->slider(), Qt::Key_Right);
    QCOMPARE(*page->atLoad()->knobs()[size_t(KnobId::ExpertCacheSize)], int64_t(3));
    const ContainerInfo& info = page->inspection().container;
    LoadShape shape = loadShape(info, page->atLoad()->knobs());
    QCOMPARE(shape.cacheSize, int64_t(3));
    QCOMPARE(page->memoryPanel()->estimate().total(), estimateMemory(info, shape).total());
    Segment* kv = page->atLoad()->segment(KnobId::KvDtype);
    const int64_t before = page->memoryPanel()->estimate().kvCache;
    kv->setFocus();
    QTest::keyClick(kv, Qt::Key_Left);  // f16 -> f32
    QCOMPARE(page->memoryPanel()->estimate().kvCache, 2 * before);
    // What fits: the estimate of the largest cache is within the limit, one more is not.
    shape.cacheSize = 5;
    const int64_t limit = estimateMemory(info, shape).total() + 100;
    KnobValues knobs = page->atLoad()->knobs();
    knobs[size_t(KnobId::KvDtype)] = int64_t(KvType::F16);
    QCOMPARE(largestCache(info, knobs, limit), int64_t(5));
}

void TestPages::overTheLimitNeedsTheBox() {
    open(m_model);
    LoadPage* page = m_pages->load();
    page->memoryPanel()->setFree(kGiB + 4096);  // all but a page is reserve
    QVERIFY(!page->memoryPanel()->fits());
    QVERIFY(!page->mainButton()->isEnabled());
    QTest::keyClick(page, Qt::Key_Return);
    QCOMPARE(m_host->state(), State::NoModel);
    page->overLimit()->setFocus();
    QTest::keyClick(page->overLimit(), Qt::Key_Space);
    QVERIFY(page->overLimit()->isChecked());
    QVERIFY(page->mainButton()->isEnabled());
    QTest::keyClick(page->overLimit(), Qt::Key_Space);
    page->memoryPanel()->setFree(8 * kGiB);
    QVERIFY(page->mainButton()->isEnabled());
}

void TestPages::enterLoadsAndActualMemoryIsShown() {
    open(m_model);
    QSignalSpy ready(m_pages.get(), &StartPages::modelReady);
    m_pages->load()->memoryPanel()->setFree(8 * kGiB);
    QTest::keyClick(m_pages->load(), Qt::Key_Return);
    QCOMPARE(m_host->state(), State::Loading);
    QVERIFY(m_pages->load()->busy());
    QVERIFY(waitUntil([&] { return ready.count() == 1; }));
    QCOMPARE(m_host->state(), State::Ready);
    QVERIFY(!m_pages->load()->busy());
    QCOMPARE(m_pages->load()->mainButton()->text(), QString("Reload"));
    const auto table = m_pages->load()->memoryPanel()->findChild<DataTable*>();
    QVERIFY(table);
    QVERIFY(table->rows()[0][4].text != "after loading");
    // Another model's page says nothing of this one's memory.
    const QString other = copyModel("other");
    open(other);
    QVERIFY(waitUntil([&] { return m_pages->load()->inspection().path == other.toStdString(); }));
    QCOMPARE(table->rows()[0][4].text, QString("after loading"));
    QCOMPARE(m_pages->load()->mainButton()->text(), QString("Load"));
    m_pages->showLoaded();
    QVERIFY(waitUntil([&] { return m_pages->load()->inspection().path == m_model.toStdString(); }));
    QCOMPARE(m_pages->load()->mainButton()->text(), QString("Reload"));
}

void TestPages::commandLineIsTheOneToCopy() {
    open(m_model);
    LoadPage* page = m_pages->load();
    const QString command = page->command();
    QVERIFY2(command.startsWith("colibri chat " + m_model + " "), qPrintable(command));
    QVERIFY2(command.contains("--kv-dtype f16") && command.contains("--device cpu"),
             qPrintable(command));
    auto* line = page->findChild<CommandLine*>();
    QVERIFY(line);
    QTest::mouseClick(line->findChild<QAbstractButton*>(), Qt::LeftButton);
    QCOMPARE(QGuiApplication::clipboard()->text(), command);
    QCOMPARE(shellQuoted("a b"), QString("'a b'"));
    QCOMPARE(shellQuoted("it's"), QString("'it'\\''s'"));
    QCOMPARE(shellQuoted("/plain/path-1.0"), QString("/plain/path-1.0"));
    QCOMPARE(shellQuoted("$(rm)"), QString("'$(rm)'"));
}

void TestPages::sessionShowsItsFigures() {
    m_host->load(m_model.toStdString(), {});
    QVERIFY(waitUntil([&] { return m_host->state() == State::Ready; }));
    const QString path = sessionPath(*m_host);
    m_host->close();
    QVERIFY(waitUntil([&] {
        const auto summary = readSessionSummary(path.toStdString());
        return summary && summary->endedCleanly;
    }));
    // The window plays it; its totals are on a page of their own.
    QSignalSpy opened(m_pages.get(), &StartPages::sessionOpened);
    m_pages->openPath(path);
    QVERIFY(waitUntil([&] { return opened.size() == 1; }));
    m_pages->showTotals(path);
    QVERIFY(
        waitUntil([&] { return m_pages->current() == static_cast<QWidget*>(m_pages->session()); }));
    QCOMPARE(m_pages->session()->path(), path);
    const QString text = m_pages->session()->text();
    QVERIFY2(text.contains("n/a: no lookups"), qPrintable(text));
    QStringList names;
    for (const MachineSection& section : m_pages->session()->sections())
        for (const MachineFact& fact : section.facts) names << fact.name;
    // Read by people: no keys of the file.
    for (const char* key : {"expert bytes", "isa", "top k", "model dir", "expert_cache_size"})
        QVERIFY2(!names.contains(key), key);
    QVERIFY2(names.contains("Expert size") && names.contains("Cache size"),
             qPrintable(names.join(", ")));
    QVERIFY(text.contains(path));
    QCOMPARE(m_host->kept().recent.entries()[0].path, path);
    // In a wide window all of it stands in two columns, in a narrow one under one another.
    const auto lefts = [&] {
        QSet<int> found;
        for (const FactList* list : m_pages->session()->findChildren<FactList*>())
            if (list->isVisible()) found << list->mapTo(m_pages.get(), QPoint()).x();
        return found.size();
    };
    QWidget* window = m_pages->window();
    window->resize(1400, 800);
    QTRY_COMPARE(lefts(), 2);
    window->resize(900, 700);
    QTRY_COMPARE(lefts(), 1);
    QVERIFY2(!text.contains(QRegularExpression("\\b1 (threads|layers)\\b")), qPrintable(text));
    QVERIFY2(!text.contains("0 MB/s"), qPrintable(text));
}

void TestPages::demoThatIsNotThereIsExplained() {
    qputenv("COLIBRI_DEMO_MODEL", m_dir.filePath("no-demo").toUtf8());
    m_pages->openDemo();
    QVERIFY(waitUntil([&] { return m_pages->strip()->isVisible(); }));
    QVERIFY(m_pages->strip()->detail().contains("no-demo"));
    qunsetenv("COLIBRI_DEMO_MODEL");
}

void TestPages::demoLoadsAtOnce() {
    qputenv("COLIBRI_DEMO_MODEL", m_model.toUtf8());
    QSignalSpy ready(m_pages.get(), &StartPages::modelReady);
    m_pages->openDemo();
    QVERIFY(waitUntil([&] { return ready.count() == 1; }));
    QCOMPARE(m_host->knobState(KnobId::LinkLimit).effective, int64_t(25));
    qunsetenv("COLIBRI_DEMO_MODEL");
}

// The page of another model came up under the error, with its main button one Enter away.
void TestPages::aFailedOpenStaysWhereOneWas() {
    const QString broken = m_dir.filePath("broken/tiny");
    QDir().mkpath(broken);
    write(broken + "/model.json", "{");
    QSignalSpy failed(m_pages.get(), &StartPages::openFailed);
    QSignalSpy wanted(m_pages.get(), &StartPages::wanted);
    open(m_model);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->load()));
    m_pages->showWelcome();
    m_pages->openPath(broken);
    QVERIFY(waitUntil([&] { return failed.count() == 1; }));
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->welcome()));
    // Two folders are called alike: the name comes with its folder, and first.
    QVERIFY2(m_pages->strip()->text().contains("broken/tiny could not be opened"),
             qPrintable(m_pages->strip()->text()));
    QVERIFY(!failed[0][2].toBool());
    // From the chat: these pages do not come up at all, the window says it.
    m_pages->hide();
    wanted.clear();
    m_pages->openPath(broken);
    QVERIFY(waitUntil([&] { return failed.count() == 2; }));
    QVERIFY(failed[1][2].toBool());
    QVERIFY(failed[1][0].toString().contains("broken/tiny"));
    QCOMPARE(wanted.count(), 0);
    m_pages->show();
}

void TestPages::cancelledLoadSaysWhatWasClosed() {
    open(m_model);
    m_pages->load()->start();
    QVERIFY(waitUntil([&] { return m_host->state() == SessionSource::State::Ready; }));
    const QString other = copyModel("another");
    m_pages->openPath(other);
    QVERIFY(waitUntil(
        [&] { return m_pages->load()->inspection().path.string() == other.toStdString(); }));
    m_pages->load()->start();
    m_pages->load()->cancel();
    QVERIFY(waitUntil([&] { return m_host->state() == SessionSource::State::NoModel; }));
    MessageStrip* strip = m_pages->load()->strip();
    QVERIFY2(strip->detail().contains("was closed to make room"), qPrintable(strip->detail()));
    Button* again = nullptr;
    for (auto* button : strip->findChildren<Button*>())
        if (button->text().startsWith("Load ") && button->text().endsWith(" again")) again = button;
    QVERIFY(again);
    QTest::mouseClick(again, Qt::LeftButton);
    QVERIFY(waitUntil([&] { return m_host->state() == SessionSource::State::Ready; }));
    QCOMPARE(m_host->engine()->info().dir.string(), m_model.toStdString());
}

void TestPages::nothingIsClippedInASmallWindow() {
    m_pages->resize(800, 436);
    open(m_model);
    const auto inside = [](QWidget* page) {
        for (QWidget* widget : page->findChildren<QWidget*>()) {
            if (!widget->isVisible() || widget->width() == 0) continue;
            const int left = widget->mapTo(page, QPoint(0, 0)).x();
            if (left < 0 || left + widget->width() > page->width())
                return widget->metaObject()->className();
        }
        return "";
    };
    QTest::qWait(20);
    QCOMPARE(QString(inside(m_pages->load())), QString());
    m_pages->showWelcome();
    QTest::qWait(20);
    QCOMPARE(QString(inside(m_pages->welcome())), QString());
    m_pages->showDiagnose();
    QTest::qWait(20);
    QCOMPARE(QString(inside(m_pages->diagnose())), QString());
}

void TestPages::themeChangeRecolours() {
    open(m_model);
    for (QWidget* page : std::initializer_list<QWidget*>{m_pages->load(), m_pages->welcome()}) {
        Theme::get().setMode(Theme::Mode::Dark);
        QCOMPARE(groundOf(*page), tone(Tone::Bg1));
        Theme::get().setMode(Theme::Mode::Light);
        QCOMPARE(groundOf(*page), tone(Tone::Bg1));
        QVERIFY(tone(Tone::Bg1).lightness() > 200);
    }
    Theme::get().setMode(Theme::Mode::Dark);
}

int main(int argc, char** argv) {
    Q_INIT_RESOURCE(icons);
    Q_INIT_RESOURCE(themes);
    QApplication app(argc, argv);
    TestPages test;
    return QTest::qExec(&test, argc, argv);
}
#include "test_pages.moc"
