// SPDX-License-Identifier: GPL-3.0-or-later
// The colibri command under unusual conditions: closed streams, damaged or unusual input, full
// disks.
#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

class TestCliFaults : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_model;

    QString write(const QString& name, const QByteArray& content) {
        QFile file(m_dir.filePath(name));
        if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
        file.write(content);
        return file.fileName();
    }

private slots:
    void initTestCase() {
        m_model = m_dir.filePath("model");
        QCOMPARE(colibri({"convert", kGolden + "/models/qwen3moe", "-o", m_model}).code, 0);
    }

    // If standard streams are closed, a file opened later could get their descriptors and thus the
    // output.
    void closedStreamsDoNotReachTheModel() {
        const QString target = m_dir.filePath("closed");
        const QString command = QString("'%1' convert '%2/models/olmoe' -o '%3' <&- >&- 2>&-")
                                    .arg(COLIBRI_BINARY, kGolden, target);
        QCOMPARE(QProcess::execute("sh", {"-c", command}), 0);
        QCOMPARE(colibri({"info", target, "--verify"}).code, 0);
    }

    void namesNeedNotBeUtf8() {
        const QString script =
            QString(
                "cd '%1' && n=$(printf 'caf\\351') && cp -r '%2/models/olmoe' \"$n\" && "
                "'%3' convert \"$n\" -o latin && '%3' info latin --json")
                .arg(m_dir.path(), kGolden, COLIBRI_BINARY);
        QCOMPARE(QProcess::execute("sh", {"-c", script}), 0);
    }

    void convertRefusesBrokenTexts_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("tokenizer cut") << "tokenizer.json" << QByteArray("{\"model\": {");
        QTest::newRow("template cut") << "chat_template.jinja" << QByteArray("{% if");
    }
    void convertRefusesBrokenTexts() {
        QFETCH(QString, name);
        QFETCH(QByteArray, content);
        const QString source = m_dir.filePath(QString("source-") + QTest::currentDataTag());
        QCOMPARE(QProcess::execute("cp", {"-r", kGolden + "/models/qwen3moe", source}), 0);
        QFile file(source + "/" + name);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
        file.close();
        const Run run = colibri({"convert", source, "-o", source + ".out"});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains(name.toUtf8()), run.err);
        QVERIFY(!QFile::exists(source + ".out") && !QFile::exists(source + ".out.partial"));
        // A dangling link is an incomplete download, not a model without a tokenizer.
        file.remove();
        QVERIFY(QFile::link(m_dir.filePath("nowhere"), file.fileName()));
        QCOMPARE(colibri({"convert", source, "-o", source + ".out"}).code, 3);
    }

    void refusedRequestsLeaveNoSession() {
        const QString session = m_dir.filePath("refused.colibri-session");
        QCOMPARE(colibri({"generate", m_model, "--tokens", "1", "--max-tokens", "0", "--session",
                          session})
                     .code,
                 2);
        QVERIFY(!QFile::exists(session));
        const Run run = colibri(
            {"generate", m_model, "--tokens", "1,2", "--max-tokens", "2", "--session", session});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY(QFile::exists(session));
    }

    void foreignFilesBesideASessionStay() {
        for (const char* suffix : {"-wal", "-shm", "-journal"}) {
            const QString session = m_dir.filePath("beside");
            const QString foreign = write(QString("beside") + suffix, "mine");
            for (const char* tokens : {"0", "2"}) {
                const Run run = colibri({"generate", m_model, "--tokens", "1", "--max-tokens",
                                         tokens, "--session", session});
                QCOMPARE(run.code, 2);
            }
            QFile file(foreign);
            QVERIFY(file.open(QIODevice::ReadOnly));
            QCOMPARE(file.readAll(), QByteArray("mine"));
            QVERIFY(!QFile::exists(session));
            QVERIFY(file.remove());
        }
    }

    void chatAsJson() {
        const QString demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
        const Run run = colibri({"chat", demo, "--json", "--max-tokens", "5", "--figures", "2"},
                                "Hello\nWho are you?\n/quit\n");
        QVERIFY2(run.code == 0, run.err);
        const QJsonArray turns = run.json()["turns"].toArray();
        QCOMPARE(turns.size(), 2);
        QVERIFY(hasKeys(turns[1].toObject(), {"user", "text", "stop", "stats"}));
        QVERIFY(run.err.contains("[token 2"));
        const Run failed = colibri({"chat", demo}, QByteArray(20000, 'x') + "\n");
        QCOMPARE(failed.code, 1);  // the only turn does not fit into the context
    }

    void benchThatDoesNotFitTheContext() {
        const Run run = colibri({"bench", m_model, "-p", "4", "-n", "100000", "--repeat", "1"});
        QCOMPARE(run.code, 2);
        QVERIFY2(run.err.contains("context"), run.err);
    }

    void promptsFromPipes() {
        const QString demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
        const Run run = colibri({"tokenize", demo, "--file", "-"}, "Hello");
        QVERIFY2(run.code == 0, run.err);
        QCOMPARE(run.out, colibri({"tokenize", demo, "--text", "Hello"}).out);
        QCOMPARE(colibri({"detokenize", demo, "--ids", "5,99999"}).code, 2);
        QCOMPARE(colibri({"detokenize", demo, "--ids=-1"}).code, 2);
    }

    void fullOutputIsAnError() {
        for (const char* arguments : {"--help", "--version"}) {
            const QString command = QString("'%1' %2 > /dev/full").arg(COLIBRI_BINARY, arguments);
            QCOMPARE(QProcess::execute("sh", {"-c", command}), 1);
        }
        // A closed standard output is an error like a full one.
        for (const char* arguments : {"--version", "info '%2'", "info '%2' --json",
                                      "generate '%2' --tokens 1,2 --max-tokens 2",
                                      "generate '%2' --tokens 1,2 --max-tokens 2 --json"}) {
            const QString command = QString("'%1' ") + arguments + " >&-";
            const QString line = command.contains("%2") ? command.arg(COLIBRI_BINARY, m_model)
                                                        : command.arg(COLIBRI_BINARY);
            QCOMPARE(QProcess::execute("sh", {"-c", line}), 1);
        }
        const Run unknown = colibri({"frob"});
        QCOMPARE(unknown.code, 2);
        QVERIFY(unknown.err.contains("frob"));
        const Run empty = colibri({"generate", m_model, "--prompt=", "--json"});
        QCOMPARE(empty.code, 2);  // an empty prompt; "--json" is not its text
    }

    void limitedFileSizeIsAMessage() {
        const QString command = QString("ulimit -f 50; '%1' convert '%2/models/qwen3moe' -o '%3'")
                                    .arg(COLIBRI_BINARY, kGolden, m_dir.filePath("limited"));
        QCOMPARE(QProcess::execute("bash", {"-c", command}), 1);
        QVERIFY(!QFile::exists(m_dir.filePath("limited.partial")));
    }

    void aPipeIsNotAModel() {
        const QString folder = m_dir.filePath("pipe");
        QVERIFY(QDir().mkpath(folder));
        QCOMPARE(QProcess::execute("mkfifo", {folder + "/model.json"}), 0);
        QCOMPARE(colibri({"info", folder}).code, 3);
    }

    void configKeysTwice() {
        const Run run = colibri(
            {"config", "check",
             write("twice.json",
                   "{\"schema\": 1, \"knobs\": {\"prefetch_depth\": 1, \"prefetch_depth\": 2}}")});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("duplicate"), run.err);
    }
};

QTEST_GUILESS_MAIN(TestCliFaults)
#include "test_cli_faults.moc"
