// SPDX-License-Identifier: GPL-3.0-or-later
// A reply on its way into a conversation: what its run gives becomes the text, tokens and figures
// of one turn. The conversation may be shown or not; it is the caller's, and passed with each call.
#pragma once

#include <QElapsedTimer>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/chat/conversation.h"

namespace colibri::ui {

class Reply {
public:
    struct Step {
        bool grew = false, ended = false;
        bool failed = false;  // ended, and not because it was stopped
        uint32_t promptDone = 0, promptTotal = 0;
    };

    // `turn` of the conversation gets the reply; what it holds already stays before it.
    Reply(std::shared_ptr<ChatRun> run, int turn, const Turn& before, uint64_t bytesRead);

    int turn() const { return m_turn; }
    const std::shared_ptr<ChatRun>& run() const { return m_run; }
    // Takes what came since the last call.
    Step advance(Conversation* chat, const SessionSource* source, const Snapshot* snapshot);
    // Ends it here: its run is cancelled, what came is kept, with the reason.
    void interrupt(Conversation* chat, const SessionSource* source);
    // True every second or two while there is something to save.
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

// What a reply says where the context of `source` is too small for the chat; `needed` tokens of it,
// 0: unknown.
QString contextFullText(const SessionSource& source, int64_t needed);

}  // namespace colibri::ui
