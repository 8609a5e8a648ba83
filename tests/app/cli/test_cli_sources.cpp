// SPDX-License-Identifier: GPL-3.0-or-later
// Checkpoints on the command line, results on full disks, and control characters from files.
#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

class TestCliSources : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_model;
    const QString m_source = kGolden + "/models/qwen3moe";

    QString copyOfSource(const QString& name) {
        const QString folder = m_dir.filePath(name);
        if (QProcess::execute("cp", {"-r", m_source, folder}) != 0) qFatal("cannot copy");
        return folder;
    }
    static void write(const QString& path, const QByteArray& content) {
        QFile file(path);
        if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
        file.write(content);
    }
    // Limits the size of files, in KiB.
    static QStringList limitedCommand(int kibibytes, const QStringList& arguments) {
        QStringList quoted;
        for (const QString& argument : arguments) quoted << "'" + argument + "'";
        return {"-c", QString("ulimit -f %1; exec '%2' %3")
                          .arg(kibibytes)
                          .arg(COLIBRI_BINARY, quoted.join(' '))};
    }
    static Run limited(int kibibytes, const QStringList& arguments, const QByteArray& input = {}) {
        QProcess process;
        process.start("bash", limitedCommand(kibibytes, arguments));
        process.write(input);
        process.closeWriteChannel();
        process.waitForFinished(120000);
        return {process.exitCode(), process.readAllStandardOutput(),
                process.readAllStandardError()};
    }

    static double number(const QJsonObject& object, const char* group, const char* key) {
        return object[group].toObject()[key].toDouble(-1);
    }

