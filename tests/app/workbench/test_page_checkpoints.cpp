// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of what is not ready to be loaded: damaged models, checkpoints and their conversion.
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

using namespace colibri;
using namespace colibri::ui;

namespace {

using State = SessionSource::State;

void write(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(bytes);
}

}  // namespace

class TestPageCheckpoints : public PagesFixture {
    Q_OBJECT

private slots:
    void initTestCase() { prepare(); }
    void init() { openPages(); }
    void cleanup() { closePages(); }
    void damagedModelIsNamed();
    void brokenTemplateIsABadge();
    void whatACheckpointLacksIsABadge();
    void whatIsNoModelIsRefused();
    void verificationFindsAChangedByte();
    void checkpointIsConvertedAndOpened();
    void checkpointConvertedBeforeIsOpened();
    void existingTargetIsRefused();
    void stoppedConversionCanBeDiscarded();
    void whatAStoppedConversionLeftIsSeenAtTheTargetLater();
};

void TestPageCheckpoints::damagedModelIsNamed() {
    const QString copy = copyModel("damaged");
    QFile dense(copy + "/dense.bin");
    QVERIFY(dense.resize(dense.size() - 1));
    open(copy);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->welcome()));
    const QString detail = m_pages->strip()->detail();
    QVERIFY2(detail.contains("dense.bin"), qPrintable(detail));
    QVERIFY2(detail.contains(QString::number(dense.size())), qPrintable(detail));
    // Copy gives the whole text.
    for (Button* button : m_pages->strip()->findChildren<Button*>())
        if (button->text() == "Copy") button->click();
    QVERIFY(QGuiApplication::clipboard()->text().contains(detail));
}

void TestPageCheckpoints::brokenTemplateIsABadge() {
    const QString copy = copyModel("template");
    write(copy + "/chat_template.jinja", "{% for m in messages %}{{ m.content }");
    open(copy);
    QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->load()));
    QStringList tags;
    for (const TagLook& tag : m_pages->load()->badges()->tags()) tags << tag.text;
    QVERIFY2(tags.contains("template fails"), qPrintable(tags.join("; ")));
    QFile::remove(copy + "/chat_template.jinja");
    QFile::remove(copy + "/tokenizer.json");
    open(copy);
    QVERIFY(waitUntil([&] {
        tags.clear();
        for (const TagLook& tag : m_pages->load()->badges()->tags()) tags << tag.text;
        return tags.contains("no chat template") && tags.contains("no tokenizer");
    }));
}

// Before the conversion, which may take long.
void TestPageCheckpoints::whatACheckpointLacksIsABadge() {
    const QString copy = m_dir.filePath("bare checkpoint");
    std::filesystem::copy(goldenModel("olmoe").toStdString(), copy.toStdString());
    QFile::remove(copy + "/chat_template.jinja");
    write(copy + "/tokenizer.json", "{\"model\": {");
    open(copy);
    QCOMPARE(m_pages->load()->inspection().kind, Inspection::Kind::Checkpoint);
    QStringList tags;
    for (const TagLook& tag : m_pages->load()->badges()->tags()) tags << tag.text;
    for (const char* tag : {"needs conversion", "tokenizer cannot be used", "no chat template"})
        QVERIFY2(tags.contains(tag), qPrintable(tags.join("; ")));
}

void TestPageCheckpoints::whatIsNoModelIsRefused() {
    const QString file = m_dir.filePath("notes.txt");
    write(file, "hello");
    for (const QString& path : {file, m_dir.filePath("not-there"), m_dir.path()}) {
        m_pages->strip()->hide();
        open(path);
        QVERIFY(m_pages->strip()->isVisible());
        QVERIFY2(m_pages->strip()->detail().contains(path), qPrintable(m_pages->strip()->detail()));
        // Seen, not only shown: a strip without height is no message.
        QTRY_VERIFY(m_pages->strip()->height() >= 40);
        for (QAbstractButton* button : m_pages->strip()->findChildren<QAbstractButton*>())
            if (button->isVisible()) QVERIFY(m_pages->strip()->rect().contains(button->geometry()));
    }
    write(m_dir.filePath("broken.colibri-session"), "this is no database");
    m_pages->strip()->hide();
    open(m_dir.filePath("broken.colibri-session"));
    QVERIFY(m_pages->strip()->isVisible());
}

