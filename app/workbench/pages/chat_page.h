// SPDX-License-Identifier: GPL-3.0-or-later
// The Chat page: list, conversation, plots, docks (knobs, and what the window adds); arranged by
// the window's width.
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
#include "app/workbench/docks/dock_parts.h"
#include "app/workbench/knobs/knobs_panel.h"
#include "app/workbench/plots/plots_panel.h"
#include "app/workbench/widgets/overlay.h"
#include "app/workbench/widgets/window_class.h"

namespace colibri::ui {

class ChatPage : public QWidget {
    Q_OBJECT

public:
    ChatPage(ChatStore* store, ViewState* view, QWidget* window);
    void setSource(SessionSource* source);
    void tick(const std::shared_ptr<const Snapshot>& snapshot);
    WindowClass windowClass() const { return m_windowClass; }

    ChatPanel* chat() const { return m_chat; }
    PlotsPanel* plots() const { return m_plots; }
    KnobsPanel* knobs() const { return m_knobs; }
    ChatList* list() const { return m_list; }
    // Another dock beside the knobs. REQUIRES: before the page is shown.
    void addDock(const QString& key, const QString& title, DockPanel* dock);
    void showKnobs();                    // drawer, tab, or the focus on the panel
    void showDock(const QString& key);   // as showKnobs, of another one
    void showPane(const QString& name);  // narrow window: "plots", "knobs", "experts"
    void toggleList(QWidget* anchor);
    QVector<QWidget*> panes() const;  // those that are shown, from left to right
    void resetLayout();

protected:
    void resizeEvent(QResizeEvent*) override;
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    class Pane;
    void placeDrawer();
    void closeDrawer();
    void arrangeFor(WindowClass windowClass);
    bool openSide(const QString& key);  // false: it was open, and was closed
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
    struct Dock {
        QString key, title;
        DockPanel* widget;
    };
    std::vector<Dock> m_docks;
    Pane* m_pane;  // the tabbed pane of a narrow window
    Popover* m_listPopover;
    QWidget* m_drawer;
    std::shared_ptr<const Snapshot> m_snapshot;
};

}  // namespace colibri::ui
