// SPDX-License-Identifier: GPL-3.0-or-later
// The conversation of a recorded session, read only: the turns around the playhead, with the text
// up to it dark and the rest faint. GUI thread only.
#pragma once

#include <QWidget>
#include <vector>

#include "app/workbench/backend/recorded_source.h"
#include "app/workbench/chat/chat_view.h"
#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/window_class.h"

namespace colibri::ui {

class FindBar;
class RecordedHead;
class Readout;

class RecordedChat : public QWidget {
    Q_OBJECT

public:
    explicit RecordedChat(ViewState* view, QWidget* parent = nullptr);
    void setSource(RecordedSource* source);  // nullptr: none
    void setWindowClass(WindowClass windowClass);
    // Shows the turns and the text at the source's time.
    void tick();
    ChatView* view() const { return m_view; }
    FindBar* findBar() const { return m_find; }
    const Conversation& conversation() const { return m_chat; }
    // The shown turns up to the playhead, to be continued as a chat.
    Conversation continued() const;
    static constexpr size_t kTurnsBefore = 6, kTurnsAfter = 2;  // shown around the playhead

signals:
    void continueWanted();

protected:
    void paintEvent(QPaintEvent*) override;

private:
    class Foot;
    void showTurns(size_t first, size_t last);
    void addTurn(size_t request);
    void showPlayhead();
    size_t requestAtPlayhead() const;
    int playedOffset(const Turn& turn) const;
    void hover(int turn, int token);
    void connectFindBar();

    ViewState* m_viewState;
    RecordedSource* m_source = nullptr;
    Conversation m_chat;
    std::vector<size_t> m_requests;  // of each model turn of m_chat
    size_t m_first = 0, m_last = 0;  // requests shown
    bool m_built = false;
    double m_shownTime = -1;
    RecordedHead* m_head;
    FindBar* m_find;
    ChatView* m_view;
    Readout* m_readout;
    Foot* m_foot;
};

}  // namespace colibri::ui
