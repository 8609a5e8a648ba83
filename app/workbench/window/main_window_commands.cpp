// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: the list of commands.
#include <QApplication>
#include <QClipboard>
#include <QMenuBar>

#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_spec.h"
#include "app/workbench/widgets/typed_number.h"
#include "app/workbench/window/main_window.h"

namespace colibri::ui {
namespace {

// Why a command may be greyed.
constexpr const char* kNeedsModel = "no model loaded";
constexpr const char* kNotServed = "the model is not served";
constexpr const char* kNeedsTurns = "the chat is empty";
constexpr const char* kNeedsIdle = "no reply yet, or one is being generated";

// A knob as one speaks of it: with its group where the label alone says little ("Policy").
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
    addEngineCommands();
    const auto add = [this](Command command) { m_commands->add(std::move(command)); };
    using Mode = Theme::Mode;
    const auto theme = [this, add](const char* id, const char* title, const char* icon, Mode mode) {
        add({id,
             "View",
             title,
             icon,
             {},
             [this, mode] { setTheme(mode); },
             [mode] { return Theme::get().mode() == mode ? QString("in use") : QString(); },
             {}});
    };
    add({"view.theme_toggle",
         "View",
         "Switch between light and dark",
         "sun",
         QKeySequence("Ctrl+Shift+L"),
         [this] { setTheme(Theme::get().dark() ? Mode::Light : Mode::Dark); },
         {},
         {}});
    theme("view.theme_light", "Light theme", "sun", Mode::Light);
    theme("view.theme_dark", "Dark theme", "moon", Mode::Dark);
    theme("view.theme_system", "System theme", "eye", Mode::System);
    add({"view.contrast",
         "View",
         "High contrast",
         "eye",
         {},
         [] {
             Theme::get().setHighContrast(!Theme::get().highContrast());
             settings().setValue("high_contrast", Theme::get().highContrast());
         },
         [] { return Theme::get().highContrast() ? QString("on") : QString("off"); },
         {}});
    for (const int percent : {100, 125, 150, 200}) {
        add({QString("view.scale_%1").arg(percent),
             "View",
             QString("Scale %1 %").arg(percent),
             "eye",
             {},
             [this, percent] {
                 settings().setValue("scale", percent);
                 m_messages->post({Message::Kind::Info, QString("Scale %1 %").arg(percent),
                                   "from the next start", "Restart now",
                                   [this] { emit restartWanted(); }});
             },
             [percent] {
                 return settings().value("scale", 100).toInt() == percent ? QString("in use")
                                                                          : QString();
             },
             {}});
    }
    add({"view.reset_layout",
         "View",
         "Reset layout",
         "panel",
         {},
         [this] { m_chatPage->resetLayout(); },
         {},
         {}});
    add({"view.next_pane",
         "View",
         "Next pane",
         "panel",
         QKeySequence("F6"),
         [this] { nextPane(1); },
         {},
         {}});
    add({"view.previous_pane",
         "View",
         "Previous pane",
         "panel",
         QKeySequence("Shift+F6"),
         [this] { nextPane(-1); },
         {},
         {}});
    add({"view.full_screen",
         "View",
         "Full screen",
         "panel",
         QKeySequence("F11"),
         [this] { isFullScreen() ? showNormal() : showFullScreen(); },
         {},
         {}});
    add({"view.menu_bar",
         "View",
         "Menu bar",
         "menu",
         QKeySequence("F10"),
         [this] {
             menuBar()->setVisible(!menuBar()->isVisible());
             placeOverlays();
             if (menuBar()->isVisible()) menuBar()->setFocus();
         },
         [] { return QString("or Alt"); },
         {}});

