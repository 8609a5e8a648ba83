// SPDX-License-Identifier: GPL-3.0-or-later
// Unusable paths: the colibri command says what is wrong with them, before it does any long work.
#include <unistd.h>

#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

namespace {

// Runs as a user other than root, who can open every file.
Run asNobody(const QStringList& arguments) {
    return colibri(arguments, {}, [] {
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
    });
}

}  // namespace

class TestCliPaths : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_model;
    const QString m_source = kGolden + "/models/qwen3moe";

    QString file(const QString& name) { return m_dir.filePath(name); }
    static void write(const QString& path, const QByteArray& content) {
        QFile file(path);
        if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
        file.write(content);
    }
    static void copy(const QString& from, const QString& to) {
        if (QProcess::execute("cp", {"-r", from, to}) != 0) qFatal("cannot copy");
    }
    static void allow(const QString& path, const char* mode) {
        QCOMPARE(QProcess::execute("chmod", {mode, path}), 0);
    }
    // A cache folder of the Hugging Face library with one model, whose files are links to blobs.
    QString cacheWithModel(const QString& name) {
        const QString hub = file(name), model = hub + "/models--tiny--moe";
        const QString blobs = model + "/blobs", snapshot = model + "/snapshots/abc";
        QDir().mkpath(blobs);
        QDir().mkpath(snapshot);
        QDir().mkpath(model + "/refs");
        write(model + "/refs/main", "abc");
        for (const QFileInfo& one : QDir(m_source).entryInfoList(QDir::Files)) {
            copy(one.filePath(), blobs + "/b-" + one.fileName());
            QFile::link("../../blobs/b-" + one.fileName(), snapshot + "/" + one.fileName());
        }
        return hub;
    }

