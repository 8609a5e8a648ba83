// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QUrl>
#include <QVBoxLayout>
#include <limits>
#include <utility>

#include "app/workbench/chat/prompt_sheet.h"
#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kTickMs = 33;
constexpr int kIdleTickMs = 250;     // nothing but clocks changes
constexpr int kHiddenTickMs = 1000;  // the window is not visible
constexpr int kTouchedMs = 1500;     // after a key press or click, changes are shown smoothly
constexpr QSize kFirstSize(1440, 900);

}  // namespace

MainWindow::MainWindow(SessionSource* source, const QString& chatFolder)
    : m_source(source),
      m_view(new ViewState(this)),
      m_chats(new ChatStore(chatFolder.isEmpty() ? ChatStore::defaultFolder() : chatFolder, this)),
      m_commands(new Commands(this)),
      m_messages(new MessageCenter(this)) {
    setWindowTitle("Colibri Workbench");
    setMinimumSize(800, 500);
    resize(kFirstSize);
    new FocusKeeper(this);
    setAcceptDrops(true);
    m_view->setSlo(settings().value("slo_ms", 40).toDouble());
    build();
    m_chatPage = new ChatPage(m_chats, m_view, this);
    m_exportPanel = new ExportPanel(m_view, this);
    m_recorded = new RecordedView(m_chatPage, m_view, m_playerBar, this);
    addDocks();
    addPage({"chat",
             "chat",
             "Chat",
             m_chatPage,
             true,
             {m_chatPage->chat(), m_chatPage->plots(), m_chatPage->knobs()},
             [this]() -> QWidget* {
                 if (m_recorded->isOpen()) return m_recorded->bar()->scrubber();
                 return m_chatPage->chat()->composer()->editor();
             }});
    connectChat();
    connectStore();
    connectPlots();
    connectKnobs();
    connectRecorded();
    m_palette->setCommandLine([this] { return commandLine(); });
    addCommands();
    rebuildMenus();
    connect(m_source, &SessionSource::stateChanged, this, &MainWindow::sourceChanged);
    connect(&m_timer, &QTimer::timeout, this, &MainWindow::tick);
    m_timer.start(kTickMs);
    m_touched.start();
    qApp->installEventFilter(this);
    m_chats->list();
    showPage("chat");
    sourceChanged();
}

MainWindow::~MainWindow() {
    m_timer.stop();
    delete m_recorded;  // before what it shows the session in
}

void MainWindow::build() {
    auto* body = new QWidget;
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_top = new TopBar(m_view);
    m_playerBar = new PlayerBar;
    m_messageBar = new MessageBar(m_messages);
    m_stack = new QStackedWidget;
    m_status = new StatusBar;
    column->addWidget(m_top);
    column->addWidget(m_playerBar);
    column->addWidget(m_messageBar);
    column->addWidget(m_stack, 1);
    column->addWidget(m_status);
    setCentralWidget(body);
    menuBar()->hide();
    m_palette = new CommandPalette(m_commands, this);
    m_sheet = new Sheet(this);
    m_messageList = new MessageList(m_messages, this);
    m_dropHint = new DropHint(this);
    m_commands->blocked = [this] {
        return m_sheet->isOpen() || m_palette->isOpen() ||
               m_chatPage->chat()->promptSheet()->isOpen();
    };

    connect(m_top, &TopBar::tabChosen, this, &MainWindow::showPage);
    connect(m_top, &TopBar::commandsWanted, this, [this] { m_palette->openCommands(); });
    connect(m_top, &TopBar::helpWanted, this, &MainWindow::openKeyboardSheet);
    connect(m_top, &TopBar::docksWanted, this, [this] { m_commands->run("knobs.show"); });
    connect(m_top, &TopBar::themeWanted, this, [this] { m_commands->run("view.theme_toggle"); });
    connect(m_top->menuButton(), &QAbstractButton::clicked, this,
            [this] { popupMenu(m_top->menuButton(), m_commands->groups()); });
    connect(m_top->chip(), &QAbstractButton::clicked, this,
            [this] { popupMenu(m_top->chip(), {"Model"}); });
    connect(m_top->bell(), &QAbstractButton::clicked, this, [this] {
        if (m_messageList->isOpen()) return m_messageList->closePopover();
        m_messageList->openAt(m_top->bell(), false, true);
        m_messages->markRead();
    });
    connect(m_top->recording(), &QAbstractButton::clicked, this,
            [this] { m_commands->run("session.copy_path"); });
    connect(m_status, &StatusBar::clicked, this, &MainWindow::statusClicked);
    connect(m_messages, &MessageCenter::changed, this,
            [this] { m_top->setDot(m_messages->unread() > 0); });
    connect(&Theme::get(), &Theme::changed, this, [this] { m_top->refreshTheme(); });
    connect(m_view, &ViewState::sloChanged, this,
            [this] { settings().setValue("slo_ms", m_view->sloMs()); });
}

