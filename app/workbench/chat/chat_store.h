// SPDX-License-Identifier: GPL-3.0-or-later
// Conversations on disk: one JSON file each in the program's data folder, replaced whole after
// every message. While a reply comes only that turn is written, to ID.reply beside it, so that the
// cost does not grow with the chat. Files are read and written on one worker thread, in order.
#pragma once

#include <QHash>
#include <QObject>
#include <QVector>
#include <functional>

#include "app/workbench/chat/conversation.h"
#include "app/workbench/platform/gui_queue.h"
#include "app/workbench/platform/worker.h"
#include "engine/base/status.h"

namespace colibri::ui {

struct ChatSummary {
    QString id, title;
    int turns = 0;
    QString model;  // that gave the last reply
    QDateTime changed;
    QString text;  // lower case, for search; bounded
};

class ChatStore : public QObject {
    Q_OBJECT

public:
    explicit ChatStore(const QString& folder, QObject* parent = nullptr);
    ~ChatStore() override;  // writes what is queued

    static QString defaultFolder();
    void list();  // reads the folder; listed() follows
    const QVector<ChatSummary>& summaries() const { return m_summaries; }  // newest first
    void save(const Conversation& conversation);
    // A turn that grows in a conversation which was saved with it; the list stays as it is.
    void saveReply(const Conversation& conversation, int turn);
    void load(const QString& id, std::function<void(std::optional<Conversation>)> done);
    void remove(const QString& id);
    bool restore();  // the last removed one; false: none
    void rename(const QString& id, const QString& title);
    void flush();  // waits until everything queued is on disk

signals:
    void listed();
    void failed(const QString& reason);  // of a save: path and why

private:
    QString pathOf(const QString& id) const;
    void note(const Conversation& conversation);
    void sort();
    void report(const Status& status);  // from the worker; nothing when all is well
    static ChatSummary summarize(const Conversation& conversation);

    QString m_folder;
    QVector<ChatSummary> m_summaries;
    std::optional<Conversation> m_removed;
    bool m_removing = false, m_restoreWanted = false;  // undo may come before m_removed is read
    GuiQueue m_gui;                                    // what the worker found
    Worker m_worker;                                   // last: its tasks end before the rest goes
};

}  // namespace colibri::ui