    const auto ready = [this] { return m_source->model() != nullptr; };
    add({"session.copy_path",
         "Session",
         "Copy path of the session file",
         "copy",
         {},
         [this] {
             const auto snapshot = m_source->snapshot();
             const QString path = QString::fromStdString(snapshot->sessionFile);
             QApplication::clipboard()->setText(path);
             m_messages->ok("Path copied.", path);
         },
         [this] {
             const auto snapshot = m_source->snapshot();
             return snapshot ? QString::fromStdString(snapshot->sessionFile).section('/', -1)
                             : QString();
         },
         [this] {
             const auto snapshot = m_source->snapshot();
             return snapshot && !snapshot->sessionFile.empty();
         },
         "path",
         "not recording"});
    add({"session.sheet",
         "Session",
         "This session",
         "info",
         QKeySequence("Ctrl+I"),
         [this] { openSessionSheet(); },
         {},
         ready,
         "memory recording cost dropped state",
         kNeedsModel});
    add({"session.note",
         "Session",
         "Add a note at this moment",
         "flag",
         QKeySequence("Ctrl+M"),
         [this] {
             m_palette->ask("Note", "", [this](const QString& text) { m_source->note(text); });
         },
         {},
         ready,
         {},
         kNeedsModel});
    add({"help.commands",
         "Help",
         "Commands",
         "search",
         QKeySequence("Ctrl+Shift+P"),
         [this] { m_palette->openCommands(); },
         {},
         {}});
    add({"help.keyboard",
         "Help",
         "Keyboard sheet",
         "help",
         QKeySequence("F1"),
         [this] { openKeyboardSheet(); },
         {},
         {}});
    add({"help.about",
         "Help",
         "About",
         "info",
         {},
         [this] { openAbout(); },
         {},
         {},
         "version licence license copyright gpl"});
    add({"help.diagnose",
         "Help",
         "Diagnose this machine",
         "pulse",
         QKeySequence("Ctrl+Shift+D"),
         [this] { openDiagnostics(); },
         {},
         {}});
    add({"help.messages",
         "Help",
         "Messages",
         "bell",
         {},
         [this] { m_top->bell()->click(); },
         [this] { return QString::number(m_messages->all().size()); },
         {}});
    add({"app.quit",
         "Session",
         "Quit",
         "close",
         QKeySequence("Ctrl+Q"),
         [this] { close(); },
         {},
         {}});
    m_commands->dynamic = [this] { return knobCommands(); };
}

void MainWindow::addChatCommands() {
    ChatPanel* chat = m_chatPage->chat();
    const auto add = [this](const char* id, const char* title, const char* icon, const char* key,
                            std::function<void()> run, std::function<bool()> enabled = {},
                            const char* needs = "") {
        m_commands->add({id,
                         "Chat",
                         title,
                         icon,
                         QKeySequence(key),
                         std::move(run),
                         {},
                         std::move(enabled),
                         {},
                         needs});
    };
    const auto toChat = [this] {
        if (m_current != "chat") showPage("chat");
    };
    const auto idle = [chat] { return !chat->generating(); };
    const auto some = [chat] { return !chat->conversation().isEmpty(); };
    const auto idleSome = [idle, some] { return idle() && some(); };
    add("chat.new", "New chat", "plus", "Ctrl+N", [=] {
        toChat();
        chat->newChat();
    });
    add("chat.focus", "Write a message", "edit", "Ctrl+L", [=] {
        toChat();
        chat->composer()->focusEditor();
    });
    add(
        "chat.stop", "Stop the reply", "stop", "Ctrl+.", [=] { chat->stop(); },
        [=] { return chat->generating(); }, "no reply is being generated");
    add(
        "chat.regenerate", "Regenerate the last reply", "reset", "Ctrl+R",
        [=] {
            toChat();
            chat->regenerate();
        },
        idleSome, kNeedsIdle);
    add(
        "chat.edit", "Edit the last message", "edit", "Ctrl+E",
        [=] {
            toChat();
            chat->editLast();
        },
        idleSome, kNeedsIdle);
    add("chat.find", "Find in chat", "search", "Ctrl+F", [=] {
        toChat();
        chat->openFind();
    });
    add("chat.list", "Chats", "list", "Ctrl+H", [=, this] {
        toChat();
        m_chatPage->toggleList(nullptr);
    });
    add("chat.system", "System prompt", "chat", "Ctrl+Shift+S", [=] {
        toChat();
        chat->editSystemPrompt();
    });
    add("chat.sampling", "Sampling", "knob", "Ctrl+Shift+M", [=] {
        toChat();
        chat->openSampling();
    });
    add(
        "chat.rename", "Rename chat", "edit", "",
        [=, this] {
            m_palette->ask("Rename chat", chat->conversation().title,
                           [chat](const QString& title) { chat->rename(title); });
        },
        some, kNeedsTurns);
    add(
        "chat.delete", "Delete chat", "trash", "", [=] { chat->deleteCurrent(); }, some,
        kNeedsTurns);
    add(
        "chat.export", "Export chat as Markdown or JSON", "save", "Ctrl+Shift+X",
        [this] { exportChat(); }, some, kNeedsTurns);
    add("chat.import", "Import chat from JSON", "folder", "", [this] { importChat({}); });
}

void MainWindow::addPlotCommands() {
    const auto ready = [this] { return m_source->model() != nullptr; };
    const auto add = [this, ready](const QString& id, const QString& title, const char* icon,
                                   const char* key, std::function<void()> run,
                                   std::function<QString()> detail = {}) {
        m_commands->add(
            {id, "Plots", title, icon, QKeySequence(key), std::move(run), std::move(detail), ready,
             id.endsWith("_sm") || id.contains("_sm_") ? "gpu graphics" : "", kNeedsModel});
    };
    add("plots.follow", "Follow the newest data", "follow", "End", [this] { m_view->follow(); });
    add("plots.pause", "Pause or resume the plots", "pause", "Ctrl+P",
        [this] { m_view->setPaused(!m_view->paused()); });
    add("plots.last_turn", "Show the last turn", "clock", "",
        [this] { m_chatPage->plots()->showLastTurn(); });
    add("plots.reset", "Reset the time range", "reset", "Ctrl+Shift+0",
        [this] { m_view->reset(); });
    add("plots.zoom_in", "Zoom in", "plus", "Ctrl+=", [this] {
        m_view->zoom(0.7, m_view->hasCursor() ? m_view->cursor() : m_view->upper());
    });
    add("plots.zoom_out", "Zoom out", "search", "Ctrl+-", [this] {
        m_view->zoom(1 / 0.7, m_view->hasCursor() ? m_view->cursor() : m_view->upper());
    });
    PlotsPanel* plots = m_chatPage->plots();
    for (const PlotSpec& spec : plotSpecs()) {
        const QString key = spec.key;
        add(
            "plots.show_" + spec.key, "Show plot: " + spec.title.toLower(), "chart", "",
            [plots, key] { plots->setPlotShown(key, !plots->plotShown(key)); },
            [plots, key] { return plots->plotShown(key) ? QString("shown") : QString("hidden"); });
    }
    add("plots.show_experts", "Show experts map", "grid", "Ctrl+Shift+E", [this, plots] {
        if (m_chatPage->windowClass() == WindowClass::Small)
            m_chatPage->showPane("experts");
        else
            plots->setPlotShown("experts", !plots->plotShown("experts"));
    });
    add(
        "plots.slo", "Set the limit on ITL P99", "flag", "",
        [this] {
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
        },
        [this] { return QString::number(m_view->sloMs()) + " ms"; });
    for (const char* format : {"csv", "png", "svg"}) {
        for (const PlotSpec& spec : plotSpecs()) {
            const QString key = spec.key, name = format;
            add("plots.export_" + key + "_" + name,
                QString("Export %1 as %2").arg(spec.title.toLower(), name.toUpper()), "save", "",
                [plots, key, name] { plots->exportPlot(plots->plot(key), name); });
        }
    }
}

void MainWindow::addKnobCommands() {
    const auto ready = [this] { return m_source->model() != nullptr; };
    KnobsPanel* knobs = m_chatPage->knobs();
    const auto add = [this](const char* id, const char* title, const char* icon, const char* key,
                            std::function<void()> run, std::function<bool()> enabled,
                            std::function<QString()> detail = {}, const char* needs = kNeedsModel) {
        m_commands->add({id,
                         "Knobs",
                         title,
                         icon,
                         QKeySequence(key),
                         std::move(run),
                         std::move(detail),
                         std::move(enabled),
                         {},
                         needs});
    };
    add(
        "knobs.show", "Knobs", "knob", "Ctrl+K",
        [this] {
            showPage("chat");
            m_chatPage->showKnobs();
        },
        ready);
    add(
        "knobs.undo", "Undo knob change", "undo", "Ctrl+Z", [knobs] { knobs->undo(); },
        [knobs] { return knobs->history()->canUndo(); },
        [knobs] {
            const KnobStep* step = knobs->history()->next();
            if (!step) return QString();
            if (step->size() > 1) return QString("%1 knobs").arg(step->size());
            const KnobRow& row = knobRow(step->front().knob);
            return QString("%1 %2 → %3")
                .arg(row.label, knobText(row, step->front().from), knobText(row, step->front().to));
        },
        "no knob change to undo");
    add(
        "knobs.redo", "Redo knob change", "redo", "Ctrl+Shift+Z", [knobs] { knobs->redo(); },
        [knobs] { return knobs->history()->canRedo(); }, {}, "no knob change to redo");
    add(
        "knobs.reset", "Reset all knobs to their defaults", "reset", "",
        [knobs] { knobs->resetAll(); }, ready);
    add(
        "knobs.lift_limit", "Remove the link limit", "close", "",
        [knobs] { knobs->request(KnobId::LinkLimit, 0); },
        [this, ready] { return ready() && m_source->knobState(KnobId::LinkLimit).requested > 0; },
        [this, ready] {
            return ready() ? count(m_source->knobState(KnobId::LinkLimit).requested) + " MB/s"
                           : QString();
        },
        "no link limit is set");
    add(
        "knobs.export", "Export config as JSON", "save", "Ctrl+S", [this] { exportConfig(); },
        ready);
    add(
        "knobs.import", "Import config from JSON", "folder", "", [this] { importConfig({}); },
        ready);
    add(
        "knobs.profile", "Save knobs as a profile", "save", "",
        [knobs] { emit knobs->saveProfileWanted(); }, ready);
    add(
        "knobs.copy_command", "Copy this session as a command line", "term", "Ctrl+Shift+C",
        [this] {
            QApplication::clipboard()->setText(commandLine());
            m_messages->ok("Command copied.", commandLine());
        },
        ready);
}

// Other ways to drive the engine than the chat.
void MainWindow::addEngineCommands() {
    using State = ModelServer::State;
    const auto add = [this](const char* id, const char* title, const char* icon, const char* key,
                            std::function<void()> run, std::function<bool()> enabled = {},
                            std::function<QString()> detail = {}, const char* needs = "") {
        m_commands->add({id,
                         "Engine",
                         title,
                         icon,
                         QKeySequence(key),
                         std::move(run),
                         std::move(detail),
                         std::move(enabled),
                         {},
                         needs});
    };
    const auto show = [this](const QString& dock) {
        showPage("chat");
        m_chatPage->showDock(dock);
    };
    const auto on = [this] { return m_server->state() == State::On; };
    const auto reported = [this] { return m_loadTest->report().has_value(); };
    add(
        "engine.serve", "Serve dock", "send", "Ctrl+Alt+S", [show] { show("serve"); }, {},
        [this, on] { return on() ? m_server->address() : QString(); });
    add(
        "engine.serve_start", "Serve the model over HTTP", "play", "",
        [this, show] {
            show("serve");
            m_servePanel->setOn(true);
        },
        [this] { return m_source->engine() && m_server->state() == State::Off; }, {},
        "no model loaded, or it is already served");
    add(
        "engine.serve_stop", "Stop serving", "stop", "", [this] { m_server->stop(); }, on, {},
        kNotServed);
    add(
        "engine.serve_copy", "Copy the server's address", "copy", "",
        [this] {
            m_servePanel->copyAddress();
            m_messages->ok("Address copied.", m_server->address());
        },
        on, {}, kNotServed);
    add("engine.load", "Load test dock", "pulse", "Ctrl+Alt+L", [show] { show("load"); });
    add(
        "engine.load_start", "Start the load test", "play", "",
        [this, show] {
            show("load");
            m_loadTestPanel->startTest();
        },
        [this] { return m_loadTestPanel->startButton()->isEnabled() && !m_loadTest->running(); },
        [this] { return m_loadTestPanel->plan().words(); },
        "no model that can chat is loaded, or a load test is running");
    add(
        "engine.load_stop", "Stop the load test", "stop", "", [this] { m_loadTest->stop(); },
        [this] { return m_loadTest->running(); }, {}, "no load test is running");
    add(
        "engine.load_export", "Export the load test as JSON or CSV", "save", "",
        [this] { m_loadTestPanel->exportReport(); }, reported, {}, "no load test has run");
}

// Entries for every knob as it stands now.
std::vector<Command> MainWindow::knobCommands() {
    std::vector<Command> out;
    if (!m_source->model()) return out;
    KnobsPanel* knobs = m_chatPage->knobs();
    for (const KnobRow& row : knobTable()) {
        if (!row.live || !knobs->control(row.id)) continue;
        const KnobId id = row.id;
        const QString name = spokenName(row);
        // As its field writes it: "none", "1,024".
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
            if (!m_source->knobProblem(id, int64_t(i)).empty()) continue;  // the knob says why
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

// This session in a terminal; "" without a model.

}  // namespace colibri::ui
