// SPDX-License-Identifier: GPL-3.0-or-later
// Renders the window with the seeded story to PNG files, to be looked at beside the pictures of the
// design: workbench_shots DIR [PAGE...]; pages: chat, knobs, experts, palette, keyboard, diagnose,
// sampling, template, list, messages, empty, dense (a model without experts), code, text, texttop,
// textfull, export (a plot as a file); a size may follow, as in chat-800x500. On the bundled model,
// with an engine: serve, load, loading, shape, welcome, session (totals of one that ended); "live"
// is a chat with it, "plots" the same with every plot chosen, "replay" a recorded session of it.
#include <QApplication>
#include <QDir>
#include <QKeyEvent>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QStandardPaths>
#include <QThread>
#include <cstdio>
#include <thread>

#include "app/serve/http_target.h"
#include "app/workbench/backend/engine_host.h"
#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/window/main_window.h"
#include "fake_source.h"
#include "session_path.h"

using namespace colibri;
using namespace colibri::ui;

namespace {

void settle(MainWindow& window) {
    for (int i = 0; i < 12; ++i) {
        window.tick();
        QApplication::processEvents();
        QThread::msleep(5);
    }
}

QSize sizeOf(const QString& name) {
    const QString dims = name.section('-', 1);
    return dims.isEmpty() ? QSize(1440, 900)
                          : QSize(dims.section('x', 0, 0).toInt(), dims.section('x', 1).toInt());
}

void save(MainWindow& window, const QString& folder, const QString& name) {
    for (QWidget* widget : window.findChildren<QWidget*>())
        widget->setAttribute(Qt::WA_UnderMouse, false);
    QImage image(window.size(), QImage::Format_ARGB32);
    image.fill(Qt::magenta);  // anything the window leaves unpainted shows
    QPainter painter(&image);
    window.render(&painter);
    painter.end();
    const QString path = folder + "/" + name + (Theme::get().dark() ? "-dark" : "-light") + ".png";
    image.save(path);
    std::printf("%s\n", qPrintable(path));
}

void runUntil(MainWindow& window, const std::function<bool()>& done) {
    for (int i = 0; i < 12000 && !done(); ++i) {
        window.tick();
        QApplication::processEvents(QEventLoop::AllEvents, 20);
        QThread::msleep(5);
    }
}

// One run for all pictures: a reply, knobs moved on the way, and a second one under way.
void shootChat(const QString& folder, const QStringList& names) {
    EngineHost host(folder + "/data");
    MainWindow window(&host, folder + "/chats");
    window.resize(1440, 900);
    window.show();
    host.load(demoModelPath().toStdString(), demoKnobs());
    const auto wait = [&](const std::function<bool()>& done) { runUntil(window, done); };
    wait([&] { return host.state() == SessionSource::State::Ready; });
    window.showPage("chat");
    ChatPanel* chat = window.chatPage()->chat();
    KnobsPanel* knobs = window.chatPage()->knobs();
    const auto tokens = [&](int n) {
        const Conversation& c = chat->conversation();
        return !chat->generating() || c.turns[c.path().last()].tokens.size() >= n;
    };
    const auto ask = [&](const char* text) {
        chat->composer()->editor()->setPlainText(text);
        QKeyEvent enter(QEvent::KeyPress, Qt::Key_Return, {});
        QApplication::sendEvent(chat->composer()->editor(), &enter);
    };
    ask("Tell me a story about a fox.");
    wait([&] { return tokens(40); });
    knobs->request(KnobId::ExpertCacheSize, 16);
    wait([&] { return !chat->generating(); });
    ask("Tell me a long story about a fox who finds a key.");
    wait([&] { return tokens(20); });
    knobs->request(KnobId::PrefetchSource, int64_t(PrefetchSource::PreviousToken));
    wait([&] { return tokens(50); });
    for (const Theme::Mode mode : {Theme::Mode::Dark, Theme::Mode::Light}) {
        Theme::get().setMode(mode);
        for (const QString& name : names) {
            window.resize(sizeOf(name));
            settle(window);
            PlotsPanel* plots = window.chatPage()->plots();
            plots->resetShown();
            if (name.startsWith("plots"))
                for (const PlotSpec& spec : plotSpecs()) plots->setPlotShown(spec.key, true);
            settle(window);
            save(window, folder, name);
        }
    }
    window.closeNow();
}

// A session of three turns with two changed knobs, recorded once for all pictures.
QString recordSession(const QString& folder) {
    EngineHost host(folder + "/data");
    MainWindow window(&host, folder + "/chats");
    window.resize(1440, 900);
    window.show();
    host.load(demoModelPath().toStdString(), demoKnobs());
    runUntil(window, [&] { return host.state() == SessionSource::State::Ready; });
    ChatPanel* chat = window.chatPage()->chat();
    KnobsPanel* knobs = window.chatPage()->knobs();
    chat->newChat();
    const auto tokens = [&](int n) {
        return !chat->generating() || chat->conversation().turns.last().tokens.size() >= n;
    };
    const char* const kQuestions[] = {"Tell me a story about a fox.",
                                      "What is an expert cache, and why does this one miss?",
                                      "Tell me a long story about a fox who finds a key."};
    for (int i = 0; i < 3; ++i) {
        chat->send(kQuestions[i]);
        runUntil(window, [&] { return tokens(60); });
        if (i == 0) knobs->request(KnobId::ExpertCacheSize, 16);
        if (i == 2) knobs->request(KnobId::PrefetchSource, int64_t(PrefetchSource::PreviousToken));
        runUntil(window, [&] { return !chat->generating(); });
        for (int wait = 0; wait < 40; ++wait) settle(window);
    }
    const QString path = sessionPath(host);
    window.closeNow();
    host.close();
    runUntil(window, [&] { return host.state() == SessionSource::State::NoModel; });
    return path;
}

void shootRecorded(const QString& folder, const QStringList& names) {
    const QString path = recordSession(folder);
    for (const Theme::Mode mode : {Theme::Mode::Dark, Theme::Mode::Light}) {
        Theme::get().setMode(mode);
        for (const QString& name : names) {
            FakeSource none(false);
            MainWindow window(&none, folder + "/chats");
            window.resize(sizeOf(name));
            window.show();
            const auto session = openSessionFile(path.toStdString());
            if (!session) {
                std::printf("%s\n", session.status().text().c_str());
                return;
            }
            RecordedView* recorded = window.recorded();
            recorded->open(*session);
            runUntil(window, [&] { return recorded->source()->complete(); });
            // In the middle of the second turn.
            const auto& request = recorded->source()->facts().requests[1];
            recorded->player()->seek(request.admitted + 0.6 * (request.done - request.admitted));
            recorded->player()->setSpeed(4);
            recorded->player()->setPlaying(true);
            settle(window);
            window.view()->setCursor(std::numeric_limits<double>::quiet_NaN());
            for (int i = 0; i < 10; ++i) settle(window);
            save(window, folder, name);
        }
    }
}

void serveSome(MainWindow& window) {
    window.commands()->run("engine.serve");
    window.servePanel()->port()->setText("0");
    window.servePanel()->setOn(true);
    runUntil(window, [&] { return window.server()->state() == ModelServer::State::On; });
    std::atomic<bool> ended{false};
    std::thread program([&, address = window.server()->address().toStdString()] {
        auto target = serve::HttpTarget::connect(address, {{}, 40, true});
        const CancelFlag never{false};
        for (const LoadPrompt& prompt : shippedLoadPrompts())
            if (target.ok() && prompt.messages.size()) (*target)->send(prompt, never);
        ended = true;
    });
    runUntil(window, [&] { return ended.load(); });
    program.join();
}

void loadSome(MainWindow& window, bool toTheEnd) {
    window.commands()->run("engine.load");
    window.loadTestPanel()->maxTokens()->setValue(24);
    window.loadTestPanel()->startTest();
    runUntil(window, [&] {
        return !window.loadTest()->running() ||
               (!toTheEnd && window.loadTest()->now().completed >= 9);
    });
}

// A session of one reply, closed and opened again as a file.
void endSession(MainWindow& window, EngineHost& host, StartPages* start) {
    ChatPanel* chat = window.chatPage()->chat();
    chat->send("Tell me a story about a fox.");
    runUntil(window, [&] {
        return !chat->generating() || chat->conversation().turns.last().tokens.size() > 60;
    });
    window.chatPage()->knobs()->request(KnobId::ExpertCacheSize, 16);
    runUntil(window, [&] { return !chat->generating(); });
    const QString path = sessionPath(host);
    host.close();
    runUntil(window, [&] { return host.state() == SessionSource::State::NoModel; });
    window.showPage("start");
    start->showTotals(path);
    for (int i = 0; i < 100; ++i) settle(window);
}

void shootLive(const QString& folder, const QString& name, Theme::Mode mode) {
    Theme::get().setMode(mode);
    EngineHost host(folder + "/data");
    MainWindow window(&host, folder + "/chats");
    auto* start = new StartPages(host);
    window.addPage({"start", "", "", start, false, {}});
    window.resize(sizeOf(name));
    window.show();
    if (name.startsWith("shape")) start->showShape();
    if (name.startsWith("shape") || name.startsWith("welcome")) {
        window.showPage("start");
    } else {
        KnobValues knobs;
        knobs[size_t(KnobId::ExpertCacheSize)] = 8;
        host.load(demoModelPath().toStdString(), knobs);
        runUntil(window, [&] { return host.state() == SessionSource::State::Ready; });
        window.chatPage()->chat()->newChat();
        if (name.startsWith("session"))
            endSession(window, host, start);
        else if (name.startsWith("serve"))
            serveSome(window);
        else
            loadSome(window, !name.startsWith("loading"));
    }
    settle(window);
    save(window, folder, name);
}

// A reply with everything that text can have, cut off at its limit, after a long paste.
Conversation textConversation() {
    Conversation chat = Conversation::create();
    chat.title = "Every kind of text";
    Turn user;
    user.live = true;
    for (int i = 0; i < 60; ++i)
        user.text += QString("line %1 of a log: 0x10 -> 1024x768, 12.5 tok/s\n").arg(i);
    Turn reply;
    reply.role = Turn::Role::Model;
    reply.live = true;
    reply.model = "Wren-14B-A1.3B";
    reply.text =
        "# A heading\nPlain, *italic*, **bold**, ***both***, ~~struck~~, `0x10 -> y`, "
        "https://example.org/a_b, "
        "$E = mc^2$ and 1024x768.\n\n## A smaller one\n\n> A quote that goes on\n> in a second "
        "line\n> "
        "```py\n> print(1)\n> ```\n\n1. first\n   ```sh\n   ls -l | grep "
        "a_very_long_name_that_does_not_fit "
        "--and-an-option-that-goes-on\n   ```\n2. second\n   - inner\n- [ ] open\n- [x] done\n\n"
        "| Model | tok/s | Experts | Notes |\n|---|---|---|---|\n| Qwen3-30B-A3B | 12.5 | 1,024 | "
        "A long remark "
        "that goes on and on, about the disk, the cache and the threads |\n| Mixtral 8x7 | 9.75 | "
        "8 | no |\n\n"
        "### The smallest\nAnd the last";
    reply.figures.tokS = 34.2;
    reply.figures.ttftMs = 402;
    reply.figures.promptTokS = 148;
    reply.figures.promptTokens = 1560;
    reply.figures.tokens = reply.figures.limit = 512;
    reply.figures.hitRate = 67.5;
    reply.figures.bytesRead = 1e9;
    reply.figures.leftOut = 2;
    reply.figures.stop = "length";
    chat.append(chat.append(-1, user), reply);
    return chat;
}

Conversation codeConversation() {
    Conversation chat = Conversation::create();
    chat.title = "Code";
    Turn user;
    user.text = "The same in three languages, please.";
    Turn reply;
    reply.role = Turn::Role::Model;
    reply.model = "Wren-14B-A1.3B";
    reply.text =
        "```python\n# The mean, or 0 of nothing.\ndef mean(values):\n    if not values:\n        "
        "return 0.0\n"
        "    return sum(values) / len(values)\n\nprint(\"mean:\", mean([1, 2.5, 4]))\n```\n\n"
        "```cpp\n/* The mean, or 0 of nothing. */\ndouble mean(const std::vector<double>& v) {\n"
        "    return v.empty() ? 0.0 : std::accumulate(v.begin(), v.end(), 0.0) / v.size();  // "
        "never NaN\n}\n```\n\n"
        "```sql\nSELECT model, avg(tok_s) AS speed -- of each\nFROM runs WHERE isa = 'avx2' GROUP "
        "BY model;\n```";
    reply.figures.stop = "eos";
    chat.append(chat.append(-1, user), reply);
    return chat;
}

void shootText(MainWindow& window, const QString& name) {
    ChatPanel* chat = window.chatPage()->chat();
    chat->openConversation(name.startsWith("code") ? codeConversation() : textConversation());
    settle(window);
    if (name.startsWith("texttop")) chat->view()->verticalScrollBar()->setValue(0);
    if (name.startsWith("textfull")) chat->composer()->setText(QString(4 << 15, 'x'));
    QThread::msleep(100);
    settle(window);
}

void shoot(const QString& folder, const QString& name, Theme::Mode mode) {
    Theme::get().setMode(mode);
    const QSize size = sizeOf(name);
    FakeSource source(name != "empty");
    if (name.startsWith("dense")) source.setDense();
    MainWindow window(&source, folder + "/chats");
    window.resize(size);
    window.show();
    ChatPanel* chat = window.chatPage()->chat();
    if (name == "empty") {
        settle(window);
    } else if (name.startsWith("text") || name.startsWith("code")) {
        shootText(window, name);
    } else {
        chat->openConversation(storyConversation(size.width() >= 1920));
        const QVector<int> path = chat->conversation().path();
        source.active = 1;
        chat->view()
            ->modelTurn(path.last())
            ->refresh(chat->conversation().turns[path.last()], ModelTurn::State::Generating, {});
        chat->composer()->setGenerating(true);
        chat->composer()->focusEditor();
        settle(window);
        window.view()->setCursor(58.6);
        if (ModelTurn* turn = chat->view()->modelTurn(path[path.size() - 3])) {
            const Turn& data = chat->conversation().turns[path[path.size() - 3]];
            for (int i = 0; i < data.tokens.size(); ++i)
                if (data.tokens[i].waitMs > 12) turn->flow()->setHoveredToken(i);
        }
        window.view()->setCursor(58.6);
        if (name != "palette") chat->composer()->focusEditor();
        settle(window);
        if (name == "palette") window.palette()->openCommands("cache");
        if (name.startsWith("knobs")) window.chatPage()->showKnobs();
        if (name.startsWith("experts")) window.chatPage()->showPane("experts");
        if (name == "keyboard") window.commands()->run("help.keyboard");
        if (name == "diagnose") window.openDiagnostics();
        if (name.startsWith("sampling")) chat->openSampling();
        if (name.startsWith("template")) chat->findChild<ChatTemplates*>()->edit();
        if (name.startsWith("export"))
            return void(window.chatPage()->plots()->plot("itl")->saveImage(
                folder + "/" + name + (Theme::get().dark() ? "-dark" : "-light") + ".png"));
        if (name == "list") window.chatPage()->toggleList(nullptr);
        if (name == "messages") {
            window.messages()->ok("Config written", "desk-16gb.json, 14 knobs");
            window.messages()->post({Message::Kind::Warning, "Recording dropped 1,204 events",
                                     "The ring of thread 3 was full for 0.2 s. Figures from 01:12 "
                                     "to 01:13 are too low."});
            window.messages()->error("Expert 37 of layer 14 could not be read",
                                     "layer_014.bin, byte 180,043,776: input/output error, twice. "
                                     "The request ended; the "
                                     "engine runs on. Check the disk, then verify hashes.");
            window.topBar()->bell()->click();
        }
        settle(window);
    }
    save(window, folder, name);
    chat->composer()->setGenerating(false);
}

}  // namespace

