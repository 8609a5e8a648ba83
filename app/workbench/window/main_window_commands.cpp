// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: the list of commands.
#include <QApplication>
#include <QClipboard>
#include <QMenuBar>

#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/widgets/typed_number.h"
#include "app/workbench/window/main_window.h"

namespace colibri::ui {
namespace {

constexpr const char* kNeedsModel = "no model loaded";
constexpr const char* kNeedsLoaded = "no model loaded, or a recorded session is shown";

QString inUse(bool on) {
    return on ? QString("in use") : QString();
}

// The name of a knob within a sentence: with its group if the label alone says little ("Policy").
QString spokenName(const KnobRow& row) {
    const QString label = row.label, group = row.group;
    const bool clear =
        label.contains(' ') || label == group || QString(row.name).startsWith(label.toLower());
    const QString name = clear ? label : group + " " + label.toLower();
    return name == name.toUpper() ? name : name.left(1).toLower() + name.mid(1);
}

}  // namespace

void MainWindow::addCommands() {
    addChatCommands();
    addPlotCommands();
    addKnobCommands();
    addServeCommands();
    addLoadTestCommands();
    addThemeCommands();
    addScaleCommands();
    addLayoutCommands();
    addSessionCommands();
    addPlayerCommands();
    addHelpCommands();
    m_commands->dynamic = [this] { return knobCommands(); };
}

void MainWindow::addThemeCommands() {
    using Mode = Theme::Mode;
    const CommandGroup view(m_commands, "View");
    view.add("view.theme_toggle", "Switch between light and dark", "sun", "Ctrl+Shift+L",
             [this] { setTheme(Theme::get().dark() ? Mode::Light : Mode::Dark); });
    struct Row {
        const char *id, *title, *icon;
        Mode mode;
    };
    for (const Row& row : {Row{"view.theme_light", "Light theme", "sun", Mode::Light},
                           Row{"view.theme_dark", "Dark theme", "moon", Mode::Dark},
                           Row{"view.theme_system", "System theme", "eye", Mode::System}}) {
        const Mode mode = row.mode;
        view.add(row.id, row.title, row.icon, "", [this, mode] { setTheme(mode); },
                 {.detail = [mode] { return inUse(Theme::get().mode() == mode); }});
    }
    view.add(
        "view.contrast", "High contrast", "eye", "",
        [] {
            Theme::get().setHighContrast(!Theme::get().highContrast());
            settings().setValue("high_contrast", Theme::get().highContrast());
        },
        {.detail = [] { return Theme::get().highContrast() ? QString("on") : QString("off"); }});
}

void MainWindow::addScaleCommands() {
    const CommandGroup view(m_commands, "View");
    for (const int percent : {100, 125, 150, 200}) {
        const QString title = QString("Scale %1 %").arg(percent);
        view.add(QString("view.scale_%1").arg(percent), title, "eye", "",
                 [this, percent, title] {
                     settings().setValue("scale", percent);
                     m_messages->post({Message::Kind::Info, title, "from the next start",
                                       "Restart now", [this] { emit restartWanted(); }});
                 },
                 {.detail = [percent] {
                     return inUse(settings().value("scale", 100).toInt() == percent);
                 }});
    }
}

void MainWindow::addLayoutCommands() {
    const CommandGroup view(m_commands, "View");
    view.add("view.reset_layout", "Reset layout", "panel", "",
             [this] { m_chatPage->resetLayout(); });
    view.add("view.next_pane", "Next pane", "panel", "F6", [this] { nextPane(1); });
    view.add("view.previous_pane", "Previous pane", "panel", "Shift+F6", [this] { nextPane(-1); });
    view.add("view.full_screen", "Full screen", "panel", "F11",
             [this] { isFullScreen() ? showNormal() : showFullScreen(); });
    view.add("view.menu_bar", "Menu bar", "menu", "F10",
             [this] {
                 menuBar()->setVisible(!menuBar()->isVisible());
                 updateOverlayInsets();
                 if (menuBar()->isVisible()) menuBar()->setFocus();
             },
             {.detail = [] { return QString("or Alt"); }});
}

void MainWindow::addSessionCommands() {
    const CommandGroup session(m_commands, "Session");
    const auto ready = [this] { return m_source->model() && !m_recorded->isOpen(); };
    const auto file = [this] {
        const auto snapshot = shownSource()->snapshot();
        return snapshot ? exactText(snapshot->sessionFile) : QString();
    };
    session.add("session.copy_path", "Copy path of the session file", "copy", "",
                [this, file] {
                    QApplication::clipboard()->setText(file());
                    m_messages->ok("Path copied.", shown(file()));
                },
                {.enabled = [file] { return !file().isEmpty(); },
                 .needs = "not recording",
                 .detail = [file] { return shown(file().section('/', -1)); },
                 .also = "path"});
    session.add("session.sheet", "This session", "info", "Ctrl+I",
                [this] {
                    if (!m_commands->run("session.totals")) openSessionSheet();
                },
                {.enabled = [this] { return shownSource()->model() != nullptr; },
                 .needs = kNeedsModel,
                 .also = "memory recording cost dropped state"});
    session.add("session.note", "Add a note at this moment", "flag", "Ctrl+M",
                [this] {
                    m_palette->ask("Note", "",
                                   [this](const QString& text) { m_source->note(text); });
                },
                {.enabled = ready, .needs = kNeedsModel});
    const auto sampled = [] { return settings().value(kPmSamplingKey).toBool(); };
    session.add("session.pm_sampling", "Precise GPU counters", "chip", "",
                [this, sampled] {
                    settings().setValue(kPmSamplingKey, !sampled());
                    m_messages->ok(sampled() ? "The next model that is loaded samples the GPU "
                                               "precisely, with locked clocks."
                                             : "The next model that is loaded leaves the GPU's "
                                               "clocks alone.");
                },
                {.detail = [sampled] { return QString(sampled() ? "on, locks clocks" : "off"); },
                 .also = "sm utilisation pm sampling clocks"});
    session.add("app.quit", "Quit", "close", "Ctrl+Q", [this] { close(); });
}

void MainWindow::addHelpCommands() {
    const CommandGroup help(m_commands, "Help");
    help.add("help.commands", "Commands", "search", "Ctrl+Shift+P",
             [this] { m_palette->openCommands(); });
    help.add("help.keyboard", "Keyboard sheet", "help", "F1", [this] { openKeyboardSheet(); });
    help.add("help.about", "About", "info", "", [this] { openAbout(); },
             {.also = "version licence license copyright gpl"});
    help.add("help.diagnose", "Diagnose this machine", "pulse", "Ctrl+Shift+D",
             [this] { openDiagnostics(); });
    help.add("help.messages", "Messages", "bell", "", [this] { m_top->bell()->click(); },
             {.detail = [this] { return QString::number(m_messages->all().size()); }});
}

void MainWindow::addChatCommands() {
    ChatPanel* chat = m_chatPage->chat();
    const CommandGroup group(m_commands, "Chat");
    const auto onChat = [this](auto action) {  // shows the chat page first, and the live chat
        return [this, action] {
            m_recorded->close();
            if (m_current != "chat") showPage("chat");
            action();
        };
    };
    const auto turns = [chat] { return !chat->conversation().isEmpty(); };
    const CommandGroup::Options needTurns{.enabled = turns, .needs = "the chat is empty"};
    const CommandGroup::Options needReply{
        .enabled = [chat, turns] { return !chat->generating() && turns(); },
        .needs = "no reply yet, or one is being generated"};
    group.add("chat.new", "New chat", "plus", "Ctrl+N", onChat([chat] { chat->newChat(); }));
    group.add("chat.focus", "Write a message", "edit", "Ctrl+L",
              onChat([chat] { chat->composer()->focusEditor(); }));
    group.add(
        "chat.stop", "Stop the reply", "stop", "Ctrl+.", [chat] { chat->stop(); },
        {.enabled = [chat] { return chat->generating(); }, .needs = "no reply is being generated"});
    group.add("chat.regenerate", "Regenerate the last reply", "reset", "Ctrl+R",
              onChat([chat] { chat->regenerate(); }), needReply);
    group.add("chat.edit", "Edit the last message", "edit", "Ctrl+E",
              onChat([chat] { chat->view()->editLast(); }), needReply);
    group.add("chat.find", "Find in chat", "search", "Ctrl+F",
              onChat([chat] { chat->findBar()->open(); }));
    group.add("chat.list", "Chats", "list", "Ctrl+H",
              onChat([this] { m_chatPage->toggleList(nullptr); }));
    group.add("chat.system", "System prompt", "chat", "Ctrl+Shift+S",
              onChat([chat] { chat->view()->openSystemPrompt(); }));
    group.add("chat.sampling", "Sampling", "knob", "Ctrl+Shift+M",
              onChat([chat] { chat->openSampling(); }));
    group.add(
        "chat.rename", "Rename chat", "edit", "",
        [this, chat] {
            m_palette->ask("Rename chat", chat->conversation().title, [chat](const QString& title) {
                chat->rename(chat->conversation().id, title);
            });
        },
        needTurns);
    group.add(
        "chat.delete", "Delete chat", "trash", "",
        [chat] { chat->deleteChat(chat->conversation().id); }, needTurns);
    group.add(
        "chat.export", "Export chat as Markdown or JSON", "save", "Ctrl+Shift+X",
        [this] { exportChat(); }, needTurns);
    group.add("chat.import", "Import chat from JSON", "folder", "", [this] { importChat({}); });
}

void MainWindow::addPlotCommands() {
    const CommandGroup group(m_commands, "Plots");
    const CommandGroup::Options needModel{
        .enabled = [this] { return shownSource()->model() != nullptr; }, .needs = kNeedsModel};
    const auto add = [&](const char* id, const char* title, const char* icon, const char* key,
                         std::function<void()> run) {
        group.add(id, title, icon, key, std::move(run), needModel);
    };
    // Around the cursor, else around the newest data.
    const auto zoom = [this](double factor) {
        m_view->zoom(factor, m_view->hasCursor() ? m_view->cursor() : m_view->upper());
    };
    // In a recorded session the keys belong to the player.
    add("plots.follow", "Follow the newest data", "follow", "End", [this] {
        if (!m_commands->run("session.end")) m_view->follow();
    });
    add("plots.pause", "Pause or resume the plots", "pause", "Ctrl+P", [this] {
        if (!m_commands->run("session.play")) m_view->setPaused(!m_view->paused());
    });
    add("plots.last_turn", "Show the last turn", "clock", "",
        [this] { m_chatPage->plots()->showLastTurn(); });
    add("plots.reset", "Reset the time range", "reset", "Ctrl+Shift+0",
        [this] { m_view->reset(); });
    add("plots.zoom_in", "Zoom in", "plus", "Ctrl+=", [zoom] { zoom(0.7); });
    add("plots.zoom_out", "Zoom out", "search", "Ctrl+-", [zoom] { zoom(1 / 0.7); });
    addPlotChoiceCommands(needModel);
    CommandGroup::Options slo = needModel;
    slo.detail = [this] { return QString::number(m_view->sloMs()) + " ms"; };
    group.add(
        "plots.slo", "Set the limit on ITL P99", "flag", "", [this] { askSlo(); }, slo);
    addPlotExportCommands(needModel);
}

void MainWindow::addPlotChoiceCommands(const CommandGroup::Options& needModel) {
    const CommandGroup group(m_commands, "Plots");
    PlotsPanel* plots = m_chatPage->plots();
    for (const PlotSpec& spec : plotSpecs()) {
        const QString key = spec.key;
        CommandGroup::Options options = needModel;
        options.also = spec.searchWords;
        options.detail = [plots, key] {
            return plots->plotShown(key) ? QString("shown") : QString("hidden");
        };
        group.add(
            "plots.show_" + key, "Show plot: " + spec.title.toLower(), "chart", "",
            [plots, key] { plots->setPlotShown(key, !plots->plotShown(key)); }, options);
    }
    group.add(
        "plots.show_experts", "Show experts map", "grid", "Ctrl+Shift+E",
        [this, plots] {
            if (m_chatPage->windowClass() == WindowClass::Small)
                m_chatPage->showPane("experts");
            else
                plots->setPlotShown("experts", !plots->plotShown("experts"));
        },
        needModel);
}

void MainWindow::addPlotExportCommands(const CommandGroup::Options& needModel) {
    const CommandGroup group(m_commands, "Plots");
    PlotsPanel* plots = m_chatPage->plots();
    for (const QString format : {"csv", "png", "svg"}) {
        for (const PlotSpec& spec : plotSpecs()) {
            CommandGroup::Options options = needModel;
            options.also = spec.searchWords;
            group.add(
                "plots.export_" + spec.key + "_" + format,
                QString("Export %1 as %2").arg(spec.title.toLower(), format.toUpper()), "save", "",
                [plots, key = spec.key, format] { plots->exportPlot(plots->plot(key), format); },
                options);
        }
    }
}

void MainWindow::askSlo() {
    m_palette->ask("Limit on ITL P99, ms", QString::number(m_view->sloMs()),
                   [this](const QString& text) {
                       const auto ms = typedNumber(text);
                       if (ms && *ms >= ViewState::kLeastSlo && *ms <= ViewState::kMostSlo)
                           return m_view->setSlo(*ms);
                       m_messages->error("The limit on ITL P99 was not set.",
                                         "\"" + text + "\" is not a number of ms from " +
                                             count(int64_t(ViewState::kLeastSlo)) + " to " +
                                             count(int64_t(ViewState::kMostSlo)) + ".");
                   });
}

void MainWindow::addKnobCommands() {
    const CommandGroup group(m_commands, "Knobs");
    KnobsPanel* knobs = m_chatPage->knobs();
    const auto ready = [this] { return m_source->model() && !m_recorded->isOpen(); };
    const CommandGroup::Options needModel{.enabled = ready, .needs = kNeedsLoaded};
    group.add(
        "knobs.show", "Knobs", "knob", "Ctrl+K",
        [this] {
            showPage("chat");
            m_chatPage->showKnobs();
        },
        {.enabled = [this] { return shownSource()->model() != nullptr; }, .needs = kNeedsModel});
    addUndoCommands();
    group.add(
        "knobs.reset", "Reset all knobs to their defaults", "reset", "",
        [knobs] { knobs->resetAll(); }, needModel);
    const auto linkLimit = [this, ready] {
        return ready() ? m_source->knobState(KnobId::LinkLimit).requested : 0;
    };
    group.add("knobs.lift_limit", "Remove the link limit", "close", "",
              [knobs] { knobs->request(KnobId::LinkLimit, 0); },
              {.enabled = [linkLimit] { return linkLimit() > 0; },
               .needs = "no link limit is set",
               .detail = [linkLimit] { return count(linkLimit()) + " MB/s"; }});
    group.add(
        "knobs.export", "Export config as JSON", "save", "Ctrl+S", [this] { exportConfig(); },
        needModel);
    group.add(
        "knobs.import", "Import config from JSON", "folder", "", [this] { importConfig({}); },
        needModel);
    group.add(
        "knobs.profile", "Save knobs as a profile", "save", "",
        [knobs] { emit knobs->saveProfileWanted(); }, needModel);
    group.add(
        "knobs.copy_command", "Copy this session as a command line", "term", "Ctrl+Shift+C",
        [this] {
            QApplication::clipboard()->setText(commandLine());
            m_messages->ok("Command copied.", commandLine());
        },
        needModel);
}

void MainWindow::addUndoCommands() {
    const CommandGroup group(m_commands, "Knobs");
    KnobsPanel* knobs = m_chatPage->knobs();
    group.add("knobs.undo", "Undo knob change", "undo", "Ctrl+Z", [knobs] { knobs->undo(); },
              {.enabled = [knobs] { return knobs->history()->canUndo(); },
               .needs = "no knob change to undo",
               .detail =
                   [knobs] {
                       const KnobStep* step = knobs->history()->next();
                       if (!step) return QString();
                       if (step->size() > 1) return QString("%1 knobs").arg(step->size());
                       const KnobChange& change = step->front();
                       const KnobRow& row = knobRow(change.knob);
                       return QString("%1 %2 → %3")
                           .arg(row.label, knobText(row, change.from), knobText(row, change.to));
                   }});
    group.add("knobs.redo", "Redo knob change", "redo", "Ctrl+Shift+Z", [knobs] { knobs->redo(); },
              {.enabled = [knobs] { return knobs->history()->canRedo(); },
               .needs = "no knob change to redo"});
}

void MainWindow::addServeCommands() {
    using State = ModelServer::State;
    const CommandGroup group(m_commands, "Engine");
    const auto show = [this] {
        showPage("chat");
        m_chatPage->showDock("serve");
    };
    const auto serving = [this] { return m_server->state() == State::On; };
    const CommandGroup::Options needServer{.enabled = serving, .needs = "the model is not served"};
    group.add("engine.serve", "Serve dock", "send", "Ctrl+Alt+S", show,
              {.detail = [this, serving] { return serving() ? m_server->address() : QString(); }});
    group.add("engine.serve_start", "Serve the model over HTTP", "play", "",
              [this, show] {
                  show();
                  m_servePanel->setOn(true);
              },
              {.enabled = [this] { return m_source->engine() && m_server->state() == State::Off; },
               .needs = "no model loaded, or it is already served"});
    group.add(
        "engine.serve_stop", "Stop serving", "stop", "", [this] { m_server->stop(); }, needServer);
    group.add(
        "engine.serve_copy", "Copy the server's address", "copy", "",
        [this] {
            m_servePanel->copyAddress();
            m_messages->ok("Address copied.", m_server->address());
        },
        needServer);
}

void MainWindow::addLoadTestCommands() {
    const CommandGroup group(m_commands, "Engine");
    const auto show = [this] {
        showPage("chat");
        m_chatPage->showDock("load");
    };
    group.add("engine.load", "Load test dock", "pulse", "Ctrl+Alt+L", show);
    group.add("engine.load_start", "Start the load test", "play", "",
              [this, show] {
                  show();
                  m_loadTestPanel->startTest();
              },
              {.enabled =
                   [this] {
                       return m_loadTestPanel->startButton()->isEnabled() && !m_loadTest->running();
                   },
               .needs = "no model that can chat is loaded, or a load test is running",
               .detail = [this] { return m_loadTestPanel->plan().words(); }});
    group.add(
        "engine.load_stop", "Stop the load test", "stop", "", [this] { m_loadTest->stop(); },
        {.enabled = [this] { return m_loadTest->running(); }, .needs = "no load test is running"});
    group.add("engine.load_export", "Export the load test as JSON or CSV", "save", "",
              [this] { m_loadTestPanel->exportReport(); },
              {.enabled = [this] { return m_loadTest->report().has_value(); },
               .needs = "no load test has run"});
}

// Entries for every live knob, with its current value.
std::vector<Command> MainWindow::knobCommands() {
    std::vector<Command> out;
    if (!m_source->model()) return out;
    KnobsPanel* knobs = m_chatPage->knobs();
    for (const KnobRow& row : knobTable()) {
        if (!row.live || !knobs->control(row.id)) continue;
        const KnobId id = row.id;
        const QString name = spokenName(row);
        // The value as its field shows it: "none", "1,024".
        const SliderRow* slider = knobs->control(id)->sliderRow();
        const auto shown = [&](int64_t value) {
            return slider ? slider->valueText(value) : str(knobValueText(row, value));
        };
        const int64_t requested = m_source->knobState(id).requested;
        const QString unit = unitFor(row.unit, requested);
        const QString now =
            shown(requested) + (unit.isEmpty() || shown(requested) == "none" ? "" : " " + unit);
        out.push_back({"",
                       "Knobs",
                       "Set " + name,
                       "knob",
                       {},
                       [this, id] { showKnob(id); },
                       [now] { return now; },
                       {}});
        for (size_t i = 0; i < row.choices.size(); ++i) {
            if (!m_source->knobProblem(id, int64_t(i)).empty()) continue;  // the control shows why
            out.push_back({"",
                           "Knobs",
                           "Set " + name + " to " + row.choices[i],
                           "knob",
                           {},
                           [knobs, id, i] { knobs->request(id, int64_t(i)); },
                           {},
                           {}});
        }
        if (m_source->knobState(id).requested != m_source->knobLimits(id).defaultValue) {
            const QString def = shown(m_source->knobLimits(id).defaultValue);
            out.push_back(
                {"",
                 "Knobs",
                 "Reset " + name + " to default",
                 "reset",
                 {},
                 [this, knobs, id] { knobs->request(id, m_source->knobLimits(id).defaultValue); },
                 [def] { return def; },
                 {}});
        }
    }
    return out;
}

}  // namespace colibri::ui
