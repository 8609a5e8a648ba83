// SPDX-License-Identifier: GPL-3.0-or-later
// The installation by `cmake --install`: the examples build in C11 and C++20 with the CMake package
// and with pkg-config, and run with a small model.
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "tests/engine/runtime/run_fixture.h"

using namespace colibri::test;

class TestInstall : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_prefix, m_model;
    QByteArray m_output;
    const QString m_examples = COLIBRI_SOURCE_DIR "/resources/examples/c-api";

    bool run(const QString& program, const QStringList& arguments, int expected = 0) {
        QProcess process;
        process.setProcessChannelMode(QProcess::MergedChannels);
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("PKG_CONFIG_PATH", m_prefix + "/lib/pkgconfig");
        process.setProcessEnvironment(environment);
        process.start(program, arguments);
        if (!process.waitForFinished(300000)) return false;
        m_output = process.readAll();
        if (process.exitCode() != expected) qWarning("%s", m_output.constData());
        return process.exitCode() == expected;
    }
    // One line per token: the most likely next token and its logit, computed by the engine.
    QByteArray expectedScores(const std::vector<int32_t>& ids) {
        const auto result = load(m_model.toStdString())->logits(ids);
        QByteArray text;
        for (const std::vector<float>& row : result->logits) {
            const auto best = std::max_element(row.begin(), row.end());
            text += QString::asprintf("%d %.6f\n", int(best - row.begin()), double(*best)).toUtf8();
        }
        return text;
    }

private slots:
    void initTestCase() {
        QVERIFY(m_dir.isValid());
        m_prefix = m_dir.path() + "/prefix";
        m_model = QString::fromStdString(goldenModel("olmoe-tiny-stacked").string());
        QVERIFY(run(COLIBRI_CMAKE, {"--install", COLIBRI_BUILD_DIR, "--prefix", m_prefix,
                                    "--component", "library"}));
    }

    void throughTheCMakePackage() {
        const QString build = m_dir.path() + "/build";
        QVERIFY(
            run(COLIBRI_CMAKE,
                {"-G", "Ninja", "-S", m_examples, "-B", build, "-DCMAKE_PREFIX_PATH=" + m_prefix,
                 "-DCMAKE_C_COMPILER=" COLIBRI_CC, "-DCMAKE_CXX_COMPILER=" COLIBRI_CXX}));
        QVERIFY(run(COLIBRI_CMAKE, {"--build", build}));
        QVERIFY(run(build + "/score", {m_model, "1", "2", "3"}));
        QCOMPARE(m_output, expectedScores({1, 2, 3}));
        QVERIFY(run(build + "/score", {m_model, "1", "-5"}, 1));
        QVERIFY(m_output.contains("COLIBRI_ERROR_INVALID_ARGUMENT") && m_output.contains("-5"));
        QVERIFY(run(build + "/serve_threads", {m_model, "8"}));
        QVERIFY2(m_output.startsWith("8 dispatches in "), m_output.constData());
    }

    void throughPkgConfig() {
        QVERIFY(run("pkg-config", {"--cflags", "--libs", "--static", "colibri"}));
        const QStringList flags = QString::fromUtf8(m_output).simplified().split(' ');
        const QString program = m_dir.path() + "/score-pc";
        QVERIFY(run(COLIBRI_CC, QStringList{"-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic",
                                            m_examples + "/score.c", "-o", program} +
                                    flags));
        QVERIFY(run(program, {m_model, "7", "8"}));
        QCOMPARE(m_output, expectedScores({7, 8}));
        const QString threads = m_dir.path() + "/serve-pc";
        QVERIFY(run(COLIBRI_CXX, QStringList{"-std=c++20", "-Wall", "-Wextra", "-Werror",
                                             "-pedantic", "-Wno-missing-field-initializers",
                                             m_examples + "/serve_threads.cpp", "-o", threads} +
                                     flags));
        QVERIFY(run(threads, {m_model, "4"}));
    }
};

QTEST_GUILESS_MAIN(TestInstall)
#include "test_install.moc"
