// SPDX-License-Identifier: GPL-3.0-or-later
// Try a shape: from the welcome page to the load page of the model that was made.
#include <QDir>

#include "app/workbench/pages/load_page.h"
#include "app/workbench/pages/shape_page.h"
#include "app/workbench/pages/shape_panel.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/pages/welcome_page.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/page_parts.h"
#include "test_model.h"
#include "window_test.h"

using namespace colibri;
using namespace colibri::ui;

class TestShapePage : public QObject {
    Q_OBJECT

    std::unique_ptr<Sandbox> m_sandbox;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<StartPages> m_pages;
    QString m_folder;  // empty at the begin of each test
    int m_run = 0;

    ShapePage* page() { return m_pages->shape(); }
    ShapePanel* panel() { return page()->panel(); }
    void type(const QString& path) {
        panel()->target()->setFocus();
        panel()->target()->selectAll();
        QTest::keyClicks(panel()->target(), path);
    }
    void choose(const char* shape) {
        panel()->shape()->setCurrentIndex(panel()->shape()->findData(shape));
    }
    bool settled() {
        return waitUntil([&] { return panel()->ready(); });
    }
    QStringList left() {
        return QDir(m_folder).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    }
    QString fact(const QString& name) {
        for (const Fact& fact : page()->facts()->facts())
            if (fact.name == name) return fact.value;
        return {};
    }

private slots:
    void initTestCase() { m_sandbox = std::make_unique<Sandbox>(); }
    void init() {
        ++m_run;
        m_folder = m_sandbox->path(QString("made-%1").arg(m_run));
        QVERIFY(QDir().mkpath(m_folder));
        m_host = std::make_unique<EngineHost>(m_sandbox->path(QString("data-%1").arg(m_run)));
        m_pages = std::make_unique<StartPages>(*m_host);
        m_pages->resize(1440, 836);
        m_pages->show();
        QTest::mouseClick(m_pages->welcome()->tile(4), Qt::LeftButton);
        QCOMPARE(m_pages->current(), static_cast<QWidget*>(page()));
    }
    void cleanup() {
        m_pages.reset();
        m_host.reset();
    }

    void aShapeIsMadeAndOpened() {
        choose("tiny");
        type(m_folder + "/tiny-model");
        QVERIFY(settled());
        QCOMPARE(fact("Experts"), QString("16 per layer, top-4"));
        const QString q4 = panel()->note();
        QVERIFY2(q4.contains("on the disk"), qPrintable(q4));
        Segment* types = panel()->types();
        types->setFocus();
        for (int i = 0; i < types->count(); ++i) QTest::keyClick(types, Qt::Key_Right);  // the last
        QVERIFY(settled());
        QVERIFY(panel()->note() != q4);  // f32 takes more
        panel()->skew()->slider()->setFocus();
        QTest::keyClick(panel()->skew()->slider(), Qt::Key_Right);
        QVERIFY(settled());
        QCOMPARE(panel()->command(), "colibri synth tiny -o " + m_folder +
                                         "/tiny-model --quant f32 --skew 0.05 --seed 1");
        page()->setFocus();
        QTest::keyClick(page(), Qt::Key_Return);
        QVERIFY(page()->busy());
        QVERIFY(waitUntil([&] { return m_pages->current() == m_pages->load(); }));
        QCOMPARE(m_pages->load()->inspection().path.string(),
                 (m_folder + "/tiny-model").toStdString());
        QCOMPARE(m_pages->load()->inspection().container.expertType, DType::F32);
        QCOMPARE(left(), QStringList{"tiny-model"});
    }

    void cancelLeavesNothing() {
        choose("olmoe");
        QTest::keyClick(panel()->layers()->slider(), Qt::Key_Home);
        type(m_folder + "/large");
        QVERIFY(settled());
        QCOMPARE(fact("Layers"), QString("1, all with experts"));
        QTest::mouseClick(page()->mainButton(), Qt::LeftButton);
        QVERIFY(page()->busy());
        QVERIFY(waitUntil([&] { return !left().isEmpty(); }));
        // Nothing else is opened meanwhile.
        m_pages->openDemo();
        QCOMPARE(m_pages->current(), static_cast<QWidget*>(page()));
        QTest::keyClick(page(), Qt::Key_Escape);
        QVERIFY(waitUntil([&] { return !page()->busy(); }));
        QVERIFY2(page()->strip()->text().contains("not created"),
                 qPrintable(page()->strip()->text()));
        QCOMPARE(left(), QStringList());
        QCOMPARE(m_pages->current(), static_cast<QWidget*>(page()));
    }

    void closingTheWindowLeavesNothing() {
        choose("olmoe");
        QTest::keyClick(panel()->layers()->slider(), Qt::Key_Home);
        type(m_folder + "/large");
        QVERIFY(settled());
        QTest::mouseClick(page()->mainButton(), Qt::LeftButton);
        QVERIFY(waitUntil([&] { return !left().isEmpty(); }));
        m_pages.reset();
        QCOMPARE(left(), QStringList());
    }

    void aTargetThatCannotBeIsRefused_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("says");
        QTest::newRow("already exists") << "/."
                                        << "already exists";
        QTest::newRow("no folder above") << "/none/model"
                                         << "Create it first";
    }
    void aTargetThatCannotBeIsRefused() {
        QFETCH(QString, name);
        QFETCH(QString, says);
        choose("tiny");
        QVERIFY(QDir(m_folder).mkpath("there"));
        type(name == "/." ? m_folder + "/there" : m_folder + name);
        QVERIFY(waitUntil([&] { return panel()->note().contains(says); }));
        QVERIFY(!page()->mainButton()->isEnabled());
        page()->setFocus();
        QTest::keyClick(page(), Qt::Key_Return);
        QVERIFY(!page()->busy());
        QTest::keyClick(page(), Qt::Key_Escape);
        QCOMPARE(m_pages->current(), static_cast<QWidget*>(m_pages->welcome()));
    }

    void theNextOneIsSuggestedBesideIt() {
        choose("tiny");
        type(m_folder + "/first");
        QVERIFY(settled());
        QTest::mouseClick(page()->mainButton(), Qt::LeftButton);
        QVERIFY(waitUntil([&] { return m_pages->current() == m_pages->load(); }));
        ShapePanel another;
        QCOMPARE(another.target()->text(), m_folder + "/olmoe-synthetic-q4_0");
    }
};

QTEST_MAIN(TestShapePage)
#include "test_shape_page.moc"
