// SPDX-License-Identifier: GPL-3.0-or-later
// The Chat page: list, conversation, plots and docks (knobs, and those that the window adds). For a
// recorded session its conversation and knobs replace those of the loaded model. The parts are
// arranged by the width of the window in px:
//   < 1000       conversation and one tabbed pane
//   1000..1279   docks become a drawer (Ctrl+K)
//   1280..1919   conversation, plots, docks
//   >= 1920      list, conversation, two plot columns, docks
#pragma once

#include <QSplitter>
#include <QWidget>
#include <memory>
#include <vector>

#include "app/workbench/chat/chat_list.h"
#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/chat/recorded_chat.h"
#include "app/workbench/docks/dock_parts.h"
#include "app/workbench/knobs/knobs_panel.h"
#include "app/workbench/knobs/recorded_knobs.h"
#include "app/workbench/plots/plots_panel.h"
#include "app/workbench/widgets/overlay.h"
#include "app/workbench/widgets/window_class.h"

namespace colibri::ui {

class ChatPage : public QWidget {
    Q_OBJECT

public:
    ChatPage(ChatStore* store, ViewState* view, QWidget* window);
    void setSource(SessionSource* source);
    // Shows a recorded session; nullptr: the source of setSource() again.
    void setRecorded(RecordedSource* recorded);
    bool recorded() const { return m_recorded != nullptr; }
    WindowClass windowClass() const { return m_windowClass; }

    ChatPanel* chat() const { return m_chat; }
    PlotsPanel* plots() const { return m_plots; }
    KnobsPanel* knobs() const { return m_knobs; }
    ChatList* list() const { return m_list; }
    RecordedChat* recordedChat() const { return m_recordedChat; }
    RecordedKnobs* recordedKnobs() const { return m_recordedKnobs; }
    // Adds a dock beside the knobs. REQUIRES: the page was not shown yet.
    void addDock(const QString& key, const QString& title, DockPanel* dock);
    void showKnobs();                    // opens drawer or tab, and moves the focus to the knobs
    void showDock(const QString& key);   // the same for another dock
    void showPane(const QString& name);  // small window: "plots", "knobs", "experts"
    void toggleList(QWidget* anchor);    // nullptr: at the button of the chat
    QVector<QWidget*> panes() const;     // the visible ones, from left to right
    void resetLayout();

protected:
    void resizeEvent(QResizeEvent*) override;
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    class Pane;
    void connectList();
    void showPaneMenu();
    QWidget* chatShown() const;
    QWidget* sideShown() const;
    void layOutDrawer();
    void closeDrawer();
    void arrangeFor(WindowClass windowClass);
    bool openSide(const QString& key);  // opens the dock; false: it was open and is closed now
    void saveSizes();
    void restoreSizes();

    QWidget* m_window;
    WindowClass m_windowClass = WindowClass::Normal;
    bool m_arranged = false, m_restoring = false;
    QSplitter* m_split;
    ChatList* m_list;
    ChatPanel* m_chat;
    PlotsPanel* m_plots;
    KnobsPanel* m_knobs;
    SideDocks* m_side;
    RecordedChat* m_recordedChat;
    RecordedKnobs* m_recordedKnobs;
    RecordedSource* m_recorded = nullptr;
    struct Dock {
        QString key, title;
        DockPanel* widget;
    };
    std::vector<Dock> m_docks;
    Pane* m_pane;  // the tabbed pane of a small window
    Popover* m_listPopover;
    QWidget* m_drawer;
    SessionSource* m_source = nullptr;
};

}  // namespace colibri::ui
