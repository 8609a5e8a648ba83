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
constexpr int kQuietTicks = 8;  // before the picture, so that the last figures are drawn
constexpr int kLongestRunMs = 15 * 60 * 1000;

// In a headless run the pointer may be over the window; pictures show no hovered widget.
void clearHover(QWidget* root) {
    for (QWidget* widget : root->findChildren<QWidget*>())
        widget->setAttribute(Qt::WA_UnderMouse, false);
}

constexpr QSize kDrawnSize(1440, 900), kSmallest(800, 500), kLargest(7680, 4320);
constexpr int kScales[] = {100, 125, 150, 200};

// "1440x900"; nullopt: not a size, or too small or large for a window.
std::optional<QSize> parseSize(const QString& text) {
    static const QRegularExpression form("^(\\d{1,5})x(\\d{1,5})$");
    const auto match = form.match(text);
    if (!match.hasMatch()) return std::nullopt;
    const QSize size(match.captured(1).toInt(), match.captured(2).toInt());
    const bool fits = size.width() >= kSmallest.width() && size.height() >= kSmallest.height() &&
                      size.width() <= kLargest.width() && size.height() <= kLargest.height();
    return fits ? std::optional(size) : std::nullopt;
}

// Adds all options but the knobs. Returns --help.
QCommandLineOption addOptions(QCommandLineParser& parser) {
    parser.setApplicationDescription(
        "Chat with a Mixture-of-Experts model and see where the time goes.");
    parser.addPositionalArgument("model", "A model folder, a checkpoint or a session file.",
                                 "[MODEL]");
    parser.addOptions({
        {"demo", "Open the bundled model with a slow link."},
        {"ask", "Send TEXT as soon as the model is ready.", "TEXT"},
        {"page", "Page to start with: welcome, load, shape, diagnose, chat.", "PAGE"},
        {"session", "Record the session to FILE.", "FILE"},
        {"screenshot", "Write a PNG of the window to FILE and exit; with --ask after the reply.",
         "FILE"},
        {"size", "Size of the window, such as 1440x900.", "WxH"},
        {"theme", "dark, light or system.", "THEME"},
        {"scale", "Scale in percent: 100, 125, 150, 200.", "PERCENT"},
    });
    return parser.addHelpOption();
}

void addKnobOptions(QCommandLineParser& parser) {
    for (const KnobOption& knob : knobOptions())
        parser.addOption({str(knob.name), str(knob.help), str(knob.type)});
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
    const QCommandLineOption help = addOptions(parser);
    const QCommandLineOption version = parser.addVersionOption();
    addKnobOptions(parser);
    ProgramOptions options;
    *error = parser.parse(arguments) ? options.read(parser) : parser.errorText();
    if (!error->isEmpty()) return std::nullopt;
    // There is no application object yet, so the parser does not know the name.
    const QString name = QCoreApplication::applicationName();
    if (parser.isSet(help)) *text = parser.helpText().replace("<executable_name>", name);
    if (parser.isSet(version)) *text = name + " " + QCoreApplication::applicationVersion() + "\n";
    return options;
}

// Returns the first error, or "".
QString ProgramOptions::read(const QCommandLineParser& parser) {
    const QStringList positional = parser.positionalArguments();
    if (positional.size() > 1)
        return "One model at a time; \"" + positional[1] + "\" is one too many.";
    model = positional.value(0);
    demo = parser.isSet("demo");
    ask = parser.value("ask");
    page = parser.value("page");
    sessionFile = parser.value("session");
    screenshot = parser.value("screenshot");
    if (const QString error = readLook(parser); !error.isEmpty()) return error;
    if (const QString error = readKnobs(parser); !error.isEmpty()) return error;
    if (parser.isSet("ask") && model.isEmpty() && !demo)
        return "--ask: no model given. Give one, or use --demo.";
    if (demo && !model.isEmpty())
        return "--demo: a model is also given (\"" + model + "\"). Use one of them.";
    return {};
}

