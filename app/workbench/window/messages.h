// SPDX-License-Identifier: GPL-3.0-or-later
// Messages of the program: a bar under the top bar while one concerns the session, and the list of
// the bell. Never modal. Errors stay until closed, others leave the bar after 8 s.
#pragma once

#include <QDateTime>
#include <QObject>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <vector>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/window/overlay.h"

class QVBoxLayout;

namespace colibri::ui {

struct Message {
    enum class Kind { Ok, Info, Warn, Error };

    Kind kind = Kind::Info;
    QString text, detail;
    QString actionText;
    std::function<void()> action;
    bool inBar = true;                   // concerns the session: also under the top bar
    QDateTime time;
    int id = 0;

    QString copyText() const { return detail.isEmpty() ? text : text + "\n" + detail; }
};

class MessageCenter : public QObject {
    Q_OBJECT

public:
    explicit MessageCenter(QObject* parent = nullptr);
    int post(Message message);           // returns its id
    void ok(const QString& text, const QString& detail = {});
    void error(const QString& text, const QString& detail = {});
    void close(int id);
    void closeAll();
    void markRead();
    const std::vector<Message>& all() const { return m_messages; }
    const Message* inBar() const;        // newest that belongs in the bar
    int unread() const { return m_unread; }

signals:
    void changed();

private:
    std::vector<Message> m_messages;     // bounded; oldest first
    std::vector<int> m_barIds;
    int m_next = 1, m_unread = 0;
};

class MessageBar : public QWidget {
    Q_OBJECT

public:
    MessageBar(MessageCenter* center, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override { place(); }

private:
    void refresh();
    void place();

    MessageCenter* m_center;
    Button *m_action, *m_copy;
    IconButton* m_close;
    int m_id = 0;
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
