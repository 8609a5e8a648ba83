// SPDX-License-Identifier: GPL-3.0-or-later
// The chat panel: head, conversation, readout line, composer. tick() takes new tokens from the
// ChatRun of each running reply; every message is saved when it is complete, and a running reply
// every second or two. A reply continues, and is saved, while another chat is shown. GUI thread
// only.
#pragma once

#include <QSet>
#include <QTimer>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "app/workbench/backend/snapshot_view.h"
#include "app/workbench/chat/chat_store.h"
#include "app/workbench/chat/chat_templates.h"
#include "app/workbench/chat/chat_view.h"
#include "app/workbench/chat/composer.h"
#include "app/workbench/chat/reply.h"
#include "app/workbench/chat/sampling_panel.h"
#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/window_class.h"

class QLineEdit;

namespace colibri::ui {

class ChatHead;
class ChatList;
class FindBar;
class PromptSheet;
class Readout;

class ChatPanel : public QWidget, public SnapshotView {
    Q_OBJECT

public:
    ChatPanel(ChatStore* store, ViewState* view, QWidget* window, QWidget* parent = nullptr);
    ~ChatPanel() override;
    void setSource(SessionSource* source);
    void setWindowClass(WindowClass windowClass);
    // Performs what the list requests (open, new, duplicate, export, delete), and shows the current
    // chat and running replies in it.
    void setList(ChatList* list);
    void tick(const std::shared_ptr<const Snapshot>& newest) override;

    const Conversation& conversation() const { return m_chat; }
    void openConversation(Conversation conversation);
    void openById(const QString& id);
    bool generating() const { return m_reply.has_value(); }  // in the current chat
    QSet<QString> replying() const;  // ids of all chats with a running reply
    void endReplies();               // before the window closes: cancels replies, saves their text

    void newChat();
    void send(const QString& text);
    void stop();
    void regenerate(int turn = -1);  // -1: the last reply
    void rename(const QString& id, const QString& title);
    void deleteChat(const QString& chatId);
    void openSampling();             // or closes it
    void showPrompt();               // what the model would read now, with the draft
    QString commandOptions() const;  // sampling and system prompt as options of `colibri chat`

    ChatView* view() const { return m_view; }
    Composer* composer() const { return m_composer; }
    SamplingPanel* samplingPanel() const { return m_sampling; }
    PromptSheet* promptSheet() const { return m_prompt; }
    FindBar* findBar() const { return m_find; }
    QWidget* listButton() const;

signals:
    void currentChanged(const QString& id);         // another conversation, or a new title
    void repliesChanged(const QSet<QString>& ids);  // chats with a running reply
    void generatingChanged(bool on);
    void listWanted(QWidget* anchor);
    void renameWanted();
    void exportWanted();
    void importWanted();
    void deleted(const QString& title);
    void copied();
    void failed(const QString& what, const QString& why);
    void replyFailed(const QString& why);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    struct Background {  // a chat that is not shown
        Conversation chat;
        Reply reply;
    };

    void connectHead();
    void connectComposer();
    void connectView();
    void connectFind();
    void exportChat(const QString& id);  // opens it and emits exportWanted()
    void duplicate(const QString& id);   // opens the copy
    void continueReply(int turn);        // appends to a reply that was cut off
    Turn newTurn(Turn::Role role) const;
    void reply(int userTurn);
    void start(int turn, int userTurn, const std::string& soFar);
    nlohmann::ordered_json messagesUpTo(int userTurn) const;
    nlohmann::ordered_json promptMessages() const;  // of the chat, with the draft
    QString renderedPrompt() const;                 // or why it is not available
    Result<std::string> renderWith(const std::shared_ptr<const ChatTemplate>& chatTemplate) const;
    ChatOptions chatOptions() const;
    bool continuesText() const;  // a base model without a template: it continues the text
    bool isReusable() const;     // the current chat is new and empty
    void tickBackground(const Snapshot* snapshot);
    void finish(bool failed);
    void moveToBackground();  // the current chat with its running reply
    void dropReply(const QString& id);
    void save();
    void switchBranch(int turn, int step);
    void refreshHead();
    void refreshMeter();  // the chat changed
    void countDraft();    // the draft changed
    void showContext();
    void refreshSlow();
    void beginSession(const QString& model);
    void refreshPill();
    void refreshAvailability();
    void hover(int turn, int token);
    void jump(int turn);
    void showMenu(QWidget* anchor);

    ChatStore* m_store;
    ViewState* m_viewState;
    SessionSource* m_source = nullptr;
    Conversation m_chat;
    ChatSettings m_settings;

    ChatHead* m_head;
    FindBar* m_find;
    ChatView* m_view;
    Readout* m_readout;
    Composer* m_composer;
    SamplingPanel* m_sampling;
    PromptSheet* m_prompt;
    ChatTemplates* m_templates;
    Button* m_pill;  // "Newest": scrolls to the end
    WindowClass m_windowClass = WindowClass::Normal;
    QString m_modelName;  // of the last loaded model

    QString m_session;  // id of the running session; marks live turns

    std::optional<Reply> m_reply;  // running, of m_chat
    std::vector<Background> m_background;
    int m_seenTokens = 0;
    int m_used = 0, m_draft = 0;  // tokens of the context: the chat, the draft
    bool m_draftLonger = false;   // only the beginning of the draft was counted
    QTimer m_draftTimer;
};

}  // namespace colibri::ui
