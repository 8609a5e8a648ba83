// SPDX-License-Identifier: GPL-3.0-or-later
// The command colibri simulate.
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

class TestSimulateCli : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    QString m_session = m_dir.filePath("s.colibri-session");

private slots:
    void initTestCase() {
        const Run run =
            colibri({"generate", kDemo, "--chat", "--prompt", "Tell me a story.", "--max-tokens",
                     "60", "--expert-cache-size", "8", "--prefetch-source", "off", "--cold-start",
                     "--session", m_session});
        QVERIFY2(run.code == 0, run.err);
    }
    void jsonHasTheCurves() {
        const Run run = colibri({"simulate", m_session, "--json"});
        QCOMPARE(run.code, 0);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"lookups", "curves", "sampling_error", "recorded", "prefetch"}));
        QCOMPARE(json["sampling_error"].toDouble(-1), 0.0);
        QVERIFY(json["lookups"].toInt() > 1000);
        const QJsonObject curves = json["curves"].toObject();
        for (const char* policy : {"lru", "slru", "lfru", "belady"}) {
            const QJsonArray points = curves[policy].toArray();
            QCOMPARE(points.size(), 32);
            double last = 0;
            for (const QJsonValue& point : points) {
                QVERIFY(hasKeys(point.toObject(), {"cache_size", "hit_rate", "decode_tok_s"}));
                QVERIFY(hasKeys(point["decode_tok_s"].toObject(), {"value", "low", "high"}));
                last = point["hit_rate"].toDouble(-1);
                QVERIFY(last >= 0 && last <= 1);
            }
            QVERIFY(last > 0.5);
        }
        // The session's own setting gives its own figures.
        const QJsonObject recorded = json["recorded"].toObject();
        QCOMPARE(recorded["cache_size"].toInt(), 8);
        const QJsonValue same = curves["lru"].toArray()[7];
        QCOMPARE(same["hit_rate"].toDouble(-1), recorded["hit_rate"].toDouble());
        const double rate = same["decode_tok_s"]["value"].toDouble();
        QVERIFY(std::abs(rate / recorded["decode_tok_s"].toDouble() - 1) < 0.2);
    }
    void tableMarksTheRecordedSize() {
        const Run run = colibri({"simulate", m_session});
        QCOMPARE(run.code, 0);
        QVERIFY2(run.out.contains("\n*          8 "), run.out);
        QVERIFY2(run.out.contains("optimum"), run.out);
        QVERIFY2(run.err.isEmpty(), run.err);
    }
    void samplesLongSessions() {
        const QJsonObject json =
            colibri({"simulate", m_session, "--max-lookups", "500", "--json"}).json();
        QVERIFY(json["sampling_error"].toDouble() > 0);
        QVERIFY(json["sampling_rate"].toDouble() < 1);
    }
    void errorsSayWhatToDo() {
        Run run = colibri({"simulate", m_dir.filePath("none")});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("does not exist") && run.out.isEmpty(), run.err);
        run = colibri({"simulate", kDemo + "/dense.bin"});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("not a session"), run.err);
        QCOMPARE(colibri({"simulate"}).code, 2);
        QCOMPARE(colibri({"simulate", m_session, "--max-lookups", "0"}).code, 2);
    }
};

QTEST_GUILESS_MAIN(TestSimulateCli)
#include "test_simulate_cli.moc"
