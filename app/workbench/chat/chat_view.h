// SPDX-License-Identifier: GPL-3.0-or-later
// The scrolling conversation. Turns are stacked from the bottom; the view follows new text only
// while it is scrolled to the end. Also searches the text.
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
    // The turns are those of a recorded session: nothing can be changed.
    void setRecorded(bool on) { m_recorded = on; }
    // Scrolls so that this part of a turn is visible, if it is not.
    void reveal(TurnWidget* turn, const QRect& part);
    void setSloMs(double ms);  // tokens with a longer gap are underlined
    void reset();              // the next show() creates all widgets again
    // Shows the turns of the active branch. Turn `running` (-1: none) is drawn as generating.
    void show(const Conversation& conversation, int running);
    // The running turn grew.
    void update(const Conversation& conversation, int turn, ModelTurn::State state,
                const QString& progress);
    ModelTurn* modelTurn(int turn) const;
    UserTurn* userTurn(int turn) const;
    const std::vector<TurnWidget*>& turns() const { return m_turns; }
    SystemFold* systemFold() const { return m_system; }
    bool atBottom() const;
    // px from the top of the view to a turn, and scrolling a turn to such an offset.
    int offsetOf(int turn) const;
    void scrollTurnTo(int turn, int offset);
    void scrollToBottom();
    void editLast();                  // the last message of the user
    void openSystemPrompt();          // scrolls to it
    int find(const QString& needle);  // returns the number of matches
    void showMatch(int index);
    // Shown while the chat has no turns. `action`: label of a button below; "": no button.
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
    bool layoutLast();  // false: other turns move, so all must be laid out
    void layOutEmptyAction();
    int textWidth() const;
    TurnWidget* widgetOf(int turn) const;
    TurnWidget* make(const Conversation& conversation, int index, bool running);

    QWidget* m_content;
    SystemFold* m_system;
    std::vector<TurnWidget*> m_turns;
    std::vector<int> m_matches;  // per turn widget
    bool m_recorded = false;
    bool m_compact = false, m_following = true, m_laying = false;
    int m_left = 16, m_top = 12;
    double m_sloMs = 40;
    QString m_shownId;  // of the conversation shown
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