void MainWindow::connectChat() {
    ChatPanel* chat = m_chatPage->chat();
    connect(chat, &ChatPanel::renameWanted, this, [this] { m_commands->run("chat.rename"); });
    connect(chat, &ChatPanel::exportWanted, this, &MainWindow::exportChat);
    connect(chat->view(), &ChatView::emptyActionWanted, this,
            [this] { m_commands->run("model.open"); });
    connect(chat, &ChatPanel::importWanted, this, [this] { importChat({}); });
    connect(m_chatPage->list(), &ChatList::exportWanted, this, &MainWindow::exportChat);
    connect(m_chatPage->list(), &ChatList::renameWanted, this, [this, chat](const QString& id) {
        QString title;
        for (const ChatSummary& summary : m_chats->summaries())
            if (summary.id == id) title = summary.title;
        m_palette->ask("Rename chat", title,
                       [this, chat, id](const QString& text) { chat->rename(id, text); });
    });
    connect(chat, &ChatPanel::deleted, this, [this](const QString& title) {
        m_messages->post({Message::Kind::Info, "Chat deleted.", title, "Undo", [this] {
                              if (m_chats->restore()) m_messages->ok("Chat restored");
                          }});
    });
    connect(chat, &ChatPanel::generatingChanged, this, &MainWindow::wake);
    connect(chat, &ChatPanel::failed, m_messages, &MessageCenter::error);
}

void MainWindow::connectStore() {
    connect(m_chats, &ChatStore::failed, this, [this](const QString& reason) {
        // A running reply is saved every second: show the same reason only once.
        if (m_saveTrouble != reason) m_messages->error("The chat could not be saved.", reason);
        m_saveTrouble = reason;
    });
}

void MainWindow::connectPlots() {
    PlotsPanel* plots = m_chatPage->plots();
    plots->setDiagnose([this] { openDiagnostics(); });
    connect(plots, &PlotsPanel::exported, this,
            [this](const QString& path) { postExported("Plot exported.", path); });
    connect(plots, &PlotsPanel::exportFailed, this,
            [this](const QString& why) { m_messages->error("The plot was not exported.", why); });
}

void MainWindow::connectKnobs() {
    KnobsPanel* knobs = m_chatPage->knobs();
    connect(knobs, &KnobsPanel::failed, m_messages, &MessageCenter::error);
    connect(knobs, &KnobsPanel::done, m_messages, &MessageCenter::ok);
    connect(knobs, &KnobsPanel::exportWanted, this, &MainWindow::exportConfig);
    connect(knobs, &KnobsPanel::importWanted, this, [this] { importConfig({}); });
    connect(knobs, &KnobsPanel::saveProfileWanted, this, [this, knobs] {
        m_palette->ask("Name of the profile", "",
                       [knobs](const QString& name) { knobs->saveProfile(name); });
    });
    connect(knobs, &KnobsPanel::renameProfileWanted, this, [this, knobs](const QString& name) {
        m_palette->ask("New name of the profile", name,
                       [knobs, name](const QString& to) { knobs->renameProfile(name, to); });
    });
    connect(knobs, &KnobsPanel::applied, this, [this](const QString& what, const QString& detail) {
        postPartlyApplied(what, detail, detail.contains("reload"));
    });
    connect(knobs, &KnobsPanel::loadPageWanted, this, [this] { m_commands->run("model.reload"); });
}

