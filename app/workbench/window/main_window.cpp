// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QUrl>
#include <QVBoxLayout>
#include <limits>

#include "app/workbench/session/settings.h"

namespace colibri::ui {
namespace {

constexpr int kTickMs = 33;

}  // namespace

MainWindow::MainWindow(SessionSource* source, const QString& chatFolder)
    : m_source(source), m_view(new ViewState(this)),
      m_chats(new ChatStore(chatFolder.isEmpty() ? ChatStore::defaultFolder() : chatFolder, this)),
      m_commands(new Commands(this)), m_messages(new MessageCenter(this)) {
    setWindowTitle("Colibri Workbench");
    setMinimumSize(800, 500);
    setAcceptDrops(true);
    m_view->setSlo(settings().value("slo_ms", 40).toDouble());
    build();
    m_chatPage = new ChatPage(m_chats, m_view, this);
    addDocks();
    addPage({"chat", "chat", "Chat", m_chatPage, true,
             [this](const std::shared_ptr<const Snapshot>& s) { m_chatPage->tick(s); }});
    connectChat();
    addCommands();
    rebuildMenus();
    m_chatPage->plots()->setDiagnose([this] { openDiagnostics(); });
    connect(m_source, &SessionSource::stateChanged, this, &MainWindow::sourceChanged);
    connect(&m_timer, &QTimer::timeout, this, &MainWindow::tick);
    m_timer.start(kTickMs);
    m_chats->list();
    m_chatPage->chat()->composer()->focusEditor();
    showPage("chat");
    sourceChanged();
    const QByteArray geometry = settings().value("layout/window").toByteArray();
    if (geometry.isEmpty() || !restoreGeometry(geometry)) resize(1440, 900);
}

MainWindow::~MainWindow() { m_timer.stop(); }

void MainWindow::build() {
    auto* body = new QWidget;
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_top = new TopBar(m_view);
    m_messageBar = new MessageBar(m_messages, body);
    m_stack = new QStackedWidget;
    m_status = new StatusBar;
    column->addWidget(m_top);
    column->addWidget(m_stack, 1);
    column->addWidget(m_status);
    setCentralWidget(body);
    menuBar()->hide();
    m_palette = new CommandPalette(m_commands, this);
    m_sheet = new Sheet(this);
    m_messageList = new MessageList(m_messages, this);
    m_commands->blocked = [this] { return m_sheet->isOpen() || m_palette->isOpen(); };

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
    connect(chat, &ChatPanel::importWanted, this, &MainWindow::importChat);
    connect(m_chatPage->list(), &ChatList::exportWanted, this, &MainWindow::exportChat);
    connect(m_chatPage->list(), &ChatList::renameWanted, this, [this, chat](const QString& id) {
        QString title;
        for (const ChatSummary& summary : m_chats->summaries())
            if (summary.id == id) title = summary.title;
        m_palette->ask("Rename chat", title, [this, chat, id](const QString& text) {
            if (chat->conversation().id == id) chat->rename(text);
            else m_chats->rename(id, text);
        });
    });
    const auto undoDelete = [this](const QString& title) {
        m_messages->post({Message::Kind::Info, "Chat deleted.", title, "Undo", [this] {
            if (m_chats->restore()) m_messages->ok("Chat restored");
        }});
    };
    connect(m_chatPage->list(), &ChatList::deleteWanted, this, [=, this](const QString& id) {
        QString title;
        for (const ChatSummary& summary : m_chats->summaries())
            if (summary.id == id) title = summary.title;
        if (chat->conversation().id == id) {
            chat->deleteCurrent();
        } else {
            m_chats->remove(id);
            undoDelete(title);
        }
    });
    connect(chat, &ChatPanel::deleted, this, undoDelete);
    connect(chat, &ChatPanel::failed, m_messages, &MessageCenter::error);
    connect(m_chats, &ChatStore::failed, this, [this](const QString& reason) {
        // A reply saves every second: one message for one trouble.
        if (m_saveTrouble != reason) m_messages->error("The chat could not be saved.", reason);
        m_saveTrouble = reason;
    });
    PlotsPanel* plots = m_chatPage->plots();
    connect(plots, &PlotsPanel::exported, this,
            [this](const QString& path) { m_messages->ok("Plot exported.", path); });
    connect(plots, &PlotsPanel::exportFailed, this, [this](const QString& why) {
        m_messages->error("The plot was not exported.", why);
    });
    KnobsPanel* knobs = m_chatPage->knobs();
    connect(knobs, &KnobsPanel::failed, m_messages, &MessageCenter::error);
    connect(knobs, &KnobsPanel::done, m_messages, &MessageCenter::ok);
    connect(knobs, &KnobsPanel::exportWanted, this, &MainWindow::exportConfig);
    connect(knobs, &KnobsPanel::importWanted, this, &MainWindow::importConfig);
    connect(knobs, &KnobsPanel::saveProfileWanted, this, [this, knobs] {
        m_palette->ask("Name of the profile", "", [knobs](const QString& name) {
            knobs->saveProfile(name);
        });
    });
    connect(knobs, &KnobsPanel::loadPageWanted, this,
            [this] { m_commands->run("model.reload"); });
    m_palette->setCommandLine([this] { return commandLine(); });
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
        // Seen also where the dock is not.
        if (m_server->state() == ModelServer::State::Off && !m_server->error().ok() &&
            !m_servePanel->isVisible())
            m_messages->error("The model is not served.",
                              QString::fromStdString(m_server->error().text()));
    });
    connect(m_loadTestPanel, &LoadTestPanel::exported, this,
            [this](const QString& path) { m_messages->ok("Load exported.", path); });
    connect(m_loadTestPanel, &LoadTestPanel::failed, m_messages, &MessageCenter::error);
}

