// SPDX-License-Identifier: GPL-3.0-or-later
// Chats on the command line: typed input, input from a pipe, and the options of the prompt.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

namespace {

// The command on a pseudo-terminal.
class Terminal {
public:
    explicit Terminal(const QStringList& arguments, int columns = 80) {
        winsize size{};
        size.ws_row = 24;
        size.ws_col = static_cast<unsigned short>(columns);
        m_process = forkpty(&m_terminal, nullptr, nullptr, &size);
        if (m_process != 0) return;
        setenv("TERM", "xterm", 1);
        unsetenv("LC_ALL");
        setenv("LANG", "C", 1);
        QList<QByteArray> owned{COLIBRI_BINARY};
        for (const QString& argument : arguments) owned << argument.toUtf8();
        std::vector<char*> argv;
        for (QByteArray& argument : owned) argv.push_back(argument.data());
        argv.push_back(nullptr);
        execv(argv[0], argv.data());
        _exit(127);
    }
    ~Terminal() {
        if (m_process > 0) {
            kill(m_process, SIGKILL);
            waitpid(m_process, nullptr, 0);
        }
        close(m_terminal);
    }

    // Types at a prompt, once the program reads the line; before that the kernel edits the line.
    void type(const QByteArray& keys) {
        m_seen.clear();
        termios modes{};
        for (int waited = 0; waited < 1000; ++waited, QThread::msleep(10))
            if (tcgetattr(m_terminal, &modes) == 0 && !(modes.c_lflag & ICANON)) break;
        if (write(m_terminal, keys.constData(), size_t(keys.size())) != keys.size())
            qWarning("the terminal takes no keys");
    }
    // Whether the text is printed after the last keys.
    bool shows(const QByteArray& wanted) {
        for (int waited = 0; waited < 300 && !m_seen.contains(wanted); ++waited) {
            pollfd look{m_terminal, POLLIN, 0};
            if (poll(&look, 1, 100) <= 0) continue;
            char bytes[4096];
            const ssize_t got = read(m_terminal, bytes, sizeof bytes);
            if (got <= 0) break;
            m_seen.append(bytes, qsizetype(got));
        }
        if (!m_seen.contains(wanted)) qWarning("seen: %s", m_seen.constData());
        return m_seen.contains(wanted);
    }
    // Whether the text is printed, followed by the prompt. Keys typed earlier would be on another
    // line.
    bool answers(const QByteArray& wanted) {
        if (!shows(wanted)) return false;
        m_seen.remove(0, m_seen.indexOf(wanted) + wanted.size());
        return shows("> ");
    }
    void resize(int columns) {
        m_seen.clear();
        winsize size{};
        size.ws_row = 24;
        size.ws_col = static_cast<unsigned short>(columns);
        if (ioctl(m_terminal, TIOCSWINSZ, &size) != 0) qWarning("the size stays");
    }
    int exitCode() {
        int status = 0;
        for (int waited = 0; waited < 300; ++waited) {
            (void)shows("\x01never", 0);
            if (waitpid(m_process, &status, WNOHANG) == m_process) {
                m_process = -1;
                return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            }
            QThread::msleep(100);
        }
        return -2;
    }
    const QByteArray& seen() const { return m_seen; }

private:
    // Reads the available output.
    bool shows(const QByteArray&, int) {
        pollfd look{m_terminal, POLLIN, 0};
        while (poll(&look, 1, 0) > 0) {
            char bytes[4096];
            const ssize_t got = read(m_terminal, bytes, sizeof bytes);
            if (got <= 0) break;
            m_seen.append(bytes, qsizetype(got));
        }
        return true;
    }

    int m_terminal = -1;
    pid_t m_process = -1;
    QByteArray m_seen;
};

}  // namespace

class TestCliChat : public QObject {
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

    // Other systems and editors end lines with CR LF or white space.
    void pipedCommandsMayEndInWhiteSpace() {
        const Run chat =
            colibri({"chat", m_model},
                    "/set expert_cache_size 4 \r\n/set  cache_policy\tslru\r\n/knobs \r\n"
                    "/clear\t\r\n/quit \r\nnever asked\n");
        QCOMPARE(chat.code, 0);
        QVERIFY2(!chat.err.contains("Unknown command"), chat.err.constData());
        QVERIFY2(chat.err.contains("expert_cache_size = 4\n"), chat.err.constData());
        QVERIFY2(chat.err.contains("cache_policy = slru\n"), chat.err.constData());
        QVERIFY2(chat.err.contains("Conversation restarted."), chat.err.constData());
        QVERIFY2(!chat.err.contains("tok/s"), chat.err.constData());
    }

