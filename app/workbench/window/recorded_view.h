// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded session in the window: opens it in the chat page, plays it, and closes it again. The
// loaded model continues meanwhile. GUI thread only.
#pragma once

#include <QObject>
#include <QPointer>
#include <memory>

#include "app/workbench/pages/chat_page.h"
#include "app/workbench/window/player.h"
#include "app/workbench/window/player_bar.h"

namespace colibri::ui {

class RecordedView : public QObject {
    Q_OBJECT

public:
    // `bar` must outlive this.
    RecordedView(ChatPage* page, ViewState* view, PlayerBar* bar, QObject* parent = nullptr);
    ~RecordedView() override;

    bool isOpen() const { return m_source != nullptr; }
    RecordedSource* source() const { return m_source.get(); }  // nullptr: none is open
    Player* player() const { return m_player.get(); }
    PlayerBar* bar() const { return m_bar; }
    void open(const OpenedSession& session);  // instead of the one that is open
    void close();
    // Moves the playhead and shows the newest state. `shown`: the chat page is shown.
    void tick(bool shown);
    // Whether something on the screen changes without user input.
    bool atWork() const;

signals:
    void opened();
    void closed();
    void completed();  // the whole file has been read
    void totalsWanted(const QString& path);
    void verdictsKnown();                                    // of the chip in the plots panel
    void chatWanted(const colibri::ui::Conversation& chat);  // after the session was closed

private:
    void clear();
    void explain();

    ChatPage* m_page;
    ViewState* m_view;
    PlayerBar* m_bar;
    std::unique_ptr<RecordedSource> m_source;
    std::unique_ptr<Player> m_player;
    QPointer<Job> m_explaining;
};

}  // namespace colibri::ui