void TestPageCheckpoints::verificationFindsAChangedByte() {
    const QString copy = copyModel("changed");
    open(copy);
    LoadPage* page = m_pages->load();
    const auto tags = [&] {
        QStringList texts;
        for (const TagLook& tag : page->badges()->tags()) texts << tag.text;
        return texts;
    };
    page->verify();
    QVERIFY(page->busy());
    QVERIFY(waitUntil([&] { return !page->busy(); }));
    QVERIFY(tags().contains("hashes match"));
    QFile expert(copy + "/experts/layer_001.bin");
    QVERIFY(expert.open(QIODevice::ReadWrite));
    expert.seek(10);
    char byte = 0;
    expert.getChar(&byte);
    expert.seek(10);
    expert.putChar(char(byte ^ 1));
    expert.close();
    page->verify();
    QVERIFY(waitUntil([&] { return !page->busy(); }));
    QVERIFY(!tags().contains("hashes match"));
    QVERIFY(page->strip()->isVisible());
    QVERIFY2(page->strip()->detail().contains("layer 1"), qPrintable(page->strip()->detail()));
}

void TestPageCheckpoints::checkpointIsConvertedAndOpened() {
    open(goldenModel("olmoe"));
    LoadPage* page = m_pages->load();
    QCOMPARE(page->inspection().kind, Inspection::Kind::Checkpoint);
    QCOMPARE(page->mainButton()->text(), QString("Convert"));
    const QString target = m_dir.filePath("converted");
    page->convertPanel()->target()->setText(target);
    emit page->convertPanel()->target()->textEdited(target);
    QTest::keyClick(page->convertPanel()->types(), Qt::Key_Right);  // q8_0 -> q4_0
    QVERIFY(waitUntil([&] { return page->convertPanel()->ready(); }));
    QVERIFY(page->command().contains("--dtype q4_0"));
    QVERIFY(page->command().contains(target));
    QTest::keyClick(page, Qt::Key_Return);
    QVERIFY(waitUntil([&] { return page->inspection().kind == Inspection::Kind::Container; }));
    QCOMPARE(page->inspection().path, std::filesystem::path(target.toStdString()));
    QCOMPARE(page->inspection().container.expertType, DType::Q4_0);
    QVERIFY(page->mainButton()->text() == "Load");
}

// Its conversion lies where it is looked for: the model is there at once, and says why.
void TestPageCheckpoints::checkpointConvertedBeforeIsOpened() {
    const QString folder = m_dir.filePath("kept"), source = folder + "/tiny";
    QVERIFY(QDir().mkpath(folder));
    std::filesystem::copy(goldenModel("olmoe").toStdString(), source.toStdString());
    open(source);
    LoadPage* page = m_pages->load();
    QCOMPARE(page->inspection().kind, Inspection::Kind::Checkpoint);
    const QString target = page->convertPanel()->target()->text();
    QCOMPARE(target, source + "-q8_0");
    QVERIFY(waitUntil([&] { return page->convertPanel()->ready(); }));
    QTest::keyClick(page, Qt::Key_Return);
    QVERIFY(waitUntil([&] { return page->inspection().kind == Inspection::Kind::Container; }));
    open(source);
    QVERIFY(waitUntil([&] { return page->inspection().convertedFrom == source.toStdString(); }));
    QCOMPARE(page->inspection().kind, Inspection::Kind::Container);
    QCOMPARE(page->inspection().path, std::filesystem::path(target.toStdString()));
    // Another checkpoint of that name is another model.
    QFile config(source + "/config.json");
    QVERIFY(config.open(QIODevice::Append));
    config.write(" \n");
    config.close();
    open(source);
    QVERIFY(waitUntil([&] { return page->inspection().kind == Inspection::Kind::Checkpoint; }));
}

