// SPDX-License-Identifier: GPL-3.0-or-later
// Messages of the colibri command: help, effects of changes, and errors before long work.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

namespace {

// Occupies a port of this machine, like another program.
class Listener {
public:
    Listener() : m_socket(socket(AF_INET, SOCK_STREAM, 0)) {
        m_address.sin_family = AF_INET;
        m_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof m_address;
        if (bind(m_socket, reinterpret_cast<sockaddr*>(&m_address), size) != 0 ||
            listen(m_socket, 1) != 0 ||
            getsockname(m_socket, reinterpret_cast<sockaddr*>(&m_address), &size) != 0)
            qFatal("no port to listen on");
    }
    ~Listener() { close(m_socket); }
    int port() const { return ntohs(m_address.sin_port); }

private:
    int m_socket;
    sockaddr_in m_address{};
};

}  // namespace

class TestCliTalk : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_model;

private slots:
    void initTestCase() {
        m_model = m_dir.filePath("model");
        const Run run =
            colibri({"convert", kGolden + "/models/qwen3moe", "-o", m_model, "--dtype", "f32"});
        QVERIFY2(run.code == 0, run.err);
    }

    // The help shows name, range, default and meaning of each knob, from the knob table.
    void helpExplainsTheKnobs() {
        const QString help = QString::fromUtf8(colibri({"chat", "--help"}).out).simplified();
        for (const char* part :
             {"--prefetch-threads INT Prefetch threads, 0..1024 threads, default 1. Threads that "
              "read predicted "
              "experts while the link is idle.",
              "--cache-policy {lru|slru|lfru} ", "Link limit, 0..100000 MB/s, default 0.",
              "--expert-cache-size INT Cache size, 1..65536 experts / layer, default depends on "
              "model and machine.",
              "overrides the file"})
            QVERIFY2(help.contains(part), qPrintable(help));
        QVERIFY(colibri({"load", "--help"}).out.contains("TARGET"));
    }

    // Invalid options are rejected before the model is read; here it does not exist.
    void serveRefusesBeforeItLoads() {
        const Run open = colibri({"serve", m_model + "-none", "--host", "0.0.0.0", "--port", "0"});
        QVERIFY2(open.err.contains("no API key"), open.err.constData());
        const Listener other;
        const Run taken =
            colibri({"serve", m_model + "-none", "--port", QString::number(other.port())});
        QVERIFY2(taken.err.contains("cannot listen on 127.0.0.1"), taken.err.constData());
        const Run free = colibri({"serve", m_model + "-none", "--port", "0"});
        QVERIFY2(!free.err.contains("cannot listen"), free.err.constData());
    }

    // The effect of /set on the decode rate is printed when it is known, and again by /stats.
    void chatTellsTheEffectOfSet() {
        const Run chat = colibri({"chat", m_model, "--max-tokens", "110", "--ignore-eos"},
                                 "hello\n/set expert_cache_size 2\n/clear\nhello\n/stats\n/quit\n");
        QVERIFY2(chat.code == 0, chat.err.constData());
        const QByteArray effect = "Cache size 8 \u2192 2: ";
        QVERIFY2(chat.err.count(effect) == 2, chat.err.constData());
        QVERIFY2(chat.err.contains(" % tok/s (95 %: "), chat.err.constData());
    }
};

QTEST_GUILESS_MAIN(TestCliTalk)
#include "test_cli_talk.moc"
