// SPDX-License-Identifier: GPL-3.0-or-later
// A running reply: the updates of its run become text, tokens and figures of one turn. The
// conversation belongs to the caller, which passes it to each call; it need not be visible. GUI
// thread only.
#pragma once

#include <QElapsedTimer>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/chat/conversation.h"

namespace colibri::ui {

class Reply {
public:
    struct Step {
        bool grew = false, ended = false;
        bool failed = false;  // ended, but was not stopped by the user
        uint32_t promptDone = 0, promptTotal = 0;
    };

    // The reply is appended to what turn `turn` has already. `bytesRead`: bytes read by the store
    // so far.
    Reply(std::shared_ptr<ChatRun> run, int turn, const Turn& before, uint64_t bytesRead);

    int turn() const { return m_turn; }
    const std::shared_ptr<ChatRun>& run() const { return m_run; }
    // Takes the updates since the last call.
    Step advance(Conversation* chat, const SessionSource* source, const Snapshot* snapshot);
    // Ends it: cancels the run and keeps the text so far, with the reason.
    void interrupt(Conversation* chat, const SessionSource* source);
    // True every second or two while there is unsaved text.
    bool saveDue();

private:
    void add(Turn* turn, const ChatRun::Update& update, const SessionSource* source,
             const Snapshot* snapshot);
    void end(Turn* turn, const RequestResult& result, const SessionSource* source);

    std::shared_ptr<ChatRun> m_run;
    int m_turn;
    QString m_textBefore;
    int m_tokensBefore;
    uint64_t m_startNs, m_bytesAtStart, m_lookups = 0, m_hits = 0;
    double m_bytesBefore, m_gapSumMs = 0;
    uint32_t m_promptTotal = 0;
    QElapsedTimer m_saved;
    bool m_unsaved = false;
};

// The error of a reply whose chat does not fit the context. `needed`: tokens of the chat, 0:
// unknown.
QString contextFullText(const SessionSource& source, int64_t needed);

}  // namespace colibri::ui
