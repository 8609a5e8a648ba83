// SPDX-License-Identifier: GPL-3.0-or-later
// The list of conversations: search, open, rename, delete. A panel of its own in a wide window,
// a popover elsewhere.
#pragma once

#include <QAbstractScrollArea>
#include <QLineEdit>
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

signals:
    void openWanted(const QString& id);
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
    int m_hover = -1, m_focus = 0;
};

class ChatList : public QWidget {
    Q_OBJECT

public:
    ChatList(ChatStore* store, QWidget* parent = nullptr);
    void setCurrent(const QString& id);
    QLineEdit* search() const { return m_search; }
    ChatRows* rows() const { return m_rows; }

signals:
    void openWanted(const QString& id);
    void newWanted();
    void exportWanted();
    void renameWanted(const QString& id);
    void deleteWanted(const QString& id);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    void refresh();

    ChatStore* m_store;
    QString m_current;
    QLineEdit* m_search;
    ChatRows* m_rows;
};

}  // namespace colibri::ui