void MainWindow::addPage(PageEntry page) {
    m_stack->addWidget(page.widget);
    if (page.tab) m_top->addTab(page.key, page.icon, page.title);
    m_pages.push_back(std::move(page));
}

bool MainWindow::hasPage(const QString& key) const {
    for (const PageEntry& page : m_pages)
        if (page.key == key) return true;
    return false;
}

void MainWindow::showPage(const QString& key) {
    for (const PageEntry& page : m_pages) {
        if (page.key != key) continue;
        m_stack->setCurrentWidget(page.widget);
        m_current = key;
        m_top->setCurrentTab(page.tab ? key : QString());
        tick();
    }
}

void MainWindow::tick() {
    const std::shared_ptr<const Snapshot> snapshot = m_source->snapshot();
    if (snapshot) m_view->advance(snapshot->now);
    for (const PageEntry& page : m_pages)
        if (page.key == m_current && page.tick) page.tick(snapshot);
    // A reply goes on while another page is shown.
    if (m_current != "chat" && m_chatPage->chat()->generating()) m_chatPage->chat()->tick(snapshot);
    if (m_statusTicks++ % 8 == 0) {      // 4 times a second: figures that can be read
        updateTopBar(snapshot.get());
        updateStatus(snapshot.get());
        m_chatPage->plots()->showFigures(snapshot);
        m_server->watch();
        updateServing();
        if (m_servePanel->isVisible()) m_servePanel->tick();
        if (m_loadTestPanel->isVisible()) m_loadTestPanel->tick();
        if (snapshot) watchSession(*snapshot);
    }
}

void MainWindow::sourceChanged() {
    const bool ready = m_source->model() != nullptr;
    m_chatPage->setSource(m_source);
    m_top->setSessionVisible(ready);
    m_status->setModelLoaded(ready);
    m_droppedSeen = 0;
    m_sessionErrorSeen.clear();
    m_view->setCursor(std::numeric_limits<double>::quiet_NaN());
    if (ready) {
        m_view->reset();
        m_top->chip()->setModel(m_source->model()->name, m_source->model()->weights);
    } else {
        m_top->chip()->setModel({}, {});
    }
    m_statusTicks = 0;
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

void MainWindow::placeOverlays() {
    const int top = 40 + (menuBar()->isVisible() ? menuBar()->height() : 0);
    m_palette->setInsets(top, 24);
    m_sheet->setInsets(top, 24);
    // Over the page, which so stays where it is.
    m_messageBar->setGeometry(0, m_top->height(), width(), m_messageBar->height());
    m_messageBar->raise();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    using Density = TopBar::Density;
    const int w = width();
    m_top->setDensity(w < 1000 ? Density::Small : w < 1280 ? Density::Compact
                      : w < 1920 ? Density::Full : Density::Wide);
    m_status->setWidthClass(w);
    placeOverlays();
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_chatPage->chat()->generating()) {
        m_chatPage->chat()->stop();
        return;
    }
    if (event->key() == Qt::Key_Escape && m_loadTest->running()) return m_loadTest->stop();
    m_altAlone = event->key() == Qt::Key_Alt;
    QMainWindow::keyPressEvent(event);
}

// Alt pressed and released by itself shows or hides the menu bar.
void MainWindow::keyReleaseEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Alt && std::exchange(m_altAlone, false)) {
        menuBar()->setVisible(!menuBar()->isVisible());
        placeOverlays();
        return;
    }
    QMainWindow::keyReleaseEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && urls[0].isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    emit fileDropped(event->mimeData()->urls().value(0).toLocalFile());
}

void MainWindow::setMachine(const QString& device, const QString& gpu) {
    m_device = device;
    m_gpu = gpu;
    m_statusTicks = 0;
    tick();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    settings().setValue("layout/window", saveGeometry());
    m_chatPage->chat()->stop();
    m_loadTest->stop();
    m_server->stop();
    m_chats->flush();
    event->accept();
}

}  // namespace colibri::ui