// Size, theme, page and scale.
QString ProgramOptions::readLook(const QCommandLineParser& parser) {
    const auto wrong = [&](const QString& option, const QString& what) {
        return "--" + option + ": \"" + parser.value(option) + "\" is not " + what;
    };
    if (parser.isSet("size")) {
        size = parseSize(parser.value("size"));
        if (!size) return wrong("size", "a window size. Use 800x500..7680x4320, such as 1440x900.");
    }
    if (parser.isSet("theme")) {
        const qsizetype index =
            QStringList{"system", "light", "dark"}.indexOf(parser.value("theme"));
        if (index < 0) return wrong("theme", "dark, light or system.");
        theme = Theme::Mode(index);
    }
    if (!page.isEmpty() &&
        !QStringList{"welcome", "load", "shape", "diagnose", "chat"}.contains(page))
        return wrong("page", "welcome, load, shape, diagnose or chat.");
    if (parser.isSet("scale")) {
        scale = parser.value("scale").toInt();
        if (!isScale(scale)) return wrong("scale", "100, 125, 150 or 200.");
    }
    return {};
}

QString ProgramOptions::readKnobs(const QCommandLineParser& parser) {
    KnobTexts texts;
    for (const KnobOption& knob : knobOptions()) {
        if (parser.isSet(str(knob.name)))
            texts[size_t(knob.id)] = parser.value(str(knob.name)).toStdString();
    }
    const auto values = knobsFromOptions(texts);
    if (!values.ok()) return str(values.status().text());
    knobs = *values;
    return {};
}

Program::Program(const ProgramOptions& options)
    : m_options(options),
      m_host(std::make_unique<EngineHost>()),
      m_window(std::make_unique<MainWindow>(m_host.get())),
      m_start(new StartPages(*m_host)) {
    m_host->setSessionFile(options.sessionFile);
    m_window->addPage(
        {"start", "", "", m_start, false, {m_start}, [this] { return m_start->current(); }});
    m_window->setDiagnose([this] { m_start->showDiagnose(); });
    connectStartPages();
    addGuide();
    addModelMenu();
    connectFailures();
    connect(m_window.get(), &MainWindow::restartWanted, this, &Program::restart);
    connect(m_host.get(), &SessionSource::stateChanged, this, &Program::onState);
    addModelCommands();
    connect(&m_watch, &QTimer::timeout, this, &Program::watchScreenshot);
}

void Program::connectStartPages() {
    MainWindow* window = m_window.get();
    connect(m_start, &StartPages::wanted, window, [window] { window->showPage("start"); });
    connect(m_start, &StartPages::modelReady, window, [window] { window->showPage("chat"); });
    connect(m_start, &StartPages::leave, window, [window] { window->showPage("chat"); });
    connect(m_start, &StartPages::sessionOpened, window->recorded(), &RecordedView::open);
    connect(window->recorded(), &RecordedView::totalsWanted, m_start, &StartPages::showTotals);
    connect(m_start, &StartPages::totalsLeft, window, [window] {
        if (window->recorded()->isOpen()) window->showPage("chat");
    });
    connect(window, &MainWindow::nothingShown, m_start, &StartPages::showWelcome);
    connect(m_start, &StartPages::keyboardSheetWanted, window,
            [window] { window->commands()->run("help.keyboard"); });
    connect(m_start, &StartPages::interruptedFound, this, &Program::offerRecovery);
    connect(m_start, &StartPages::modelReady, this, &Program::offerRecovery);
    connect(m_start, &StartPages::machineKnown, window, [this, window] {
        const MachineFacts& facts = m_start->facts();
        window->setMachine(facts.isa,
                           facts.gpuReason.isEmpty() ? facts.gpuName : "n/a: " + facts.gpuReason);
    });
    connect(window, &MainWindow::openWanted, m_start,
            [this](const QString& path) { m_start->openPath(path); });
    m_start->load()->setAsk(
        [window](const QString& question, const QString& answer, std::function<void()> action) {
            window->whenUnused(question, answer, std::move(action));
        });
}