    void pipedMessagesHaveNoCarriageReturn() {
        const QStringList options{"chat", m_model, "--max-tokens", "2", "--json"};
        const Run windows = colibri(options, "hello\r\n"), unix = colibri(options, "hello\n");
        QCOMPARE(windows.code, 0);
        const QJsonObject a = windows.json()["turns"].toArray()[0].toObject();
        const QJsonObject b = unix.json()["turns"].toArray()[0].toObject();
        QCOMPARE(a["user"], b["user"]);
        QCOMPARE(a["text"], b["text"]);
    }

    void namesThatAreSpelledNearlySoAreOffered() {
        QVERIFY(colibri({"caht", m_model}).err.contains("Did you mean chat?"));
        QVERIFY(
            colibri({"generate", m_model, "--promt", "x"}).err.contains("Did you mean --prompt?"));
        const QByteArray none = colibri({"zzzzzz"}).err;
        QVERIFY2(!none.contains("Did you mean") && none.contains("unknown command"),
                 none.constData());
        const Run chat = colibri({"chat", m_model}, "/hlep\n/set expert_cache_sise 4\n");
        QVERIFY2(chat.err.contains("Did you mean /help?"), chat.err.constData());
        QVERIFY2(chat.err.contains("Did you mean expert_cache_size?"), chat.err.constData());
    }

    void aloneItListsItsVerbs() {
        const Run run = colibri({});
        QCOMPARE(run.code, 2);
        for (const char* verb : {"chat", "generate", "serve", "convert", "Exit codes"})
            QVERIFY2(run.err.contains(verb), run.err.constData());
        QVERIFY(run.out.isEmpty());
    }

    void rawPromptOfAChatModelIsTold() {
        const QByteArray hint = "continued as raw text";
        const QStringList raw{"generate", m_model, "-p", "hello", "--max-tokens", "2"};
        QVERIFY(colibri(raw).err.contains(hint));
        QVERIFY(!colibri(raw + QStringList{"--chat"}).err.contains(hint));
        QVERIFY(!colibri(raw + QStringList{"--json"}).err.contains(hint));
    }

    void templateArgumentsReachTheTemplate() {
        const auto promptTokens = [&](const QStringList& more) {
            const Run run = colibri(QStringList{"generate", m_model, "--chat", "--prompt", "hello",
                                                "--max-tokens", "1", "--json"} +
                                    more);
            return run.json()["stats"].toObject()["prompt_tokens"].toInt();
        };
        const int plain = promptTokens({});
        QVERIFY(plain > 0);
        QVERIFY(promptTokens({"--template-arg", "enable_thinking=false"}) > plain);
        QCOMPARE(promptTokens({"--template-arg", "a={\"b\": [1]}", "--reasoning-effort", "low"}),
                 plain);
        const Run chat = colibri({"chat", m_model, "--json", "--max-tokens", "1", "--template-arg",
                                  "enable_thinking=false"},
                                 "hello\n");
        const QJsonObject turn = chat.json()["turns"].toArray()[0].toObject();
        QVERIFY(turn["stats"].toObject()["prompt_tokens"].toInt() > plain);
        for (const char* wrong :
             {"enable_thinking=flase", "enable_thinking", "=1", "messages=[]"}) {
            const Run run = colibri({"chat", m_model, "--template-arg", wrong}, "");
            QCOMPARE(run.code, 2);
            QVERIFY2(run.err.contains("template"), run.err.constData());
        }
        QVERIFY(
            colibri({"chat", m_model, "--template-arg", "x=flase"}, "").err.contains("not JSON"));
    }

    // generate --chat equals one turn of chat: the same prompt and the same reply.
    void generateChatPrintsWhatChatPrints() {
        for (const char* message : {"hello", "A<|im_end|>B", "why?"}) {
            const QStringList sampling{"--max-tokens", "40", "--temperature", "2",
                                       "--top-k",      "0",  "--top-p",       "1",
                                       "--seed",       "3",  "--ignore-eos"};
            const Run one =
                colibri(QStringList{"generate", m_model, "--chat", "--prompt", message} + sampling);
            const Run turn =
                colibri(QStringList{"chat", m_model} + sampling, QByteArray(message) + "\n");
            QCOMPARE(one.out, turn.out);
            QVERIFY(one.out.size() > 5);
        }
    }

