// SPDX-License-Identifier: GPL-3.0-or-later
// Conversations on disk: one JSON file each in the data folder of the program, replaced as a whole
// after every message. While a reply is generated, only its turn is written, to ID.reply beside the
// file, so that the cost does not depend on the length of the chat. One worker thread reads and
// writes all files, in order. Functions are for the GUI thread and return at once, except flush().
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
    QString model;  // of the last reply
    QDateTime changed;
    QString text;  // lower case, for search; limited length
};

class ChatStore : public QObject {
    Q_OBJECT

public:
    explicit ChatStore(const QString& folder, QObject* parent = nullptr);
    ~ChatStore() override;  // writes everything that is queued

    static QString defaultFolder();
    void list();  // reads the folder; listed() follows
    const QVector<ChatSummary>& summaries() const { return m_summaries; }  // newest first
    void save(const Conversation& conversation);
    // Saves the growing turn of a conversation that was saved with it. The list does not change.
    void saveReply(const Conversation& conversation, int turn);
    void load(const QString& id, std::function<void(std::optional<Conversation>)> done);
    void remove(const QString& id);
    bool restore();  // the chat that was removed last; false: none
    void rename(const QString& id, const QString& title);
    void flush();  // blocks until everything queued is on disk

signals:
    void listed();
    void failed(const QString& reason);  // a chat could not be saved: path and reason

private:
    QString pathOf(const QString& id) const;
    void note(const Conversation& conversation);
    void sort();
    void report(const Status& status);  // on the worker; emits failed() unless ok
    static ChatSummary summarize(const Conversation& conversation);

    QString m_folder;
    QVector<ChatSummary> m_summaries;
    std::optional<Conversation> m_removed;
    // restore() can be called before m_removed was read.
    bool m_removing = false, m_restoreWanted = false;
    GuiQueue m_gui;   // from the worker to the GUI thread
    Worker m_worker;  // last: its tasks end before the other members are destroyed
};

}  // namespace colibri::ui