// The welcome page offers it too, but it is not visible if a model is opened at once.
void Program::offerRecovery() {
    const QString text = m_start->interruptedText();
    if (text.isEmpty() || m_window->currentPage() != "chat" ||
        std::exchange(m_recoveryOffered, true))
        return;
    m_window->messages()->post({.kind = Message::Kind::Warning,
                                .text = "The last session ended unexpectedly.",
                                .detail = text,
                                .actionText = "Recover session",
                                .action = [this] { m_start->recoverInterrupted(); },
                                .stays = true});
}

void Program::addGuide() {
    MainWindow* window = m_window.get();
    auto* guide = new GuidePage;
    window->addPage({"guide", "", "", guide, false});
    m_showGuide = [this, window, guide] {
        if (window->currentPage() != "guide") m_beforeGuide = window->currentPage();
        guide->showPage("user-guide.md");
        window->showPage("guide");
    };
    connect(m_start, &StartPages::guideWanted, this, m_showGuide);
    connect(guide, &GuidePage::back, window, [this, window] { window->showPage(m_beforeGuide); });
}

// Recent models, in the menu of the model's name.
void Program::addModelMenu() {
    m_start->setModelAnchor(m_window->topBar()->chip());
    m_window->setModelMenu([this](QMenu* menu) {
        bool first = true;
        for (const RecentEntry& entry : m_host->kept().recent.entries()) {
            if (entry.kind != RecentEntry::Kind::Model || entry.path.isEmpty()) continue;
            if (std::exchange(first, false)) menu->addSection("Recent");
            QAction* action =
                menu->addAction(entry.name + "  " + entry.what, m_start,
                                [this, path = entry.path] { m_start->openPath(path); });
            action->setEnabled(!entry.missing);
        }
    });
}

// Failures become messages in the window; in a headless run they also end it with an exit code.
void Program::connectFailures() {
    MessageCenter* messages = m_window->messages();
    connect(m_host.get(), &EngineHost::notSaved, messages, [messages](const Status& status) {
        messages->error("The lists of this window could not be saved.", str(status.text()));
    });
    connect(m_host.get(), &EngineHost::notRead, messages, [messages](const Status& status) {
        messages->post({.kind = Message::Kind::Warning,
                        .text = "A damaged file was ignored.",
                        .detail = str(status.text()),
                        .inBar = false});
    });
    connect(m_host.get(), &EngineHost::loadFailed, this, [this, messages](const Status& status) {
        const QString text = str(status.text());
        failRun(exitCodeOf(status.code()), "The model could not be loaded: " + text);
        messages->post({.kind = Message::Kind::Error,
                        .text = "The model could not be loaded.",
                        .detail = text,
                        .inBar = false});
    });
    connect(m_host.get(), &EngineHost::recordingFailed, this,
            [this, messages](const Status& status) {
                const QString text = str(status.text());
                if (!m_options.sessionFile.isEmpty())
                    failRun(exitCodeOf(status.code()), "The session was not recorded: " + text);
                messages->error("The model is running, but is not recorded.", text);
            });
    connect(m_start, &StartPages::openFailed, this,
            [this, messages](const QString& what, const Status& status, bool elsewhere) {
                failRun(exitCodeOf(status.code()), str(status.text()));
                if (elsewhere) messages->error(what, str(status.text()));
            });
    connect(m_window->chatPage()->chat(), &ChatPanel::replyFailed, this,
            [this](const QString& why) { failRun(1, "The reply failed: " + why); });
}

Program::~Program() = default;

