// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of the architecture, app -> profiler -> engine -> kernels: each folder may include
// only from those below it, and there is no Qt below app.
#include <QDir>
#include <QDirIterator>
#include <QFileInfo>
#include <QRegularExpression>
#include <QTest>

class TestLayers : public QObject {
    Q_OBJECT

    // All folders with sources, each after the folders it may include from. Add new folders here.
    static QStringList order() {
        return {"kernels",
                "kernels/scalar",
                "kernels/simd",
                "kernels/avx2",
                "kernels/avx512",
                "engine/base",
                "engine/telemetry",
                "engine/knobs",
                "engine/unicode",
                "engine/jinja",
                "engine/text",
                "engine/model",
                "engine/store",
                "engine/convert/source",
                "engine/convert/pipeline",
                "engine/convert/gguf",
                "engine/convert/flat",
                "engine/convert/hf",
                "engine/convert/synth",
                "engine/convert",
                "engine/runtime",
                "engine/include",
                "engine/api",
                "profiler/gpu",
                "profiler/machine",
                "profiler/metrics",
                "profiler/session",
                "profiler/compare",
                "profiler/explain",
                "profiler/export",
                "profiler/simulate",
                "profiler/replay",
                "profiler/playback",
                "profiler/record",
                "profiler/loadtest",
                "profiler/quality",
                "app/serve",
                "app/cli",
                "app/workbench/platform",
                "app/workbench/theme",
                "app/workbench/widgets",
                "app/workbench/backend",
                "app/workbench/plots",
                "app/workbench/chat",
                "app/workbench/knobs",
                "app/workbench/docks",
                "app/workbench/pages",
                "app/workbench/window",
                "app/workbench"};
    }
    // The sources below a folder, with paths relative to the root: "engine/base/file.h".
    static QStringList sources(const QString& folder) {
        const QDir top(COLIBRI_SOURCE_DIR);
        QStringList paths;
        QDirIterator it(top.filePath(folder), {"*.h", "*.cpp", "*.c", "*.cu", "*.cuh"}, QDir::Files,
                        QDirIterator::Subdirectories);
        while (it.hasNext()) paths << top.relativeFilePath(it.next());
        return paths;
    }
    static QString textOf(const QString& path) {
        QFile file(COLIBRI_SOURCE_DIR "/" + path);
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }

private slots:
    // No include points up, so there are no cycles.
    void includesPointDown_data() {
        QTest::addColumn<QString>("top");
        for (const char* top : {"kernels", "engine", "profiler", "app"}) QTest::newRow(top) << top;
    }
    void includesPointDown() {
        QFETCH(QString, top);
        const QRegularExpression include("#\\s*include\\s*\"([^\"]+)\"");
        const QStringList order = this->order();
        QStringList upward;
        for (const QString& path : sources(top)) {
            const QString folder = QFileInfo(path).path();
            const qsizetype rank = order.indexOf(folder);
            QVERIFY2(rank >= 0, qPrintable(path + ": its folder has no place in order()"));
            auto match = include.globalMatch(textOf(path));
            while (match.hasNext()) {
                const QString included = match.next().captured(1);
                const QString from = QFileInfo(included).path();
                if (from == "." || from == folder) continue;  // the same folder
                const qsizetype lower = order.indexOf(from);
                QVERIFY2(lower >= 0, qPrintable(path + " includes " + included));
                if (lower > rank) upward << path + " includes " + included;
            }
        }
        QVERIFY2(upward.isEmpty(), qPrintable(upward.join("\n")));
    }
    void noFolderOfTheOrderIsGone() {
        for (const QString& folder : order())
            QVERIFY2(!QDir(COLIBRI_SOURCE_DIR "/" + folder).isEmpty(), qPrintable(folder));
    }
    void qtStaysInApp() {
        const QRegularExpression qt("#\\s*include\\s*[<\"](Q[A-Z]|Qt[A-Z]|qcustomplot)");
        for (const char* top : {"kernels", "engine", "profiler"})
            for (const QString& path : sources(top))
                QVERIFY2(!qt.match(textOf(path)).hasMatch(), qPrintable(path));
    }
    void filesStayReadable() {
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
