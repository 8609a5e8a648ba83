// SPDX-License-Identifier: GPL-3.0-or-later
// The arrows of the architecture: app -> profiler -> engine -> kernels, and no Qt below app.
#include <QDirIterator>
#include <QRegularExpression>
#include <QTest>

class TestLayers : public QObject {
    Q_OBJECT
private slots:
    void arrowsPointDown_data()
    {
        QTest::addColumn<QString>("folder");
        QTest::addColumn<QString>("forbidden");
        QTest::newRow("kernels") << "kernels" << "engine|profiler|app";
        QTest::newRow("engine") << "engine" << "profiler|app";
        QTest::newRow("profiler") << "profiler" << "app";
    }
    void arrowsPointDown()
    {
        QFETCH(QString, folder);
        QFETCH(QString, forbidden);
        const QRegularExpression upward("#\\s*include\\s*[<\"](" + forbidden + ")/");
        const QRegularExpression qt("#\\s*include\\s*[<\"](Q[A-Z]|Qt[A-Z]|qcustomplot)");
        int files = 0;
        QDirIterator it(COLIBRI_SOURCE_DIR "/" + folder, {"*.h", "*.cpp", "*.c", "*.cu", "*.cuh"},
                        QDir::Files, QDirIterator::Subdirectories);
        while (it.hasNext()) {
            QFile file(it.next());
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QString text = QString::fromUtf8(file.readAll());
            QVERIFY2(!upward.match(text).hasMatch(), qPrintable(file.fileName()));
            QVERIFY2(!qt.match(text).hasMatch(), qPrintable(file.fileName()));
            ++files;
        }
        QVERIFY(files > 0);
    }
    void filesStayReadable()
    {
        for (const char* folder : {"kernels", "engine", "profiler", "app", "tests"}) {
            QDirIterator it(COLIBRI_SOURCE_DIR "/" + QString(folder),
                            {"*.h", "*.cpp", "*.py", "*.sh"}, QDir::Files,
                            QDirIterator::Subdirectories);
            while (it.hasNext()) {
                QFile file(it.next());
                QVERIFY(file.open(QIODevice::ReadOnly));
                QVERIFY2(file.readAll().count('\n') <= 600, qPrintable(file.fileName()));
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestLayers)
#include "test_layers.moc"