void TestPageCheckpoints::existingTargetIsRefused() {
    open(goldenModel("olmoe"));
    LoadPage* page = m_pages->load();
    page->convertPanel()->target()->setText(m_model);
    emit page->convertPanel()->target()->textEdited(m_model);
    QTest::qWait(50);
    QVERIFY(waitUntil([&] {
        for (Note* note : page->convertPanel()->findChildren<Note*>())
            if (note->text().contains("already exists")) return true;
        return false;
    }));
    QVERIFY(!page->mainButton()->isEnabled());
}

void TestPageCheckpoints::stoppedConversionCanBeDiscarded() {
    const std::filesystem::path target = m_dir.filePath("stopped").toStdString();
    QCOMPARE(partialBytes(target), int64_t(0));
    QVERIFY(discardPartial(target).ok());  // nothing there is nothing to do
    ConvertOptions options;
    options.source = goldenModel("qwen3moe").toStdString();
    options.target = target;
    options.dtype = DType::F32;
    CancelFlag cancel{false};
    DiskHooks hooks;
    int writes = 0;
    hooks.beforeWrite = [&](const std::filesystem::path&, int64_t) {
        if (++writes == 5) cancel = true;
        return 0;
    };
    QCOMPARE(convertModel(options, {}, &cancel, hooks).status().code(), Code::Cancelled);
    QVERIFY(partialBytes(target) > 0);
    QVERIFY(discardPartial(target).ok());
    QVERIFY(!std::filesystem::exists(target.string() + ".partial"));
    // A folder of someone else is left alone.
    const QString foreign = m_dir.filePath("foreign.partial");
    QDir().mkpath(foreign);
    write(foreign + "/mine.txt", "keep");
    QVERIFY(discardPartial(m_dir.filePath("foreign").toStdString()).ok());
    QVERIFY(QFile::exists(foreign + "/mine.txt"));
}

void TestPageCheckpoints::whatAStoppedConversionLeftIsSeenAtTheTargetLater() {
    open(goldenModel("olmoe"));
    ConvertPanel* panel = m_pages->load()->convertPanel();
    const std::filesystem::path target = m_dir.filePath("stopped before").toStdString();
    ConvertOptions options = panel->options();
    options.target = target;
    CancelFlag cancel{false};
    DiskHooks hooks;
    int writes = 0;
    hooks.beforeWrite = [&](const std::filesystem::path&, int64_t) {
        if (++writes == 5) cancel = true;
        return 0;
    };
    QCOMPARE(convertModel(options, {}, &cancel, hooks).status().code(), Code::Cancelled);
    Button* discard = panel->targetFolder()->discardButton();
    QVERIFY(discard->isHidden());
    panel->target()->setText(QString::fromStdString(target.string()));
    emit panel->target()->textEdited(panel->target()->text());
    QVERIFY(waitUntil([&] { return panel->ready(); }));
    QVERIFY(discard->isVisible());
    QVERIFY2(discard->text().startsWith("Discard ") && discard->text().endsWith("iB"),
             qPrintable(discard->text()));
    QVERIFY(panel->targetFolder()->note().contains("before the conversion stopped"));
    QTest::mouseClick(discard, Qt::LeftButton);
    QVERIFY(waitUntil([&] { return discard->isHidden() && panel->ready(); }));
    QVERIFY(!std::filesystem::exists(target.string() + ".partial"));
    QVERIFY(!panel->targetFolder()->note().contains("before the conversion stopped"));
}

QTEST_MAIN(TestPageCheckpoints)
#include "test_page_checkpoints.moc"
