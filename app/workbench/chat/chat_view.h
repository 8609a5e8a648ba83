// SPDX-License-Identifier: GPL-3.0-or-later
// The scrolling conversation: turns stacked from the bottom, following the newest text only while
// the reader is at the bottom, with find.
#pragma once

#include <QScrollArea>
#include <vector>

#include "app/workbench/chat/turn_widgets.h"

namespace colibri::ui {

class SystemFold;

class ChatView : public QScrollArea {
    Q_OBJECT

public:
    explicit ChatView(QWidget* parent = nullptr);

    void setCompact(bool on);
    void setPadding(int left, int top);
    void setSloMs(double ms);  // tokens with a longer gap are underlined
    void reset();              // forgets what is shown; show() makes it anew
    // Rebuilds the turns of the active branch. `running` is drawn as generating.
    void show(const Conversation& conversation, int running);
    // The running turn grew.
    void update(const Conversation& conversation, int turn, ModelTurn::State state,
                const QString& progress);
    ModelTurn* modelTurn(int turn) const;
    UserTurn* userTurn(int turn) const;
    const std::vector<TurnWidget*>& turns() const { return m_turns; }
    SystemFold* systemFold() const { return m_system; }
    bool atBottom() const;
    // The height at which a turn stands in the window, and how to bring another one there.
    int placeOf(int turn) const;
    void restorePlace(int turn, int place);
    void scrollToBottom();
    int find(const QString& needle);  // number of matches
    void showMatch(int index);
    // `action`: the label of a button under it; "" none.
    void setEmptyText(const QString& title, const QString& line, const QString& action = {});

signals:
    void emptyActionWanted();
    void editWanted(int turn, const QString& text);
    void regenerateWanted(int turn);
    void continueWanted(int turn);
    void linkWanted(const QString& address);
    void newChatWanted();
    void branchWanted(int turn, int step);
    void jumpWanted(int turn);
    void tokenHovered(int turn, int token);
    void copied();
    void scrolled();
    void systemChanged(const QString& text);

protected:
    void resizeEvent(QResizeEvent*) override;
    void paintEvent(QPaintEvent*) override;

private:
    void layoutTurns();
    bool layoutLast();  // false: others move too
    int textWidth() const;
    TurnWidget* widgetOf(int turn) const;
    TurnWidget* make(const Conversation& conversation, int index, bool running);

    QWidget* m_content;
    SystemFold* m_system;
    std::vector<TurnWidget*> m_turns;
    std::vector<int> m_matches;  // per turn widget
    bool m_compact = false, m_following = true, m_laying = false;
    int m_left = 16, m_top = 12;
    double m_sloMs = 40;
    QString m_shownId;  // of the conversation shown
    void placeEmptyAction();

    QString m_emptyTitle, m_emptyLine;
    Button* m_emptyAction;
};

// "System prompt  41 tokens", folded; open: the text, editable.
class SystemFold : public QWidget {
    Q_OBJECT

public:
    explicit SystemFold(QWidget* parent);
    void setText(const QString& text);
    void setTokens(int tokens);  // -1: unknown
    void setOpen(bool on);
    bool isOpen() const { return m_open; }
    int layoutFor(int width);
    bool shown() const { return m_open || !m_text.isEmpty(); }
    QPlainTextEdit* editor() const { return m_editor; }

signals:
    void changed(const QString& text);
    void heightChanged();

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    QString m_text;
    QPlainTextEdit* m_editor;
    int m_tokens = -1;
    bool m_open = false;
};

}  // namespace colibri::ui
