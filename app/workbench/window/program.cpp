// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/program.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QLocale>
#include <QMenu>
#include <QProcess>
#include <QRegularExpression>
#include <algorithm>
#include <cstdio>

#include "app/workbench/pages/guide_page.h"
#include "app/workbench/pages/load_page.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/window/placement.h"
#include "engine/base/locale.h"
#include "engine/base/process.h"
#include "engine/knobs/knob_options.h"

namespace colibri::ui {
namespace {

constexpr int kWatchMs = 100;
// Before the picture: time for the last snapshot and figures to be drawn.
constexpr int kQuietTicks = 8;
constexpr int kLongestRunMs = 15 * 60 * 1000;

// The pointer of a headless run stands somewhere over the window; nothing is hovered in a picture.
void clearHover(QWidget* root) {
    for (QWidget* widget : root->findChildren<QWidget*>())
        widget->setAttribute(Qt::WA_UnderMouse, false);
}

constexpr QSize kDrawnSize(1440, 900), kSmallest(800, 500), kLargest(7680, 4320);
constexpr int kScales[] = {100, 125, 150, 200};

// "1440x900"; nullopt: no size, or none that a window can have.
std::optional<QSize> parseSize(const QString& text) {
    static const QRegularExpression form("^(\\d{1,5})x(\\d{1,5})$");
    const auto match = form.match(text);
    if (!match.hasMatch()) return std::nullopt;
    const QSize size(match.captured(1).toInt(), match.captured(2).toInt());
    const bool fits = size.width() >= kSmallest.width() && size.height() >= kSmallest.height() &&
                      size.width() <= kLargest.width() && size.height() <= kLargest.height();
    return fits ? std::optional(size) : std::nullopt;
}

}  // namespace

bool isScale(int percent) {
    return std::find(std::begin(kScales), std::end(kScales), percent) != std::end(kScales);
}

void prepareApplication() {
    keepOnlyTheEncodingOfTheLocale();
    QLocale::setDefault(QLocale::c());
}

Status ProgramOptions::checkKnobs() const {
    const auto info = openContainer(demo ? demoModelPath().toStdString() : model.toStdString());
    if (!info) return {};
    KnobTexts texts;
    for (const KnobRow& row : knobTable()) {
        if (const auto& value = knobs[size_t(row.id)])
            texts[size_t(row.id)] = knobValueText(row, *value);
    }
    return knobsFromOptions(texts, [&](KnobId id) { return knobLimitsFor(id, *info); }).status();
}

std::optional<ProgramOptions> ProgramOptions::parse(const QStringList& arguments, QString* text,
                                                    QString* error) {
    QCommandLineParser parser;
    parser.setApplicationDescription(
        "Chat with a Mixture-of-Experts model and see where the time goes.");
    parser.addPositionalArgument("model", "A model folder, a checkpoint or a session file.",
                                 "[MODEL]");
    parser.addOption({"demo", "Open the bundled model with a slow link."});
    parser.addOption({"ask", "Send TEXT as soon as the model is ready.", "TEXT"});
    parser.addOption({"page", "Page to start with: welcome, load, shape, diagnose, chat.", "PAGE"});
    parser.addOption({"session", "Record the session to FILE.", "FILE"});
    parser.addOption({"screenshot",
                      "Write a PNG of the window to FILE and exit; with --ask after "
                      "the reply.",
                      "FILE"});
    parser.addOption({"size", "Size of the window, such as 1440x900.", "WxH"});
    parser.addOption({"theme", "dark, light or system.", "THEME"});
    parser.addOption({"scale", "Scale in percent: 100, 125, 150, 200.", "PERCENT"});
    const QCommandLineOption help = parser.addHelpOption();
    const QCommandLineOption version = parser.addVersionOption();
    for (const KnobOption& knob : knobOptions())
        parser.addOption({str(knob.name), str(knob.help), str(knob.type)});
    if (!parser.parse(arguments)) {
        *error = parser.errorText();
        return std::nullopt;
    }
    // No application object yet: the parser does not know the name.
    if (parser.isSet(help))
        *text = parser.helpText().replace("<executable_name>", QCoreApplication::applicationName());
    if (parser.isSet(version))
        *text = QCoreApplication::applicationName() + " " + QCoreApplication::applicationVersion() +
                "\n";
    ProgramOptions options;
    const QStringList positional = parser.positionalArguments();
    if (positional.size() > 1) {
        *error = "One model at a time; \"" + positional[1] + "\" is one too many.";
        return std::nullopt;
    }
    if (!positional.isEmpty()) options.model = positional[0];
    options.demo = parser.isSet("demo");
    options.ask = parser.value("ask");
    options.page = parser.value("page");
    options.sessionFile = parser.value("session");
    options.screenshot = parser.value("screenshot");
    if (parser.isSet("size")) {
        options.size = parseSize(parser.value("size"));
        if (!options.size) {
            *error = "--size: \"" + parser.value("size") +
                     "\" is not a window size. Use 800x500..7680x4320, such as 1440x900.";
            return std::nullopt;
        }
    }
    if (parser.isSet("theme")) {
        const int index =
            int(QStringList{"system", "light", "dark"}.indexOf(parser.value("theme")));
        if (index < 0) {
            *error = "--theme: \"" + parser.value("theme") + "\" is not dark, light or system.";
            return std::nullopt;
        }
        options.theme = Theme::Mode(index);
    }
    if (!options.page.isEmpty() &&
        !QStringList{"welcome", "load", "shape", "diagnose", "chat"}.contains(options.page)) {
        *error = "--page: \"" + options.page + "\" is not welcome, load, shape, diagnose or chat.";
        return std::nullopt;
    }
    if (parser.isSet("scale")) {
        options.scale = parser.value("scale").toInt();
        if (!isScale(options.scale)) {
            *error = "--scale: \"" + parser.value("scale") + "\" is not 100, 125, 150 or 200.";
            return std::nullopt;
        }
    }
    KnobTexts texts;
    for (const KnobOption& knob : knobOptions()) {
        if (parser.isSet(str(knob.name)))
            texts[size_t(knob.id)] = parser.value(str(knob.name)).toStdString();
    }
    const auto knobs = knobsFromOptions(texts);
    if (!knobs.ok()) {
        *error = QString::fromStdString(knobs.status().text());
        return std::nullopt;
    }
    options.knobs = *knobs;
    if (parser.isSet("ask") && options.model.isEmpty() && !options.demo) {
        *error = "--ask: no model given. Give one, or use --demo.";
        return std::nullopt;
    }
    if (options.demo && !options.model.isEmpty()) {
        *error = "--demo: a model is also given (\"" + options.model + "\"). Use one of them.";
        return std::nullopt;
    }
    return options;
}

Program::Program(const ProgramOptions& options)
    : m_options(options),
      m_host(std::make_unique<EngineHost>()),
      m_window(std::make_unique<MainWindow>(m_host.get())),
      m_start(new StartPages(*m_host)) {
    m_host->setSessionFile(options.sessionFile);
    m_window->addPage({"start", "", "", m_start, false,
                       [this](const std::shared_ptr<const Snapshot>&) { m_start->tick(); },
                       [this] { return m_start->current(); }});
    m_window->setDiagnose([this] { m_start->showDiagnose(); });
    MainWindow* window = m_window.get();
    connect(m_start, &StartPages::wanted, window, [window] { window->showPage("start"); });
    connect(m_start, &StartPages::modelReady, window, [window] { window->showPage("chat"); });
    // The offer of the welcome page is not seen where a model is opened at once.
    const auto offerRecovery = [this, window] {
        const QString text = m_start->interruptedText();
        if (text.isEmpty() || window->currentPage() != "chat" ||
            std::exchange(m_recoveryOffered, true))
            return;
        window->messages()->post({.kind = Message::Kind::Warning,
                                  .text = "The last session ended unexpectedly.",
                                  .detail = text,
                                  .actionText = "Recover session",
                                  .action = [this] { m_start->recoverInterrupted(); },
                                  .stays = true});
    };
    connect(m_start, &StartPages::interruptedFound, window, offerRecovery);
    connect(m_start, &StartPages::modelReady, window, offerRecovery);
    m_start->load()->setAsk(
        [window](const QString& question, const QString& answer, std::function<void()> action) {
            window->whenUnused(question, answer, std::move(action));
        });
    connect(m_start, &StartPages::leave, window, [window] { window->showPage("chat"); });
    connect(m_start, &StartPages::keyboardSheetWanted, window, &MainWindow::openKeyboardSheet);
    auto* guide = new GuidePage;
    m_window->addPage({"guide", "", "", guide, false, {}});
    m_showGuide = [this, window, guide] {
        if (window->currentPage() != "guide") m_beforeGuide = window->currentPage();
        guide->showPage("user-guide.md");
        window->showPage("guide");
    };
    connect(m_start, &StartPages::guideWanted, this, m_showGuide);
    connect(guide, &GuidePage::back, window, [this, window] { window->showPage(m_beforeGuide); });
    connect(window, &MainWindow::restartWanted, this, &Program::restart);
    connect(m_start, &StartPages::machineKnown, window, [this, window] {
        const MachineFacts& facts = m_start->facts();
        window->setMachine(facts.isa,
                           facts.gpuReason.isEmpty() ? facts.gpuName : "n/a: " + facts.gpuReason);
    });
    connect(window, &MainWindow::openWanted, m_start,
            [this](const QString& path) { m_start->openPath(path); });
    m_start->setModelAnchor(window->topBar()->chip());
    window->setModelMenu([this](QMenu* menu) {
        bool first = true;
        for (const RecentEntry& entry : m_host->recent().entries()) {
            if (entry.kind != RecentEntry::Kind::Model || entry.path.isEmpty()) continue;
            if (std::exchange(first, false)) menu->addSection("Recent");
            QAction* action =
                menu->addAction(entry.name + "  " + entry.what, m_start,
                                [this, path = entry.path] { m_start->openPath(path); });
            action->setEnabled(!entry.missing);
        }
    });
    connect(m_host.get(), &EngineHost::notSaved, window, [window](const Status& status) {
        window->messages()->error("The lists of this window could not be saved.",
                                  QString::fromStdString(status.text()));
    });
    connect(m_host.get(), &EngineHost::notRead, window, [window](const Status& status) {
        window->messages()->post({Message::Kind::Warning,
                                  "A damaged file was ignored.",
                                  QString::fromStdString(status.text()),
                                  {},
                                  {},
                                  false});
    });
    connect(m_host.get(), &EngineHost::loadFailed, this, [this, window](const Status& status) {
        failRun(exitCodeOf(status.code()),
                "The model could not be loaded: " + QString::fromStdString(status.text()));
        window->messages()->post({Message::Kind::Error,
                                  "The model could not be loaded.",
                                  QString::fromStdString(status.text()),
                                  {},
                                  {},
                                  false});
    });
    connect(m_start, &StartPages::openFailed, this,
            [this, window](const QString& what, const Status& status, bool elsewhere) {
                failRun(exitCodeOf(status.code()), QString::fromStdString(status.text()));
                if (elsewhere)
                    window->messages()->error(what, QString::fromStdString(status.text()));
            });
    connect(window->chatPage()->chat(), &ChatPanel::replyFailed, this,
            [this](const QString& why) { failRun(1, "The reply failed: " + why); });
    connect(m_host.get(), &EngineHost::recordingFailed, this, [this, window](const Status& status) {
        if (!m_options.sessionFile.isEmpty())
            failRun(exitCodeOf(status.code()),
                    "The session was not recorded: " + QString::fromStdString(status.text()));
        window->messages()->error("The model is running, but is not recorded.",
                                  QString::fromStdString(status.text()));
    });
    connect(m_host.get(), &SessionSource::stateChanged, this, &Program::onState);
    addModelCommands();
    connect(&m_watch, &QTimer::timeout, this, &Program::watchScreenshot);
}

Program::~Program() = default;

void Program::addModelCommands() {
    Commands* commands = m_window->commands();
    const auto ready = [this] { return m_host->model() != nullptr; };
    commands->add({"model.open",
                   "Model",
                   "Open a model",
                   "folder",
                   QKeySequence("Ctrl+O"),
                   [this] { m_start->openModel(); },
                   {},
                   {}});
    commands->add({"model.demo",
                   "Model",
                   "Try the demo",
                   "play",
                   QKeySequence("Ctrl+D"),
                   [this] { m_start->openDemo(); },
                   {},
                   {}});
    commands->add({"model.shape",
                   "Model",
                   "Try a shape: a model of random weights",
                   "grid",
                   QKeySequence("Ctrl+Shift+N"),
                   [this] { m_start->showShape(); },
                   {},
                   {}});
    commands->add({"model.reload", "Model", "Reload with other settings", "reset",
                   QKeySequence("Ctrl+Shift+R"), [this] { m_start->showLoaded(); },
                   [this] { return m_host->model() ? m_host->model()->name : QString(); }, ready});
    commands->add({"model.close",
                   "Model",
                   "Close the model",
                   "close",
                   QKeySequence("Ctrl+W"),
                   [this] {
                       m_window->whenUnused("Close the model?", "Close it",
                                            [this] { m_host->close(); });
                   },
                   {},
                   ready});
    commands->add({"session.open",
                   "Session",
                   "Open a session",
                   "clock",
                   QKeySequence("Ctrl+Shift+O"),
                   [this] { m_start->openSession(); },
                   {},
                   {}});
    commands->add({"help.guide",
                   "Help",
                   "User guide",
                   "help",
                   QKeySequence("Shift+F1"),
                   m_showGuide,
                   {},
                   {}});
    commands->add({"help.welcome",
                   "Help",
                   "Welcome page",
                   "star",
                   {},
                   [this] { m_start->showWelcome(); },
                   {},
                   {}});
    m_window->rebuildMenus();
}

// The same again, with what is set now: the model that runs, its knobs, not the options of this
// start.
void Program::restart() {
    m_window->whenUnused("Restart the program?", "Restart", [this] {
        QStringList arguments;
        if (const ModelFacts* model = m_host->model()) {
            if (model->folder == demoModelPath())
                arguments << "--demo";
            else
                arguments << model->folder;
            const KnobValues knobs = m_host->requestedKnobs();
            for (const KnobRow& row : knobTable()) {
                if (const auto& value = knobs[size_t(row.id)])
                    arguments << "--" + str(knobOptionName(row))
                              << QString::fromStdString(knobValueText(row, *value));
            }
        }
        // The settings are read by the next program, so they are written before it starts.
        m_window->closeNow();
        settings().sync();
        if (!QProcess::startDetached(QCoreApplication::applicationFilePath(), arguments))
            std::fprintf(stderr, "The program could not be restarted; start it manually.\n");
        QCoreApplication::quit();
    });
}

void Program::onState() {
    const SessionSource::State state = m_host->state();
    if (state == SessionSource::State::Ready && !m_options.ask.isEmpty() && !m_asked) {
        m_asked = true;
        m_window->showPage("chat");
        m_window->chatPage()->chat()->newChat();
        m_window->chatPage()->chat()->send(m_options.ask);
    }
    // The welcome page is where one goes on after the model was closed.
    if (state == SessionSource::State::NoModel && m_window->currentPage() == "chat")
        m_start->showWelcome();
}

void Program::start() {
    if (m_options.theme) Theme::get().setMode(*m_options.theme);
    auto* placement = new Placement(m_window.get());
    placement->restore(settings().value("layout/window").toByteArray(), kDrawnSize);
    if (m_options.size || !m_options.screenshot.isEmpty())
        placement->setSize(m_options.size.value_or(kDrawnSize));
    m_start->showWelcome();
    if (m_options.screenshot.isEmpty()) m_start->checkLastSession();
    if (m_options.page == "diagnose") {
        m_start->showDiagnose();
    } else if (m_options.page == "shape") {
        m_start->showShape();
    } else if (m_options.demo) {
        m_start->openDemo(m_options.knobs);
    } else if (!m_options.model.isEmpty()) {
        const bool look =
            m_options.page == "load" || (m_options.ask.isEmpty() && m_options.screenshot.isEmpty());
        const QString path = QFileInfo(m_options.model).absoluteFilePath();
        if (look)
            m_start->openPath(path, m_options.knobs);
        else
            m_start->loadPath(path, m_options.knobs);
    }
    m_window->show();
    if (!m_options.screenshot.isEmpty()) {
        m_watch.start(kWatchMs);
        QTimer::singleShot(kLongestRunMs, this, [this] {
            std::fprintf(
                stderr, "The run did not finish within 15 minutes; the picture shows its state.\n");
            m_exitCode = 1;
            takeScreenshot();
        });
    }
}

// The picture is due when what was asked for has happened and the window has been quiet for a
// while.
void Program::watchScreenshot() {
    const ChatPanel* chat = m_window->chatPage()->chat();
    const bool wantsModel = (m_options.demo || !m_options.model.isEmpty()) &&
                            m_options.page != "load" && m_options.page != "welcome" &&
                            m_options.page != "diagnose";
    const bool loading = m_host->state() == SessionSource::State::Loading || m_start->opening();
    const bool failed = wantsModel && !loading && m_host->state() == SessionSource::State::NoModel;
    const bool waiting =
        loading || chat->generating() || (!m_options.ask.isEmpty() && !m_asked && !failed);
    m_quietTicks = waiting ? 0 : m_quietTicks + 1;
    if (m_quietTicks < (failed ? 30 : kQuietTicks)) return;
    if (failed && m_exitCode == 0) failRun(1, "The model was not loaded; the picture shows why.");
    takeScreenshot();
}

void Program::failRun(int code, const QString& why) {
    if (m_options.screenshot.isEmpty()) return;  // the window says it
    std::fprintf(stderr, "%s\n", qPrintable(shown(why)));
    if (m_exitCode == 0) m_exitCode = code;
}

void Program::takeScreenshot() {
    m_watch.stop();
    if (const auto snapshot = m_host->snapshot(); snapshot && !snapshot->sessionError.empty())
        failRun(1, "Recording stopped: " + QString::fromStdString(snapshot->sessionError));
    const QFileInfo file(m_options.screenshot);
    QDir().mkpath(file.absolutePath());
    m_window->tick();
    clearHover(m_window.get());
    const QPixmap picture = m_window->grab();
    if (!picture.save(file.absoluteFilePath(), "PNG")) {
        std::fprintf(stderr, "The picture %s could not be written.\n",
                     qPrintable(file.absoluteFilePath()));
        m_exitCode = 1;
    }
    m_window->closeNow();
    QCoreApplication::exit(m_exitCode);
}

}  // namespace colibri::ui