void MainWindow::postExported(const QString& what, const QString& path) {
    m_messages->post({Message::Kind::Ok, what, path, "Show", [path] { revealInFolder(path); }});
}

// After a config or profile of which only some knobs could be applied.
void MainWindow::postPartlyApplied(const QString& what, const QString& detail, bool reload) {
    Message message{Message::Kind::Warning, what, detail};
    if (reload) {
        message.actionText = "Reload";
        message.action = [this] { m_commands->run("model.reload"); };
    }
    m_messages->post(message);
}

void MainWindow::addDocks() {
    m_server = new ModelServer(m_source, this);
    m_loadTest = new LoadTest(m_source, this);
    m_servePanel = new ServePanel(m_source, m_server);
    m_loadTestPanel = new LoadTestPanel(m_source, m_loadTest);
    m_chatPage->addDock("serve", "Serve", m_servePanel);
    m_chatPage->addDock("load", "Load test", m_loadTestPanel);
    connect(m_server, &ModelServer::changed, this, [this] {
        updateServing();
        // The dock shows its errors itself.
        if (m_server->state() == ModelServer::State::Off && !m_server->error().ok() &&
            !m_servePanel->isVisible())
            m_messages->error("The model is not served.", str(m_server->error().text()));
    });
    connect(m_loadTest, &LoadTest::leaving, this, [this] {
        m_messages->post({Message::Kind::Info,
                          "The load test of " + m_loadTest->model() + " was removed from the dock.",
                          "Another model is loaded.", "Export", [this, save = m_loadTest->saver()] {
                              const QString path =
                                  askSaveFile(this, "Export the load test", "load-test.json",
                                              "JSON (*.json);;CSV, one line per request (*.csv)");
                              if (path.isEmpty()) return;
                              if (const Status status = save(path); status.ok())
                                  postExported("Load test exported.", path);
                              else
                                  m_messages->error("The load test was not exported.",
                                                    str(status.text()));
                          }});
    });
    connect(m_loadTestPanel, &LoadTestPanel::exported, this,
            [this](const QString& path) { postExported("Load test exported.", path); });
    connect(m_loadTestPanel, &LoadTestPanel::failed, m_messages, &MessageCenter::error);
}

void MainWindow::addPage(PageEntry page) {
    m_stack->addWidget(page.widget);
    if (page.tab) m_top->addTab(page.key, page.icon, page.title);
    m_pages.push_back(std::move(page));
}

void MainWindow::showPage(const QString& key) {
    for (const PageEntry& page : m_pages) {
        if (page.key != key) continue;
        const bool other = std::exchange(m_current, key) != key;
        m_stack->setCurrentWidget(page.widget);
        m_top->setCurrentTab(page.tab ? key : QString());
        QWidget* home = page.home ? page.home() : page.widget;
        setFocusHome(this, home);
        // A sheet or the palette keeps the focus, and gives it back when it closes.
        if (other && !m_commands->blocked()) home->setFocus();
        m_playerBar->setVisible(m_recorded->isOpen() && key == "chat");
        tick();
    }
}

void MainWindow::tick() {
    const std::shared_ptr<const Snapshot> live = m_source->snapshot();
    const bool recorded = m_recorded->isOpen();
    m_recorded->tick(m_current == "chat");
    const std::shared_ptr<const Snapshot> snapshot = shownSource()->snapshot();
    if (live && !recorded) m_view->advance(live->now, live->lastActivity);
    for (const PageEntry& page : m_pages) {
        if (page.key != m_current) continue;
        for (SnapshotView* view : page.views)
            view->tick(view == m_chatPage->plots() ? snapshot : live);
    }
    // A reply continues while another page is shown.
    ChatPanel* chat = m_chatPage->chat();
    if (m_current != "chat" && !chat->replying().isEmpty()) chat->tick(live);
    if (isMinimized()) {
        m_server->watch();
        if (live) watchSession(*live);
        return pace();
    }
    // 4 times a second, so that figures can be read; at once if the user moves the playhead.
    const bool moved = recorded && snapshot != m_shownSnapshot && !m_recorded->player()->playing();
    if (m_statusTicks++ % 8 == 0 || m_timer.interval() > kTickMs || moved) {
        m_shownSnapshot = snapshot;
        updateTopBar(snapshot.get());
        updateStatus(snapshot.get());
        m_chatPage->plots()->showFigures(snapshot);
        m_server->watch();
        updateServing();
        if (m_servePanel->isVisible()) m_servePanel->tick();
        if (m_loadTestPanel->isVisible()) m_loadTestPanel->tick();
        if (live) watchSession(*live);
    }
    pace();
}

