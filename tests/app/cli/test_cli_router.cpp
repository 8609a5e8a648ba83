// SPDX-License-Identifier: GPL-3.0-or-later
// Flat folders and router tables on the command line.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

namespace {

void cut(const QString& path, qint64 bytes) {
    QFile file(path);
    if (!file.resize(bytes)) qFatal("cannot cut %s", qPrintable(path));
}

}  // namespace

class TestCliRouter : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_container, m_flat;
    const QString m_source = COLIBRI_GOLDEN_DIR "/models/olmoe";

    QString at(const char* name) const { return m_dir.filePath(name); }
    Run generate(const QString& model, const QStringList& more = {}) const {
        return colibri(QStringList{"generate", model, "--tokens", "5,6,7,8", "--max-tokens", "24",
                                   "--ignore-eos", "--json"} +
                       more);
    }

private slots:
    void initTestCase() {
        m_container = at("container");
        m_flat = at("flat");
        QCOMPARE(colibri({"convert", m_source, "-o", m_container, "--router-table"}).code, 0);
        const Run run = colibri({"convert", m_source, "-o", m_flat, "--layout", "flat", "--json"});
        QVERIFY2(run.code == 0, run.err.constData());
        QCOMPARE(run.json()["dtype"].toString(), QString("bf16"));
    }

    void aFlatFolderSaysTheSameAsAContainer() {
        QVERIFY(QFile::exists(m_flat + "/expert_0_layer_0_w1.bin"));
        const Run info = colibri({"info", m_flat, "--json"});
        QCOMPARE(info.code, 0);
        QCOMPARE(info.json()["expert_dtype"].toString(), QString("bf16"));
        QVERIFY(!QFile::exists(m_flat + "/container"));
        const Run flat = generate(m_flat), container = generate(m_container);
        QVERIFY2(flat.code == 0, flat.err.constData());
        QCOMPARE(flat.json()["tokens"], container.json()["tokens"]);
        QCOMPARE(flat.json()["tokens"].toArray().size(), 24);
        const QStringList logits = {"--tokens", "1,2,3"};
        QCOMPARE(colibri(QStringList{"logits", m_flat} + logits).out,
                 colibri(QStringList{"logits", m_container} + logits).out);
    }

    void agreementIsShownEverywhere() {
        const Run exact = generate(m_container);
        QJsonObject router = exact.json()["stats"].toObject()["router"].toObject();
        QCOMPARE(router["mode"].toString(), QString("exact"));
        QVERIFY(router["compared"].toDouble() > 0);
        QVERIFY(router["agreement"].toDouble() > 0 && router["agreement"].toDouble() <= 1);
        const Run table = generate(m_container, {"--router-mode", "table"});
        router = table.json()["stats"].toObject()["router"].toObject();
        QCOMPARE(router["mode"].toString(), QString("table"));
        QVERIFY(router["agreed"].toDouble() <= router["compared"].toDouble());
        const Run bench = colibri({"bench", m_container, "-p", "8", "-n", "4", "--repeat", "1",
                                   "--json", "--router-mode", "table"});
        QCOMPARE(bench.json()["router"].toObject()["mode"].toString(), QString("table"));
        QCOMPARE(bench.json()["knobs"].toObject()["router_mode"].toString(), QString("table"));
        const Run chat = colibri({"chat", m_container, "--max-tokens", "4"},
                                 "hello\n/set router_mode table\n/stats\n/quit\n");
        QVERIFY(chat.err.contains("router_mode = table"));
        QVERIFY2(chat.err.contains("choices agree with the gate (router_mode table)"),
                 chat.err.constData());
        const Run plain = colibri({"generate", m_container, "--tokens", "5", "--max-tokens", "2",
                                   "--router-mode", "table"});
        QVERIFY(plain.err.contains("agree with the gate"));
        // A table that is not in use is not mentioned.
        const Run unused = colibri({"generate", m_container, "--tokens", "5", "--max-tokens", "2"});
        QVERIFY2(!unused.err.contains("agree with the gate"), unused.err.constData());
    }

    void withoutATableItSaysSo() {
        QCOMPARE(colibri({"convert", m_source, "-o", at("plain")}).code, 0);
        const Run run = generate(at("plain"), {"--router-mode", "table"});
        QCOMPARE(run.code, 0);
        QVERIFY(run.err.contains("router_mode: requested table, effective exact"));
        QVERIFY(run.json()["stats"].toObject()["router"].isNull());
        // A table from an option.
        const Run given = generate(at("plain"), {"--router-mode", "table", "--router-table",
                                                 m_container + "/router_table.bin"});
        QCOMPARE(given.json()["stats"].toObject()["router"].toObject()["mode"].toString(),
                 QString("table"));
    }

    void badFilesEndWithThree() {
        const QString table = at("cut.bin");
        QVERIFY(QFile::copy(m_container + "/router_table.bin", table));
        cut(table, 1000);
        Run run = generate(m_container, {"--router-table", table});
        QCOMPARE(run.code, 3);
        QVERIFY(run.err.contains("cut.bin"));
        QCOMPARE(generate(m_container, {"--router-table", m_container + "/dense.bin"}).code, 3);
        QCOMPARE(generate(m_container, {"--router-table", at("nowhere")}).code, 3);
        const QString broken = at("broken");
        QCOMPARE(colibri({"convert", m_source, "-o", broken, "--layout", "flat"}).code, 0);
        cut(broken + "/expert_1_layer_1_w2.bin", 10);
        run = generate(broken);
        QCOMPARE(run.code, 3);
        QVERIFY(run.err.contains("expert_1_layer_1_w2.bin has 10 bytes"));
        QCOMPARE(colibri({"info", broken}).code, 3);
        QCOMPARE(
            colibri({"convert", m_source, "-o", at("q4"), "--layout", "flat", "--dtype", "q4_0"})
                .code,
            4);
    }
};

QTEST_GUILESS_MAIN(TestCliRouter)
#include "test_cli_router.moc"
