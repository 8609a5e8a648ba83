// SPDX-License-Identifier: GPL-3.0-or-later
// Messages of the program. The newest one about the session is in a bar below the top bar, all are
// in the list of the bell. Never modal. In the bar an error stays until it is closed or replaced;
// others disappear after 8 s. GUI thread only.
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
    bool inBar = true;   // about the session: also shown in the bar
    bool stays = false;  // stays in the bar until it is answered, as an error does
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
    const Message* inBar() const;  // the message in the bar; nullptr: none
    int unread() const { return m_unread; }

signals:
    void changed();

private:
    std::vector<Message> m_messages;  // bounded; oldest first
    int m_barId = 0;                  // 0: the bar is empty
    int m_next = 1, m_unread = 0;
};

// The bar below the top bar. The page moves down to make room.
class MessageBar : public MessageStrip {
    Q_OBJECT

public:
    MessageBar(MessageCenter* center, QWidget* parent = nullptr);

private:
    void refresh();

    MessageCenter* m_center;
    int m_id = 0;  // of the message shown; 0: none
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