void Program::addModelCommands() {
    const CommandGroup model(m_window->commands(), "Model");
    const CommandGroup session(m_window->commands(), "Session");
    const CommandGroup help(m_window->commands(), "Help");
    const auto ready = [this] { return m_host->model() != nullptr; };
    model.add("model.open", "Open a model", "folder", "Ctrl+O", [this] { m_start->openModel(); });
    model.add("model.demo", "Try the demo", "play", "Ctrl+D", [this] { m_start->openDemo(); });
    model.add("model.shape", "Try a shape: a model of random weights", "grid", "Ctrl+Shift+N",
              [this] { m_start->showShape(); });
    model.add("model.reload", "Reload with other settings", "reset", "Ctrl+Shift+R",
              [this] { m_start->showLoaded(); },
              {.enabled = ready,
               .detail = [this, ready] { return ready() ? m_host->model()->name : QString(); }});
    model.add("model.close", "Close the model", "close", "Ctrl+W",
              [this] {
                  m_window->whenUnused("Close the model?", "Close it", [this] { m_host->close(); });
              },
              {.enabled = ready});
    session.add("session.open", "Open a session", "clock", "Ctrl+Shift+O",
                [this] { m_start->openSession(); });
    help.add("help.guide", "User guide", "help", "Shift+F1", m_showGuide);
    help.add("help.welcome", "Welcome page", "star", "", [this] { m_start->showWelcome(); });
    m_window->rebuildMenus();
}

// Starts the program again with the current model and its knobs, not with the options of this
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
                    arguments << "--" + str(knobOptionName(row)) << str(knobValueText(row, *value));
            }
        }
        // The next program reads the settings, so they are written before it starts.
        m_window->closeNow();
        settings().sync();
        if (!QProcess::startDetached(QCoreApplication::applicationFilePath(), arguments))
            std::fprintf(stderr, "The program could not be restarted; start it manually.\n");
        QCoreApplication::quit();
    });
}

void Program::onState() {
    const SessionSource::State state = m_host->state();
    if (state == SessionSource::State::Ready && !m_options.ask.isEmpty() && !m_askSent) {
        m_askSent = true;
        m_window->showPage("chat");
        m_window->chatPage()->chat()->newChat();
        m_window->chatPage()->chat()->send(m_options.ask);
    }
    // After a model was closed, the welcome page is shown.
    if (state == SessionSource::State::NoModel && m_window->currentPage() == "chat" &&
        !m_window->recorded()->isOpen())
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

// Takes the picture when model and reply are complete and nothing has changed for a while.
void Program::watchScreenshot() {
    const ChatPanel* chat = m_window->chatPage()->chat();
    const bool wantsModel = (m_options.demo || !m_options.model.isEmpty()) &&
                            m_options.page != "load" && m_options.page != "welcome" &&
                            m_options.page != "diagnose";
    const bool loading = m_host->state() == SessionSource::State::Loading || m_start->opening();
    const RecordedView* recorded = m_window->recorded();
    const bool failed = wantsModel && !loading && !recorded->isOpen() &&
                        m_host->state() == SessionSource::State::NoModel;
    const bool waiting = loading || recorded->atWork() || chat->generating() ||
                         (!m_options.ask.isEmpty() && !m_askSent && !failed);
    m_quietTicks = waiting ? 0 : m_quietTicks + 1;
    if (m_quietTicks < (failed ? 30 : kQuietTicks)) return;
    if (failed && m_exitCode == 0) failRun(1, "The model was not loaded; the picture shows why.");
    takeScreenshot();
}

void Program::failRun(int code, const QString& why) {
    if (m_options.screenshot.isEmpty()) return;  // the window shows a message
    std::fprintf(stderr, "%s\n", qPrintable(shown(why)));
    if (m_exitCode == 0) m_exitCode = code;
}

void Program::takeScreenshot() {
    m_watch.stop();
    if (const auto snapshot = m_host->snapshot(); snapshot && !snapshot->sessionError.empty())
        failRun(1, "Recording stopped: " + str(snapshot->sessionError));
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