private slots:
    void initTestCase() {
        m_model = m_dir.filePath("model");
        const Run run = colibri({"convert", m_source, "-o", m_model});
        QVERIFY2(run.code == 0, run.err);
    }

    void infoTellsOfACheckpointWhatItTellsOfAModel() {
        const QJsonObject model = colibri({"info", m_model, "--json"}).json();
        const Run run = colibri({"info", m_source, "--json"});
        QVERIFY2(run.code == 0, run.err);
        const QJsonObject checkpoint = run.json();
        QCOMPARE(model["kind"].toString(), "model");
        QCOMPARE(checkpoint["kind"].toString(), "checkpoint");
        QVERIFY(checkpoint["source_bytes"].toDouble() > 0);
        for (const char* key :
             {"family", "parameters", "num_experts", "dense_bytes", "expert_bytes", "fingerprint",
              "expert_dtype", "end_tokens", "bos_token"}) {
            QVERIFY2(!model[key].isUndefined(), key);
            QCOMPARE(checkpoint[key], model[key]);
        }
        for (const char* key : {"dense", "expert_cache", "kv_cache", "buffers", "total"}) {
            QCOMPARE(number(checkpoint, "memory", key), number(model, "memory", key));
        }
        const Run text = colibri({"info", m_source});
        QCOMPARE(text.code, 0);
        for (const char* part :
             {"Memory to load", "Free memory", "colibri convert", "End tokens", "<|im_end|> ("}) {
            QVERIFY2(text.out.contains(part), text.out);
        }
        QVERIFY(colibri({"info", m_model}).out.contains("<|im_end|> ("));
        QVERIFY(!model["end_tokens"].toArray()[0].toObject()["text"].toString().isEmpty());
        const Run sized = colibri({"info", m_source, "--json", "--expert-cache-size", "1"});
        QVERIFY(number(sized.json(), "memory", "total") < number(checkpoint, "memory", "total"));
        QCOMPARE(colibri({"info", m_source, "--verify"}).code, 4);
    }

    void infoTellsOfAGgufFile() {
        const QDir folder(kGolden + "/gguf");
        const QStringList files = folder.entryList({"*.gguf"});
        QVERIFY(!files.isEmpty());
        for (const QString& file : files) {
            const Run run = colibri({"info", folder.filePath(file), "--json"});
            QVERIFY2(run.code == 0, run.err);
            QVERIFY(run.json()["format"].toString().startsWith("GGUF"));
            QVERIFY(number(run.json(), "memory", "total") > 0);
        }
        const Run other = colibri({"info", kGolden + "/README.md"});
        QCOMPARE(other.code, 3);
        QVERIFY2(other.err.contains("not a checkpoint"), other.err);
    }

    void whatAModelLacksIsSaidBeforeTheConversion() {
        const QString source = copyOfSource("no-texts");
        QVERIFY(QFile::remove(source + "/tokenizer.json"));
        QVERIFY(QFile::remove(source + "/chat_template.jinja"));
        const Run info = colibri({"info", source});
        QCOMPARE(info.code, 0);
        QVERIFY2(info.out.contains("no tokenizer.json") && info.out.contains("no chat template"),
                 info.out);
        const Run run = colibri({"convert", source, "-o", source + ".out"});
        QCOMPARE(run.code, 0);
        QVERIFY2(run.err.contains("no chat template"), run.err);
        // A damaged one stops the conversion, and info reports this.
        const QString broken = copyOfSource("broken-texts");
        write(broken + "/tokenizer.json", "{\"model\": {");
        const Run looked = colibri({"info", broken});
        QCOMPARE(looked.code, 0);
        QVERIFY2(looked.out.contains("cannot be used") && looked.out.contains("tokenizer.json"),
                 looked.out);
        QCOMPARE(colibri({"convert", broken, "-o", broken + ".out"}).code, 3);
    }

    void aChatTemplateIsChosenByName() {
        const QString source = copyOfSource("templates");
        QVERIFY(QFile::remove(source + "/chat_template.jinja"));
        write(
            source + "/chat_template.json",
            R"({"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "own", "template": "O"}]})");
        const QString target = m_dir.filePath("chosen");
        const Run run =
            colibri({"convert", source, "-o", target, "--chat-template", "tool_use", "--json"});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY2(run.err.contains("\"tool_use\""), run.err);
        QCOMPARE(run.json()["notes"].toArray().size(), 1);
        QFile file(target + "/chat_template.jinja");
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), QByteArray("T"));
        const Run wrong =
            colibri({"convert", source, "-o", target + "2", "--chat-template", "rag"});
        QCOMPARE(wrong.code, 2);
        QVERIFY2(wrong.err.contains("\"own\""), wrong.err);
    }

    // A load test may have taken hours, so its figures must not be lost.
    void aFullDiskDoesNotTakeTheFiguresOfALoadTest() {
        const QString session = m_dir.filePath("load.colibri-session");
        const Run run = limited(140, {"load", m_model, "--requests", "40", "--max-tokens", "40",
                                      "--ignore-eos", "--session", session, "--json"});
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err.contains("session was not saved") && run.err.contains("TTFT"), run.err);
        QCOMPARE(number(run.json(), "requests", "completed"), 40.0);
    }

    void aFullDiskDoesNotTakeTheResultOfOtherVerbs_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("key");
        QTest::newRow("generate") << QStringList{"generate",     m_model, "--tokens",     "1,2",
                                                 "--max-tokens", "400",   "--ignore-eos", "--json"}
                                  << "tokens";
        QTest::newRow("bench") << QStringList{"bench", m_model,    "-p", "8",     "-n",
                                              "200",   "--repeat", "2",  "--json"}
                               << "decode_tok_s";
    }
    void aFullDiskDoesNotTakeTheResultOfOtherVerbs() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, key);
        const QString session =
            m_dir.filePath(QString(QTest::currentDataTag()) + ".colibri-session");
        const Run run = limited(140, arguments + QStringList{"--session", session});
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err.contains("session was not saved"), run.err);
        QVERIFY2(run.json().contains(key), run.out);
    }

    void aFullDiskDoesNotTakeAReplyOfAChat() {
        const QStringList chat{"chat", m_model, "--max-tokens", "40", "--ignore-eos", "--json"};
        const QByteArray lines = "hello\nand again\nand again\n";
        const Run whole = colibri(chat, lines);
        const Run run = limited(
            140, chat + QStringList{"--session", m_dir.filePath("chat.colibri-session")}, lines);
        QCOMPARE(run.code, 1);
        QVERIFY2(run.err.contains("the results are complete, but the session was not saved"),
                 run.err);
        QCOMPARE(run.err.count("Recording stopped: "), 1);  // reported while it happens
        const QJsonArray turns = run.json()["turns"].toArray(),
                         all = whole.json()["turns"].toArray();
        QCOMPARE(turns.size(), 3);
        for (int i = 0; i < 3; ++i) {
            QCOMPARE(turns[i].toObject()["text"], all[i].toObject()["text"]);
            QVERIFY(turns[i].toObject()["stats"].toObject()["generated_tokens"].toInt() > 0);
        }
    }

    void aFullDiskDoesNotTakeARequestOfAServer() {
        QProcess server;
        server.setReadChannel(QProcess::StandardError);
        server.start("bash", limitedCommand(140, {"serve", m_model, "--port", "0", "--json",
                                                  "--session", m_dir.filePath("serve.session")}));
        QByteArray said;
        while (!said.contains(" at http://")) {
            QVERIFY(server.waitForReadyRead(60000));
            said += server.readAllStandardError();
        }
        const QString url = QRegularExpression("http://[^,]+").match(said).captured();
        const Run load = colibri({"load", url, "--requests", "12", "--users", "2", "--max-tokens",
                                  "40", "--ignore-eos", "--json"});
        QVERIFY2(load.code == 0, load.err);
        QCOMPARE(number(load.json(), "requests", "completed"), 12.0);
        QCOMPARE(number(load.json(), "tokens", "generated"), 480.0);
        while (!said.contains("Recording stopped: ")) {
            QVERIFY2(server.waitForReadyRead(60000), said);
            said += server.readAllStandardError();
        }
        server.terminate();
        QVERIFY(server.waitForFinished(60000));
        QCOMPARE(server.exitCode(), 1);
        said += server.readAllStandardError();
        QVERIFY2(said.contains("the session was not saved"), said);
        QCOMPARE(said.count("Recording stopped: "), 1);
        const QByteArray out = server.readAllStandardOutput();
        QCOMPARE(QJsonDocument::fromJson(out).object()["completed"].toInt(), 12);
    }

    // Stages that take less than a second are not logged.
    void aLogHasNoLineForEachStage() {
        const Run run = colibri({"convert", m_source, "-o", m_dir.filePath("quiet")});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY2(run.err.count('\n') == 1 && run.err.contains("quiet: "), run.err);
        const Run generated = colibri({"generate", m_model, "--tokens", "1", "--max-tokens", "1"});
        QVERIFY2(!generated.err.contains("Model description"), generated.err);
    }

    void anExportThatFailsDoesNotTakeTheFigures() {
        const Run run = colibri({"load", m_model, "--requests", "2", "--max-tokens", "2", "--json",
                                 "--csv", m_dir.filePath("nowhere/out.csv")});
        QVERIFY(run.code != 0);
        QVERIFY2(run.err.contains("nowhere"), run.err);
        QCOMPARE(number(run.json(), "requests", "completed"), 2.0);
    }

    void sessionsAreExplainedAndCompared() {
        const auto record = [&](const char* name, const char* tokens) {
            const QString session = m_dir.filePath(QString(name) + ".colibri-session");
            const Run run = colibri({"generate", m_model, "--tokens", tokens, "--max-tokens", "120",
                                     "--ignore-eos", "--session", session});
            return run.code == 0 ? session : run.err;
        };
        const QString a = record("a", "1,2,3"), b = record("b", "1,2,3"), c = record("c", "9,8");
        const Run explained = colibri({"explain", a, "--json"});
        QVERIFY2(explained.code == 0, explained.err);
        QCOMPARE(explained.json()["tokens"].toInt(), 119);
        QVERIFY(!explained.json()["causes"].toArray().isEmpty());
        QVERIFY(!explained.json()["verdicts"].toArray().isEmpty());
        const Run same = colibri({"diff", a, b, "--json"});
        QVERIFY2(same.code == 0, same.err);
        QVERIFY(same.json()["comparable"].toBool() && same.json()["matched"].toBool());
        for (const char* figure :
             {"decode_tok_s", "itl_p50_ms", "itl_p99_ms", "ttft_ms", "hit_rate", "bytes"})
            QVERIFY2(same.json()["differences"].toObject().contains(figure), figure);
        // Other prompts are compared only on request.
        const Run other = colibri({"diff", a, c});
        QCOMPARE(other.code, 3);
        QVERIFY2(other.err.contains("the prompts differ") && other.err.contains("--anyway"),
                 other.err);
        QVERIFY(!colibri({"diff", a, c, "--json"}).json()["comparable"].toBool());
        QCOMPARE(colibri({"diff", a, c, "--anyway"}).code, 0);
        QCOMPARE(colibri({"explain", m_dir.filePath("none")}).code, 3);
    }

    void aKeptSessionIsOneFile() {
        const QString session = m_dir.filePath("kept.colibri-session");
        const Run run = colibri(
            {"generate", m_model, "--tokens", "1,2", "--max-tokens", "3", "--session", session});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY(QFile::exists(session) && !QFile::exists(session + "-wal"));
    }

    void filesCannotWriteToTheTerminal() {
        const QByteArray escape = "\x1b[31m";
        const QString path = m_dir.filePath("x" + QString(escape) + QChar(0x202e) + "y");
        const Run missing = colibri({"info", path});
        QVERIFY2(!missing.err.contains('\x1b') && missing.err.contains("\\u001b[31m\\u202e"),
                 missing.err);
        // JSON keeps the original value.
        const Run json = colibri({"convert", m_source, "-o", path, "--json"});
        QVERIFY2(json.code == 0, json.err);
        QVERIFY(!json.out.contains("\xe2\x80\xae"));
        QCOMPARE(json.json()["target"].toString(), path);
        // A model's text is printed unchanged, except on a terminal.
        const QString tokenizer = m_dir.filePath("tokenizer.json");
        write(tokenizer,
              "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\u001b[31m\": 0}, \"merges\": []}}");
        const QStringList arguments = {"detokenize", tokenizer, "--ids", "0"};
        QCOMPARE(colibri(arguments).out, escape);
        QProcess terminal;
        terminal.start(
            "script",
            {"-qec", QString("'%1' %2").arg(COLIBRI_BINARY, arguments.join(' ')), "/dev/null"});
        QVERIFY(terminal.waitForFinished(30000));
        const QByteArray shown = terminal.readAllStandardOutput();
        QVERIFY2(shown.contains("\\u001b[31m") && !shown.contains('\x1b'), shown);
    }
};

QTEST_GUILESS_MAIN(TestCliSources)
#include "test_cli_sources.moc"
