// SPDX-License-Identifier: GPL-3.0-or-later
// The list of conversations: search, open, rename, delete. A panel in a large window, a popover
// otherwise. GUI thread only.
#pragma once

#include <QAbstractScrollArea>
#include <QLineEdit>
#include <QSet>
#include <QWidget>

#include "app/workbench/chat/chat_store.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

class ChatRows : public QAbstractScrollArea {
    Q_OBJECT

public:
    explicit ChatRows(QWidget* parent = nullptr);
    void setRows(const QVector<ChatSummary>& rows, const QString& current);
    const QVector<ChatSummary>& rows() const { return m_rows; }
    int contentHeight() const;
    void setReplying(const QSet<QString>& ids);  // with a running reply
    void setMarked(bool on);                     // draws a frame around the row that Enter opens
    void openMarked();                           // opens that row
    void restart();                              // marks the first row

signals:
    void openWanted(const QString& id);
    void exportWanted(const QString& id);
    void duplicateWanted(const QString& id);
    void leftAtTop();  // Up in the first row
    void renameWanted(const QString& id);
    void deleteWanted(const QString& id);

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseMoveEvent(QMouseEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void contextMenuEvent(QContextMenuEvent*) override;
    void resizeEvent(QResizeEvent*) override { updateScroll(); }
    void focusInEvent(QFocusEvent*) override { viewport()->update(); }
    void focusOutEvent(QFocusEvent*) override { viewport()->update(); }

private:
    int rowAt(int y) const;
    void updateScroll();
    void menuFor(int row, const QPoint& at);

    QVector<ChatSummary> m_rows;
    QString m_current;
    QSet<QString> m_replying;
    int m_hover = -1, m_focus = 0;
    bool m_marked = false;
};

class ChatList : public QWidget {
    Q_OBJECT

public:
    ChatList(ChatStore* store, QWidget* parent = nullptr);
    void setCurrent(const QString& id);
    void setReplying(const QSet<QString>& ids) { m_rows->setReplying(ids); }
    void beginSearch();  // shows all chats and moves the focus to the field
    QLineEdit* search() const { return m_search; }
    ChatRows* rows() const { return m_rows; }

signals:
    void openWanted(const QString& id);
    void newWanted();
    void exportWanted();  // the current chat
    void exportChatWanted(const QString& id);
    void duplicateWanted(const QString& id);
    void renameWanted(const QString& id);
    void deleteWanted(const QString& id);

protected:
    void paintEvent(QPaintEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    void refresh();

    ChatStore* m_store;
    QString m_current;
    QLineEdit* m_search;
    ChatRows* m_rows;
};

}  // namespace colibri::ui