    void linesCanBeEdited() {
        Terminal terminal({"chat", m_model, "--max-tokens", "3"});
        QVERIFY(terminal.shows("> "));
        terminal.type("/hlp\x1b[D\x1b[De\r");  // Left, Left
        QVERIFY(terminal.answers("restart the conversation"));
        terminal.type("/xyzzy\r");
        QVERIFY(terminal.answers("Unknown command /xyzzy"));
        terminal.type("\x1b[A\x1b[A\r");  // Up, Up
        QVERIFY(terminal.answers("restart the conversation"));
        terminal.type("/set expert_ca\t4\r");
        QVERIFY(terminal.answers("expert_cache_size = 4"));
        terminal.type("/set cache_policy sl\t\r");
        QVERIFY(terminal.answers("cache_policy = slru"));
        // Characters of several bytes and of two columns are deleted as one.
        terminal.type("\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80\x7f\x7f\x7f/xyz\r");
        QVERIFY(terminal.answers("Unknown command /xyz."));
        terminal.type("half a line\x03");  // Ctrl-C
        QVERIFY(terminal.answers("To end the chat, type /quit"));
        terminal.type("/xy2\r");
        QVERIFY(terminal.answers("Unknown command /xy2"));
        terminal.type("/quit\r");
        QCOMPARE(terminal.exitCode(), 0);
    }

    void keysThatNobodyKnowsAreNoText() {
        Terminal terminal({"chat", m_model, "--max-tokens", "3"});
        QVERIFY(terminal.shows("> "));
        // Page Up, F5, two encodings of F1, Shift-Tab, Ctrl-Shift-Up, a focus event, a reply of the
        // terminal.
        terminal.type(
            "/x\x1b[5~\x1b[15~\x1bOP\x1b[[A\x1b[Z\x1b[1;6A\x1b[I\x1b]11;rgb:0/0/0\x07yz\r");
        QVERIFY(terminal.answers("Unknown command /xyz."));
        // Home, Delete, End, Ctrl-Left.
        terminal.type("x/ab c\x1b[H\x1b[3~\x1b[F!\x1b[1;5D\x1b[3~d\r");
        QVERIFY(terminal.answers("Unknown command /ab."));
        terminal.type("/quit\r");
        QCOMPARE(terminal.exitCode(), 0);
    }

    // Pasted lines form one message, which Return sends.
    void aPasteOfSeveralLinesIsOneMessage() {
        Terminal terminal({"chat", m_model, "--max-tokens", "1", "--json"});
        QVERIFY(terminal.shows("\x1b[?2004h"));
        terminal.type("\x1b[200~first\r\tsecond\rthird \x1b[31mred\x07\x1b[201~ end\r");
        QVERIFY(terminal.shows("tok/s"));
        QVERIFY(terminal.shows("> "));
        terminal.type("/quit\r");
        QVERIFY(terminal.shows("\"turns\""));
        QCOMPARE(terminal.exitCode(), 0);
        QVERIFY2(terminal.seen().contains("\"user\":\"first\\n\\tsecond\\nthird red end\""),
                 terminal.seen().constData());
        QVERIFY(terminal.seen().contains("\x1b[?2004l"));
    }

    void aLongLineIsDrawnAnewWhenTheTerminalIsResized() {
        Terminal terminal({"chat", m_model}, 80);
        QVERIFY(terminal.shows("> "));
        terminal.type("/" + QByteArray(100, 'x') + "tail");
        QVERIFY(terminal.shows("tail"));
        terminal.resize(50);
        // The whole line is drawn again for the new width.
        QVERIFY(terminal.shows("> /" + QByteArray(47, 'x')));
        QVERIFY(terminal.shows("tail"));
        terminal.type("\r");
        QVERIFY(terminal.answers("Unknown command /xxxx"));
        terminal.type("/quit\r");
        QCOMPARE(terminal.exitCode(), 0);
    }

    void controlDEnds() {
        Terminal terminal({"chat", m_model});
        QVERIFY(terminal.shows("> "));
        terminal.type("\x04");
        QCOMPARE(terminal.exitCode(), 0);
    }

    void secondControlCEnds() {
        Terminal terminal({"chat", m_model});
        QVERIFY(terminal.shows("> "));
        terminal.type("\x03");
        QVERIFY(terminal.answers("To end the chat, type /quit"));
        terminal.type("\x03");
        QCOMPARE(terminal.exitCode(), 1);
    }

    // Line breaks are between figures, not within.
    void figuresFitTheTerminal() {
        Terminal terminal({"chat", m_model, "--max-tokens", "3", "--ignore-eos"}, 60);
        QVERIFY(terminal.shows("> "));
        terminal.type("hello\r");
        QVERIFY(terminal.shows("stall "));
        QVERIFY(terminal.shows("> "));
        bool figures = false;
        for (QByteArray line : terminal.seen().split('\n')) {
            line = line.trimmed();
            if (!line.contains("tok/s") && !line.contains("stall")) continue;
            figures = true;
            QVERIFY2(QString::fromUtf8(line).size() <= 60, line.constData());
        }
        QVERIFY(figures);
    }
};

QTEST_GUILESS_MAIN(TestCliChat)
#include "test_cli_chat.moc"