// Whether something on the screen changes without user input.
bool MainWindow::atWork() const {
    if (m_recorded->isOpen()) return m_recorded->atWork();
    return m_source->state() == SessionSource::State::Loading || m_source->activeRequests() > 0 ||
           !m_chatPage->chat()->replying().isEmpty() || m_loadTest->running();
}

void MainWindow::pace() {
    const bool seen = isVisible() && !isMinimized();
    const bool touched = m_touched.elapsed() < kTouchedMs;
    const bool smooth = seen && (touched || (atWork() && !m_view->paused()));
    const int interval = smooth ? kTickMs : seen ? kIdleTickMs : kHiddenTickMs;
    if (m_timer.interval() != interval) m_timer.setInterval(interval);
}

void MainWindow::wake() {
    m_touched.restart();
    pace();
}

bool MainWindow::eventFilter(QObject* object, QEvent* event) {
    switch (event->type()) {
        case QEvent::KeyPress:
        case QEvent::MouseButtonPress:
        case QEvent::MouseButtonRelease:
        case QEvent::Wheel:
            wake();
            break;
        default:
            break;
    }
    return QMainWindow::eventFilter(object, event);
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::WindowStateChange) wake();
}

void MainWindow::sourceChanged() {
    m_chatPage->setSource(m_source);
    m_droppedSeen = 0;
    m_sessionErrorSeen.clear();
    if (!m_recorded->isOpen()) showSource();
}

// Bars and time range for the loaded model, or for none.
void MainWindow::showSource() {
    const bool ready = m_source->model() != nullptr;
    m_top->setSessionVisible(ready);
    m_status->setModelLoaded(ready);
    m_view->setCursor(std::numeric_limits<double>::quiet_NaN());
    if (ready) {
        m_view->reset();
        m_top->chip()->setModel(m_source->model()->name, m_source->model()->weights);
    } else {
        m_top->chip()->setModel({}, {});
    }
    m_statusTicks = 0;
    wake();
    tick();
}

void MainWindow::setTheme(Theme::Mode mode) {
    Theme::get().setMode(mode);
    static const char* const kNames[] = {"system", "light", "dark"};
    settings().setValue("theme", kNames[int(mode)]);
}

void MainWindow::rebuildMenus() {
    menuBar()->clear();
    for (const QString& group : m_commands->groups())
        m_commands->fillMenu(menuBar()->addMenu(group), group);
}

void MainWindow::popupMenu(QWidget* anchor, const QStringList& groups) {
    QMenu menu;
    for (const QString& group : groups) {
        QMenu* target = groups.size() == 1 ? &menu : menu.addMenu(group);
        m_commands->fillMenu(target, group);
    }
    if (groups == QStringList{"Model"} && m_modelMenu) m_modelMenu(&menu);
    if (menu.isEmpty()) return;
    menu.exec(anchor->mapToGlobal(QPoint(0, anchor->height() + 2)));
}

void MainWindow::updateOverlayInsets() {
    const int top = 40 + (menuBar()->isVisible() ? menuBar()->height() : 0);
    m_palette->setInsets(top, 24);
    m_sheet->setInsets(top, 24);
}

