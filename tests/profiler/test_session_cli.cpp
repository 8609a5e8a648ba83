// SPDX-License-Identifier: GPL-3.0-or-later
// The commands colibri replay and colibri recover.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

namespace {
const QString kDemo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
}

class TestSessionCli : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    QString m_session = m_dir.filePath("s.colibri-session");

private slots:
    void initTestCase() {
        const Run run =
            colibri({"generate", kDemo, "--chat", "--prompt", "Tell me a story.", "--max-tokens",
                     "50", "--expert-cache-size", "8", "--prefetch-source", "off", "--cold-start",
                     "--session", m_session});
        QVERIFY2(run.code == 0, run.err);
    }
    void jsonHasTheDifferences() {
        const QString kept = m_dir.filePath("after.colibri-session");
        const Run run =
            colibri({"replay", m_session, "--expert-cache-size", "4", "--session", kept, "--json"});
        QVERIFY2(run.code == 0, run.err);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"tokens", "matched", "before", "after", "differences"}));
        QCOMPARE(json["tokens"].toInt(), 50);
        QCOMPARE(json["matched"].toBool(), true);
        QCOMPARE(json["before"]["expert_cache_size"].toInt(), 8);
        QCOMPARE(json["after"]["expert_cache_size"].toInt(), 4);
        QCOMPARE(json["before"]["prefetch_source"].toString(), QString("off"));
        QCOMPARE(json["after"]["prefetch_source"].toString(), QString("off"));
        const QJsonObject differences = json["differences"].toObject();
        for (const char* figure :
             {"decode_tok_s", "itl_p50_ms", "itl_p99_ms", "ttft_ms", "hit_rate", "bytes"})
            QVERIFY2(hasKeys(differences[figure].toObject(),
                             {"before", "after", "relative", "low", "high", "significant"}),
                     figure);
        QVERIFY(differences["hit_rate"]["relative"].toDouble() < 0);
        QVERIFY(differences["bytes"]["relative"].toDouble() > 0);
        const Run diff = colibri({"diff", m_session, kept, "--json"});
        QVERIFY2(diff.code == 0, diff.err);
        QCOMPARE(diff.json()["matched"].toBool(), true);
    }
    void textNamesTheKnobs() {
        const Run run =
            colibri({"replay", m_session, "--expert-cache-size", "4", "--recorded-arrivals"});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY2(run.out.contains("expert_cache_size: 8 -> 4"), run.out);
        QVERIFY2(run.out.contains("One run followed the other"), run.out);
    }
    void soundSessionsNeedNoRecovery() {
        const Run run = colibri({"recover", m_session, "--json"});
        QVERIFY2(run.code == 0, run.err);
        QCOMPARE(run.json()["outcome"].toString(), QString("sound"));
        QCOMPARE(run.json()["tokens"].toInt(), 50);
    }
    void damagedSessionsAreRecovered() {
        const QString damaged = m_dir.filePath("d.colibri-session");
        QVERIFY(QFile::copy(m_session, damaged));
        QFile file(damaged);
        QVERIFY(file.open(QIODevice::ReadWrite) && file.seek(file.size() / 2 / 4096 * 4096));
        QCOMPARE(file.write(QByteArray(8192, '\xa5')), 8192);
        file.close();
        const Run run = colibri({"recover", damaged, "--json"});
        QVERIFY2(run.code == 0, run.err);
        QCOMPARE(run.json()["outcome"].toString(), QString("salvaged"));
        const QString out = m_dir.filePath("d-recovered.colibri-session");
        QCOMPARE(run.json()["file"].toString(), out);
        QCOMPARE(colibri({"explain", out}).code, 0);
        // A second time, the file exists.
        QCOMPARE(colibri({"recover", damaged}).code, 2);
        QCOMPARE(colibri({"recover", m_dir.filePath("none")}).code, 3);
    }
    void errorsSayWhatToDo() {
        Run run = colibri({"replay", m_dir.filePath("none")});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("does not exist") && run.out.isEmpty(), run.err);
        run = colibri({"replay", m_session, "--model", m_dir.filePath("no-model")});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("no-model"), run.err);
        QCOMPARE(colibri({"replay"}).code, 2);
        QCOMPARE(colibri({"replay", m_session, "--cache-policy", "best"}).code, 2);
        // The model is another one.
        const QString other = m_dir.filePath("other");
        run = colibri({"synth", "tiny", "-o", other});
        QVERIFY2(run.code == 0, run.err);
        run = colibri({"replay", m_session, "--model", other});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("another model"), run.err);
    }
};

QTEST_GUILESS_MAIN(TestSessionCli)
#include "test_session_cli.moc"
