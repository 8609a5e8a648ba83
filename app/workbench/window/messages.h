// SPDX-License-Identifier: GPL-3.0-or-later
// Messages of the program: the newest that concerns the session in a bar under the top bar, and all
// of them in the list of the bell. Never modal. In the bar an error stays until it is closed or a
// newer message takes its place, others leave after 8 s.
#pragma once

#include <QDateTime>
#include <QObject>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/overlay.h"

class QVBoxLayout;

namespace colibri::ui {

struct Message {
    using Kind = MessageKind;

    Kind kind = Kind::Info;
    QString text, detail;
    QString actionText;
    std::function<void()> action;
    bool inBar = true;   // concerns the session: also under the top bar
    bool stays = false;  // in the bar until it is answered, as an error does
    QDateTime time;
    int id = 0;

    QString copyText() const { return detail.isEmpty() ? text : text + "\n" + detail; }
};

class MessageCenter : public QObject {
    Q_OBJECT

public:
    explicit MessageCenter(QObject* parent = nullptr);
    int post(Message message);  // returns its id
    void ok(const QString& text, const QString& detail = {});
    void error(const QString& text, const QString& detail = {});
    void close(int id);
    void closeAll();
    void markRead();
    const std::vector<Message>& all() const { return m_messages; }
    const Message* inBar() const;  // what the bar shows; nullptr: nothing
    int unread() const { return m_unread; }

signals:
    void changed();

private:
    std::vector<Message> m_messages;  // bounded; oldest first
    int m_barId = 0;                  // 0: nothing is in the bar
    int m_next = 1, m_unread = 0;
};

// Under the top bar, above the page: the page moves down to make room for it.
class MessageBar : public MessageStrip {
    Q_OBJECT

public:
    MessageBar(MessageCenter* center, QWidget* parent = nullptr);

private:
    void refresh();

    MessageCenter* m_center;
    int m_id = 0;  // of what is shown; 0: nothing
};

class MessageList : public Popover {
    Q_OBJECT

public:
    MessageList(MessageCenter* center, QWidget* window);
    QSize sizeHint() const override;

private:
    void refresh();

    MessageCenter* m_center;
    QVBoxLayout* m_rows;
    QWidget* m_content;
};

}  // namespace colibri::ui
