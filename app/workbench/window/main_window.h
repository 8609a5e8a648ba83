// SPDX-License-Identifier: GPL-3.0-or-later
// The window: top bar, messages, pages, status bar, commands. One 33 ms timer pulls the snapshot
// and hands it to what is visible. Pages are a list: a page with a tab stands in the top bar.
#pragma once

#include <QMainWindow>
#include <QStackedWidget>
#include <QTimer>
#include <functional>
#include <vector>

#include "app/workbench/chat/chat_store.h"
#include "app/workbench/docks/load_test_panel.h"
#include "app/workbench/docks/serve_panel.h"
#include "app/workbench/pages/chat_page.h"
#include "app/workbench/session/session_source.h"
#include "app/workbench/window/commands.h"
#include "app/workbench/window/messages.h"
#include "app/workbench/window/palette.h"
#include "app/workbench/window/status_bar.h"
#include "app/workbench/window/top_bar.h"

namespace colibri::ui {

struct PageEntry {
    QString key, icon, title;            // key: "chat"
    QWidget* widget = nullptr;
    bool tab = true;                     // in the top bar
    std::function<void(const std::shared_ptr<const Snapshot>&)> tick;   // while it is shown
};

class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(SessionSource* source, const QString& chatFolder = {});
    ~MainWindow() override;

    void addPage(PageEntry page);
    void showPage(const QString& key);
    QString currentPage() const { return m_current; }
    bool hasPage(const QString& key) const;

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

    void tick();                         // as the timer does
    void setTheme(Theme::Mode mode);     // kept in the settings
    // Does it at once, or asks first where a server or a load test would end with it.
    void whenUnused(const QString& question, const QString& answer, std::function<void()> action);
    void openKeyboardSheet();
    void openDiagnostics();
    // Another page for the diagnosis than the built-in sheet.
    void setDiagnose(std::function<void()> diagnose) { m_diagnose = std::move(diagnose); }
    void rebuildMenus();
    // What the status bar shows of the machine while no model runs.
    void setMachine(const QString& device, const QString& gpu);
    // More entries of the model chip's menu, such as recent models.
    void setModelMenu(std::function<void(QMenu*)> fill) { m_modelMenu = std::move(fill); }

signals:
    void fileDropped(const QString& path);

protected:
    void resizeEvent(QResizeEvent*) override;
    void closeEvent(QCloseEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void keyReleaseEvent(QKeyEvent*) override;
    void dragEnterEvent(QDragEnterEvent*) override;
    void dropEvent(QDropEvent*) override;

private:
    void build();
    void connectChat();
    void addDocks();
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
    void statusClicked(StatusBar::Cell cell);
    void exportConfig();
    void importConfig();
    void exportChat();
    void importChat();
    void placeOverlays();
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
    std::vector<PageEntry> m_pages;
    QString m_current;
    QTimer m_timer;
    uint64_t m_droppedSeen = 0;
    QString m_sessionErrorSeen, m_saveTrouble;
    std::function<void()> m_diagnose;
    std::function<void(QMenu*)> m_modelMenu;
    QString m_device, m_gpu;             // of the machine
    bool m_altAlone = false;
    int m_statusTicks = 0;
};

}  // namespace colibri::ui