private slots:
    void initTestCase() {
        QVERIFY(QFile::setPermissions(m_dir.path(), QFile::Permissions(0x7755)));
        m_model = file("model");
        const Run run = colibri({"convert", m_source, "-o", m_model});
        QVERIFY2(run.code == 0, run.err);
    }

    // The model does not exist, so it cannot have been read.
    void aSessionThatCannotBeWrittenIsRefusedBeforeTheLoad_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("generate") << QStringList{"generate", "--tokens", "1"};
        QTest::newRow("chat") << QStringList{"chat"};
        QTest::newRow("load") << QStringList{"load"};
        QTest::newRow("serve") << QStringList{"serve", "--port", "0"};
        QTest::newRow("bench") << QStringList{"bench"};
    }
    void aSessionThatCannotBeWrittenIsRefusedBeforeTheLoad() {
        QFETCH(QStringList, arguments);
        const QString plain = file("plain");
        write(plain, "x");
        for (const QString& session : {plain + "/s.colibri-session", QString("/proc/none/s.x")}) {
            const Run run =
                colibri(arguments + QStringList{m_model + "-none", "--session", session});
            QVERIFY(run.code != 0);
            QVERIFY2(run.err.contains("cannot create") && !run.err.contains("model-none"), run.err);
        }
        const Run taken = colibri(arguments + QStringList{m_model + "-none", "--session", plain});
        QCOMPARE(taken.code, 2);
        QVERIFY2(taken.err.contains("exists"), taken.err);
        // A folder that can be created is created with the session, not earlier.
        const Run free = colibri(
            arguments + QStringList{m_model + "-none", "--session", file("new/folder/s.x")});
        QVERIFY2(free.err.contains("model-none"), free.err);
        QVERIFY(!QFile::exists(file("new")));
    }

    void whatMayNotBeReadIsSaidToBeSo_data() {
        QTest::addColumn<QString>("locked");  // a file of the copied model or checkpoint
        QTest::addColumn<bool>("checkpoint");
        QTest::newRow("folder") << "" << false;
        QTest::newRow("model.json") << "model.json" << false;
        QTest::newRow("dense") << "dense.bin" << false;
        QTest::newRow("experts") << "experts" << false;
        QTest::newRow("checkpoint") << "" << true;
        QTest::newRow("config.json") << "config.json" << true;
        QTest::newRow("tokenizer.json") << "tokenizer.json" << true;
    }
    void whatMayNotBeReadIsSaidToBeSo() {
        QFETCH(QString, locked);
        QFETCH(bool, checkpoint);
        if (asNobody({"--version"}).code != 0) QSKIP("another user cannot start the program here");
        const QString folder = file(QString("locked-") + QTest::currentDataTag());
        copy(checkpoint ? m_source : m_model, folder);
        allow(folder, "a+rX");
        const QString path = locked.isEmpty() ? folder : folder + "/" + locked;
        QVERIFY2(QFile::exists(path), qPrintable(path));
        allow(path, "000");
        QList<QStringList> commands = {{"info", folder},
                                       {"convert", folder, "-o", folder + ".out"}};
        if (!checkpoint) {
            commands = {{"info", folder}, {"generate", folder, "--tokens", "1"}};
            if (locked == "dense.bin") commands.removeFirst();  // info only reads its size
        } else if (locked == "tokenizer.json") {
            commands.removeFirst();  // info reports a problem of the tokenizer
        }
        for (const QStringList& command : commands) {
            const Run run = asNobody(command);
            QVERIFY2(run.code == 1, run.err);
            QVERIFY2(run.err.contains("Permission denied") && run.err.contains(path.toUtf8()) &&
                         run.err.contains("Check the permissions"),
                     run.err);
            QVERIFY2(!run.err.contains("onvert") && !run.err.contains("not a checkpoint"), run.err);
        }
        allow(path, "755");
    }

    void linksInACircleAreNoMissingFile() {
        const QString circle = file("circle");
        QVERIFY(QFile::link(circle, circle));
        for (const QStringList& command :
             {QStringList{"info", circle}, QStringList{"generate", circle, "--tokens", "1"}}) {
            const Run run = colibri(command);
            QCOMPARE(run.code, 3);
            QVERIFY2(run.err.contains("circle. Its symbolic") || run.err.contains("form a loop"),
                     run.err);
        }
    }

    void aLineFeedInAPathDoesNotBeginALine() {
        const QString path = file("a\nb");
        for (const QStringList& command :
             {QStringList{"info", path}, QStringList{"generate", path, "--tokens", "1"},
              QStringList{"convert", path, "-o", path},
              QStringList{"tokenize", path, "--text", "x"}, QStringList{"config", "check", path},
              QStringList{path}, QStringList{"info", m_model, "--isa" + path},
              QStringList{"info", m_model, path},
              QStringList{"generate", m_model, "--tokens", "1", "--isa", path},
              QStringList{"generate", m_model, "--tokens", "1", "--session", path + "/\n/c"}}) {
            const Run run = colibri(command);
            QVERIFY(run.code != 0 || command.contains("--session"));
            QVERIFY2(!run.err.contains("a\nb"), run.err);
            QVERIFY2(run.err.contains("a\\u000ab") || command.contains("--session"), run.err);
        }
    }

    void aCacheWithOneModelIsThatModel() {
        const QString hub = cacheWithModel("hub-one");
        const Run run = colibri({"info", hub});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY2(run.out.contains("tiny/moe"), run.out);
        copy(hub + "/models--tiny--moe", hub + "/models--other--moe");
        const Run two = colibri({"info", hub});
        QCOMPARE(two.code, 3);
        QVERIFY2(two.err.contains("models--other--moe"), two.err);
    }

    void aDownloadThatWasInterruptedIsToBeFinished() {
        const QString hub = cacheWithModel("hub-cut"), model = hub + "/models--tiny--moe";
        // Weights that are not complete: a dangling link, and the part downloaded so far.
        const QStringList weights = QDir(model + "/blobs").entryList({"b-*.safetensors"});
        QVERIFY(!weights.isEmpty());
        const QString blob = model + "/blobs/" + weights[0];
        QVERIFY(QFile::rename(blob, blob + ".incomplete"));
        const auto isReported = [&](const QString& path) {
            const Run run = colibri({"convert", path, "-o", file("cut.out")});
            if (run.code != 3) qWarning("code %d", run.code);
            if (!run.err.contains("Finish the download: hf download tiny/moe") ||
                !run.err.contains(weights[0].mid(2).toUtf8()))
                qWarning("%s", run.err.constData());
            return run.code == 3 && run.err.contains("Finish the download: hf download tiny/moe") &&
                   run.err.contains(".incomplete");
        };
        QVERIFY(isReported(model));
        QVERIFY(isReported(model + "/snapshots/abc"));
        QVERIFY(isReported(hub));
        // The config has not been downloaded either.
        QVERIFY(QFile::remove(model + "/snapshots/abc/config.json"));
        QVERIFY(isReported(model));
        // There is no snapshot.
        QVERIFY(QDir(model + "/snapshots/abc").removeRecursively());
        QVERIFY(isReported(model));
        // A download into a folder that the user chose.
        const QString own = file("own");
        copy(m_source, own);
        QVERIFY(QDir().mkpath(own + "/.cache/huggingface/download"));
        write(own + "/.cache/huggingface/download/x.incomplete", "");
        QCOMPARE(colibri({"info", own}).code, 0);  // all required files exist
        QVERIFY(QFile::remove(own + "/config.json"));
        const Run run = colibri({"info", own});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("Finish the download"), run.err);
    }
};

QTEST_GUILESS_MAIN(TestCliPaths)
#include "test_cli_paths.moc"