int main(int argc, char** argv) {
    QStandardPaths::setTestModeEnabled(true);
    QApplication app(argc, argv);
    app.setApplicationName("colibri-workbench-shots");
    Theme::get().install();
    const QString folder = argc > 1 ? argv[1] : ".";
    QDir().mkpath(folder);
    QStringList names;
    for (int i = 2; i < argc; ++i) names << argv[i];
    if (names.isEmpty())
        names = {"chat", "chat-800x500", "chat-1100x700", "chat-2560x1440", "palette"};
    QStringList chats;
    for (const QString& name : names)
        if (name.startsWith("live") || name.startsWith("plots")) chats << name;
    if (!chats.isEmpty()) shootChat(folder, chats);
    for (const QString& name : chats) names.removeAll(name);
    QStringList recorded;
    for (const QString& name : names)
        if (name.startsWith("replay")) recorded << name;
    if (!recorded.isEmpty()) shootRecorded(folder, recorded);
    for (const QString& name : recorded) names.removeAll(name);
    for (const QString& name : names) {
        const bool live =
            QStringList{"serve", "load", "loading", "shape", "welcome", "session"}.contains(
                name.section('-', 0, 0));
        for (const Theme::Mode mode : {Theme::Mode::Dark, Theme::Mode::Light})
            (live ? shootLive : shoot)(folder, name, mode);
    }
    return 0;
}
