// SPDX-License-Identifier: GPL-3.0-or-later
// One turn of the conversation as a widget: the card of the user, or the reply of the model with
// its figures. They lay themselves out for a width and return their height, in px. GUI thread only.
#pragma once

#include <QWidget>

#include "app/workbench/chat/conversation.h"
#include "app/workbench/chat/message_edit.h"
#include "app/workbench/chat/text_flow.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

class TurnWidget : public QWidget {
    Q_OBJECT

public:
    TurnWidget(int index, QWidget* parent);
    int turnIndex() const { return m_index; }
    virtual int layoutFor(int width) = 0;  // lays out the children; returns the height
    virtual TextFlow* flow() const = 0;
    void setCompact(bool on) {
        m_compact = on;
    }                                     // small window: fewer figures, actions only on hover
    void setBranches(int at, int count);  // "2/2"
    void setLast(bool on);                // the last turn always shows its actions
    // Of a recorded session: only Copy is offered. `began`: the playhead is behind the beginning.
    void setRecorded(bool began);

signals:
    void heightChanged();
    void branchWanted(int turn, int step);
    void copied();

protected:
    void enterEvent(QEnterEvent*) override { updateActions(); }
    void leaveEvent(QEvent*) override { updateActions(); }
    virtual void updateActions() = 0;
    bool actionsShown() const;
    void layOutBranches(int right, int top);  // the right arrow ends at `right`
    void showBranches(bool on);
    void paintBranch(QPainter& p, int top) const;  // "1/2" between the arrows
    IconButton* smallButton(const QString& icon, const QString& name);

    int m_index;
    int m_branch = 0, m_branches = 1;
    bool m_compact = false, m_last = false;
    bool m_recorded = false, m_began = true;
    IconButton *m_left, *m_right;  // between branches
};

// The card of the user. A long message shows its first lines until it is unfolded.
class UserTurn : public TurnWidget {
    Q_OBJECT

public:
    UserTurn(int index, const Turn& turn, QWidget* parent);
    int layoutFor(int width) override;
    TextFlow* flow() const override { return m_flow; }
    void startEdit();
    bool editing() const { return m_editor != nullptr; }
    bool folded() const { return m_foldable && !m_open; }
    void setOpen(bool on);

signals:
    void edited(int turn, const QString& text);

protected:
    void paintEvent(QPaintEvent*) override;
    void updateActions() override;
    void keyPressEvent(QKeyEvent*) override;

private:
    void endEdit(bool send);

    QString m_text, m_time;
    TextFlow* m_flow;
    IconButton *m_edit, *m_copy;
    LinkButton* m_fold;
    bool m_foldable = false, m_open = false;
    MessageEdit* m_editor = nullptr;
    Button *m_send = nullptr, *m_cancel = nullptr;
};

// The figures of a reply: caption above value, in columns with fixed shares of the width, so that
// turns are aligned.
class TurnStrip : public QWidget {
    Q_OBJECT

public:
    explicit TurnStrip(QWidget* parent);
    // `running`: unknown figures are shown as "…", not as n/a. `jump`: the plots have this turn.
    void setFigures(const TurnFigures& figures, bool compact, bool running, bool jump);
    static constexpr int kHeight = 37;

signals:
    void jumpWanted();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    TurnFigures m_figures;
    bool m_compact = false, m_running = false;
    IconButton* m_jump;
};

class ModelTurn : public TurnWidget {
    Q_OBJECT

public:
    enum class State { Done, Prompt, Generating };

    ModelTurn(int index, const Turn& turn, QWidget* parent);
    int layoutFor(int width) override;
    TextFlow* flow() const override { return m_flow; }
    // The turn changed: new text or figures. `turn` must outlive its use by this widget.
    void refresh(const Turn& turn, State state, const QString& progress);
    // Tokens with a longer gap are underlined. If more than half of the reply is slower, only
    // tokens above 1.5 times its median are.
    void setSloMs(double ms);
    void setReasoningOpen(bool on);
    // The text that a recorded session has played: up to this offset. -1: all of it. `here`: the
    // playhead is in this turn.
    void setPlayed(int offset, bool here);
    QRect playedRect() const;  // of the playhead, in this widget; null: it is elsewhere

signals:
    void regenerateWanted(int turn);
    void continueWanted(int turn);  // continue a reply that was cut off
    void newChatWanted();           // the context is full
    void jumpWanted(int turn);
    void tokenHovered(int turn, int token);

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    void updateActions() override;

private:
    QRectF foldRect() const;
    bool contextFull() const;
    bool cutOff() const;            // it can be continued
    QVector<Span> endText() const;  // why it ended; empty for a normal end
    void markSlow();

    Turn m_turn;  // implicitly shares text and tokens with the conversation
    State m_state = State::Done;
    QString m_progress, m_time;
    ReplyParts m_parts;
    TextFlow *m_flow, *m_reasoning;
    TurnStrip* m_strip;
    IconButton *m_again, *m_copy;
    LinkButton* m_retry;
    double m_sloMs = 40;
    bool m_reasoningOpen = false, m_here = false;
    int m_foldTop = 0, m_stopTop = 0;
};

}  // namespace colibri::ui