// Moves the focus to the next of top bar, messages, panes of the page, status bar: to the widget of
// that pane that had it last, else to its first tab stop.
void MainWindow::nextPane(int step) {
    QVector<QWidget*> panes{m_top};
    if (m_playerBar->isVisible()) panes << m_playerBar;
    if (m_messageBar->isVisible()) panes << m_messageBar;
    if (m_current == "chat")
        panes << m_chatPage->panes();
    else
        panes << m_stack->currentWidget();
    panes << m_status;
    const QWidget* focus = QApplication::focusWidget();
    qsizetype at = step > 0 ? -1 : panes.size();
    for (qsizetype i = 0; i < panes.size(); ++i)
        if (focus && panes[i]->isAncestorOf(focus)) at = i;
    for (qsizetype n = 0; n < panes.size(); ++n) {
        at = (at + step + panes.size()) % panes.size();
        QWidget* last = panes[at]->focusWidget();
        if (!last || !isTabStop(last)) last = readingOrder(panes[at]).value(0);
        if (panes[at] == m_playerBar) last = m_playerBar->scrubber();
        if (panes[at]->isAncestorOf(m_chatPage->chat()->composer()))
            last = m_chatPage->chat()->composer()->editor();
        if (last) return focusShown(last, Qt::ShortcutFocusReason);
    }
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    m_top->setWindowClass(windowClassOf(width()));
    m_playerBar->setWindowClass(windowClassOf(width()));
    m_status->setWindowClass(windowClassOf(width()));
    updateOverlayInsets();
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_loadTest->running()) return m_loadTest->stop();
    if (playerKey(event)) return;
    m_altAlone = event->key() == Qt::Key_Alt;
    QMainWindow::keyPressEvent(event);
}

// Alt pressed and released by itself shows or hides the menu bar.
void MainWindow::keyReleaseEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Alt && std::exchange(m_altAlone, false)) {
        menuBar()->setVisible(!menuBar()->isVisible());
        updateOverlayInsets();
        return;
    }
    QMainWindow::keyReleaseEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() != 1 || !urls[0].isLocalFile()) return;
    event->acceptProposedAction();
    m_dropHint->showFor(urls[0].toLocalFile(), m_current == "chat");
}

void MainWindow::dropEvent(QDropEvent* event) {
    m_dropHint->hide();
    const QString path = event->mimeData()->urls().value(0).toLocalFile();
    if (path.isEmpty()) return;
    event->acceptProposedAction();
    switch (dropKindOf(path)) {
        case DropKind::Open:
            return emit openWanted(path);
        case DropKind::Config:
            return importConfig(path);
        case DropKind::Chat:
            showPage("chat");
            return importChat(path);
        case DropKind::Text:
            if (m_current == "chat") return dropText(path);
            [[fallthrough]];
        case DropKind::Unknown:
            m_messages->error(
                QFileInfo(path).fileName() + " cannot be opened.",
                path + ": it is not a model, session, config or chat. Nothing was changed.");
    }
}

// Inserts at the cursor, as pasting does.
void MainWindow::dropText(const QString& path) {
    QString error;
    const QString text = droppedText(path, &error);
    if (!error.isEmpty()) return m_messages->error("The file was not put into the message.", error);
    Composer* composer = m_chatPage->chat()->composer();
    composer->editor()->insertPlainText(text);
    composer->focusEditor();
}

void MainWindow::setMachine(const QString& device, const QString& gpu) {
    m_device = device;
    m_gpu = gpu;
    m_statusTicks = 0;
    tick();
}

void MainWindow::closeNow() {
    m_closeWithoutAsking = true;
    close();
    m_closeWithoutAsking = false;
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (!m_closeWithoutAsking && !m_chatPage->chat()->replying().isEmpty()) {
        event->ignore();
        // Queued, since the window must not close within the event of the message's button.
        return whenUnused("Close the window?", "Close it", [this] {
            QMetaObject::invokeMethod(this, &MainWindow::closeNow, Qt::QueuedConnection);
        });
    }
    settings().setValue("layout/window", saveGeometry());
    m_chatPage->chat()->endReplies();
    m_loadTest->stop();
    m_server->stop();
    m_chats->flush();
    event->accept();
}

}  // namespace colibri::ui
