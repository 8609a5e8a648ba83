// SPDX-License-Identifier: GPL-3.0-or-later
// The window: top bar, messages, pages, status bar, commands. One 33 ms timer pulls the snapshot
// and hands it to what is visible. Pages are a list: a page with a tab stands in the top bar.
#pragma once

#include <QElapsedTimer>
#include <QMainWindow>
#include <QStackedWidget>
#include <QTimer>
#include <functional>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/chat/chat_store.h"
#include "app/workbench/docks/load_test_panel.h"
#include "app/workbench/docks/serve_panel.h"
#include "app/workbench/pages/chat_page.h"
#include "app/workbench/widgets/focus.h"
#include "app/workbench/window/commands.h"
#include "app/workbench/window/file_drop.h"
#include "app/workbench/window/messages.h"
#include "app/workbench/window/palette.h"
#include "app/workbench/window/status_bar.h"
#include "app/workbench/window/top_bar.h"

namespace colibri::ui {

struct PageEntry {
    QString key, icon, title;  // key: "chat"
    QWidget* widget = nullptr;
    bool tab = true;                                                   // in the top bar
    std::function<void(const std::shared_ptr<const Snapshot>&)> tick;  // while it is shown
    // Where the focus goes when the page comes up, or has lost it; the page itself where empty.
    std::function<QWidget*()> home = {};
};

class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(SessionSource* source, const QString& chatFolder = {});
    ~MainWindow() override;

    void addPage(PageEntry page);
    void showPage(const QString& key);
    QString currentPage() const { return m_current; }

    Commands* commands() { return m_commands; }
    MessageCenter* messages() { return m_messages; }
    ViewState* view() { return m_view; }
    ChatPage* chatPage() { return m_chatPage; }
    TopBar* topBar() { return m_top; }
    StatusBar* status() { return m_status; }
    CommandPalette* palette() { return m_palette; }
    Sheet* sheet() { return m_sheet; }
    ChatStore* chats() { return m_chats; }
    SessionSource* source() { return m_source; }
    ModelServer* server() { return m_server; }
    LoadTest* loadTest() { return m_loadTest; }
    ServePanel* servePanel() { return m_servePanel; }
    LoadTestPanel* loadTestPanel() { return m_loadTestPanel; }

    void tick();                                             // as the timer does
    int tickInterval() const { return m_timer.interval(); }  // ms to the next, as things stand
    void setTheme(Theme::Mode mode);                         // kept in the settings
    // Does it at once, or asks first where a server or a load test would end with it.
    void whenUnused(const QString& question, const QString& answer, std::function<void()> action);
    void closeNow();  // without asking about what it ends
    void openKeyboardSheet();
    void openSessionSheet();  // needs a model
    void openAbout();
    void openDiagnostics();
    // Another page for the diagnosis than the built-in sheet.
    void setDiagnose(std::function<void()> diagnose) { m_diagnose = std::move(diagnose); }
    void rebuildMenus();
    // What the status bar shows of the machine while no model runs.
    void setMachine(const QString& device, const QString& gpu);
    // More entries of the model chip's menu, such as recent models.
    void setModelMenu(std::function<void(QMenu*)> fill) { m_modelMenu = std::move(fill); }

signals:
    void openWanted(const QString& path);  // a model or a session that was dropped
    void restartWanted();

protected:
    void resizeEvent(QResizeEvent*) override;
    void closeEvent(QCloseEvent*) override;
    void changeEvent(QEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void keyReleaseEvent(QKeyEvent*) override;
    void dragEnterEvent(QDragEnterEvent*) override;
    void dragLeaveEvent(QDragLeaveEvent*) override { m_dropHint->hide(); }
    void dropEvent(QDropEvent*) override;
    bool focusNextPrevChild(bool next) override { return stepFocus(centralWidget(), next); }

private:
    void build();
    void connectChat();
    void addDocks();
    void toldExport(const QString& what, const QString& path);
    void toldApplied(const QString& what, const QString& detail, bool reload);
    void addCommands();
    void addChatCommands();
    void addPlotCommands();
    void addKnobCommands();
    void addEngineCommands();
    std::vector<Command> knobCommands();
    void popupMenu(QWidget* anchor, const QStringList& groups);
    void sourceChanged();
    void updateStatus(const Snapshot* snapshot);
    void updateServing();
    void updateTopBar(const Snapshot* snapshot);
    void watchSession(const Snapshot& snapshot);
    bool atWork() const;
    void wake();
    void pace();
    void statusClicked(StatusBar::Cell cell);
    void showKnob(KnobId id);
    void exportConfig();
    void importConfig(const QString& path);  // "": asks for one
    void exportChat();
    void importChat(const QString& path);  // "": asks for one
    void dropText(const QString& path);
    void placeOverlays();
    void nextPane(int step);
    QString commandLine() const;

    SessionSource* m_source;
    ViewState* m_view;
    ChatStore* m_chats;
    Commands* m_commands;
    MessageCenter* m_messages;
    TopBar* m_top;
    MessageBar* m_messageBar;
    QStackedWidget* m_stack;
    StatusBar* m_status;
    ChatPage* m_chatPage;
    ModelServer* m_server;
    LoadTest* m_loadTest;
    ServePanel* m_servePanel;
    LoadTestPanel* m_loadTestPanel;
    CommandPalette* m_palette;
    Sheet* m_sheet;
    MessageList* m_messageList;
    DropHint* m_dropHint;
    std::vector<PageEntry> m_pages;
    QString m_current;
    QTimer m_timer;
    bool m_sure = false;      // what closing ends was asked about
    QElapsedTimer m_touched;  // since the user did something
    uint64_t m_droppedSeen = 0;
    QString m_sessionErrorSeen, m_saveTrouble;
    std::function<void()> m_diagnose;
    std::function<void(QMenu*)> m_modelMenu;
    QString m_device, m_gpu;  // of the machine
    bool m_altAlone = false;
    int m_statusTicks = 0;
};

}  // namespace colibri::ui
