// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: top bar, messages, pages, status bar, commands. A timer (33 ms while something
// moves, slower otherwise) takes the newest snapshot and passes it to the visible parts. Pages are
// a list; those with a tab are shown in the top bar. GUI thread only.
#pragma once

#include <QElapsedTimer>
#include <QMainWindow>
#include <QStackedWidget>
#include <QTimer>
#include <functional>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/backend/snapshot_view.h"
#include "app/workbench/chat/chat_store.h"
#include "app/workbench/docks/load_test_panel.h"
#include "app/workbench/docks/serve_panel.h"
#include "app/workbench/pages/chat_page.h"
#include "app/workbench/widgets/focus.h"
#include "app/workbench/window/commands.h"
#include "app/workbench/window/export_panel.h"
#include "app/workbench/window/file_drop.h"
#include "app/workbench/window/messages.h"
#include "app/workbench/window/palette.h"
#include "app/workbench/window/recorded_view.h"
#include "app/workbench/window/status_bar.h"
#include "app/workbench/window/top_bar.h"

namespace colibri::ui {

struct PageEntry {
    QString key, icon, title;  // key: "chat"
    QWidget* widget = nullptr;
    bool tab = true;                        // in the top bar
    std::vector<SnapshotView*> views = {};  // receive the snapshots while the page is shown
    // The widget that gets the focus when the page is shown; empty: the page itself.
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
    RecordedView* recorded() { return m_recorded; }
    TopBar* topBar() { return m_top; }
    StatusBar* status() { return m_status; }
    CommandPalette* palette() { return m_palette; }
    Sheet* sheet() { return m_sheet; }
    ModelServer* server() { return m_server; }
    LoadTest* loadTest() { return m_loadTest; }
    ServePanel* servePanel() { return m_servePanel; }
    LoadTestPanel* loadTestPanel() { return m_loadTestPanel; }

    void tick();                                             // what the timer does
    int tickInterval() const { return m_timer.interval(); }  // ms
    void setTheme(Theme::Mode mode);                         // saved in the settings
    // Runs `action` at once. If that would end a server, a load test or a reply, a message asks
    // `question` first, with `answer` as the label of its button.
    void whenUnused(const QString& question, const QString& answer, std::function<void()> action);
    void closeNow();  // does not ask
    void openDiagnostics();
    // Replaces the built-in sheet of openDiagnostics().
    void setDiagnose(std::function<void()> diagnose) { m_diagnose = std::move(diagnose); }
    void rebuildMenus();  // after commands were added
    // Texts of the status bar while no model is loaded.
    void setMachine(const QString& device, const QString& gpu);
    // Adds entries to the model menu, such as recent models.
    void setModelMenu(std::function<void(QMenu*)> fill) { m_modelMenu = std::move(fill); }

signals:
    void openWanted(const QString& path);  // a model or a session was dropped on the window
    void restartWanted();
    void nothingShown();  // a recorded session was closed, and no model is loaded

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
    void connectStore();
    void connectPlots();
    void connectKnobs();
    void connectRecorded();
    SessionSource* shownSource() const;  // of the plots: the recorded session, else m_source
    void showSource();
    void showRecordedProblems();
    void openExport();
    void openVerdicts();
    void showRecordedStatus(const Snapshot& snapshot);
    bool playerKey(QKeyEvent* event);
    void postExported(const QString& what, const QString& path);
    void postPartlyApplied(const QString& what, const QString& detail, bool reload);
    void addCommands();
    void addThemeCommands();
    void addScaleCommands();
    void addLayoutCommands();
    void addSessionCommands();
    void addPlayerCommands();
    void addHelpCommands();
    void addChatCommands();
    void addPlotCommands();
    void addPlotChoiceCommands(const CommandGroup::Options& needModel);
    void addPlotExportCommands(const CommandGroup::Options& needModel);
    void addKnobCommands();
    void addUndoCommands();
    void addServeCommands();
    void addLoadTestCommands();
    std::vector<Command> knobCommands();
    void askSlo();
    void popupMenu(QWidget* anchor, const QStringList& groups);
    void sourceChanged();
    void updateStatus(const Snapshot* snapshot);
    void showMachine(const MemoryNow& memory);
    void showEngine(const ModelFacts& model, const Snapshot& snapshot, const MemoryNow& memory);
    void showReads(const Snapshot& snapshot);
    void showGpu(const Snapshot& snapshot);
    void showRecording(const Snapshot& snapshot);
    void updateServing();
    void updateTopBar(const Snapshot* snapshot);
    void watchSession(const Snapshot& snapshot);
    bool atWork() const;
    void wake();
    void pace();
    void statusClicked(StatusBar::Cell cell);
    void showKnob(KnobId id);
    void exportConfig();
    void importConfig(const QString& path);  // "": opens a file dialog
    void exportChat();
    void importChat(const QString& path);  // "": opens a file dialog
    void dropText(const QString& path);
    void openKeyboardSheet();
    void openSessionSheet();  // needs a model
    void openAbout();
    void updateOverlayInsets();
    void nextPane(int step);
    QString commandLine() const;

    SessionSource* m_source;
    ViewState* m_view;
    ChatStore* m_chats;
    Commands* m_commands;
    MessageCenter* m_messages;
    TopBar* m_top;
    PlayerBar* m_playerBar;
    MessageBar* m_messageBar;
    QStackedWidget* m_stack;
    StatusBar* m_status;
    ChatPage* m_chatPage;
    RecordedView* m_recorded;
    ExportPanel* m_exportPanel;
    QString m_recordedProblems;  // shown as a message; null: none yet
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
    bool m_closeWithoutAsking = false;
    QElapsedTimer m_touched;  // since the last key press or mouse event
    uint64_t m_droppedSeen = 0;
    QString m_sessionErrorSeen, m_saveTrouble;
    std::function<void()> m_diagnose;
    std::function<void(QMenu*)> m_modelMenu;
    QString m_device, m_gpu;  // of the machine
    bool m_altAlone = false;
    std::shared_ptr<const Snapshot> m_shownSnapshot;  // of the newest figures
    int m_statusTicks = 0;
};

}  // namespace colibri::ui
