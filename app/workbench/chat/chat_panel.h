// SPDX-License-Identifier: GPL-3.0-or-later
// The chat: head, conversation, readout line, composer; and what happens between them. Replies are
// taken from their ChatRun by tick(), on the window's timer; each message is saved as it comes. A
// reply goes on, and is saved, while another chat is shown.
#pragma once

#include <QSet>
#include <QTimer>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "app/workbench/chat/chat_store.h"
#include "app/workbench/chat/chat_view.h"
#include "app/workbench/chat/composer.h"
#include "app/workbench/chat/reply.h"
#include "app/workbench/chat/sampling_panel.h"
#include "app/workbench/chat/template_choice.h"
#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/window_class.h"

class QLineEdit;

namespace colibri::ui {

class ChatHead;
class FindBar;
class PromptSheet;
class Readout;
class TemplateSheet;

class ChatPanel : public QWidget {
    Q_OBJECT

public:
    ChatPanel(ChatStore* store, ViewState* view, QWidget* window, QWidget* parent = nullptr);
    ~ChatPanel() override;
    void setSource(SessionSource* source);
    void setWindowClass(WindowClass windowClass);
    void tick(const std::shared_ptr<const Snapshot>& snapshot);

    const Conversation& conversation() const { return m_chat; }
    void openConversation(Conversation conversation);
    void openById(const QString& id);
    bool generating() const { return m_reply.has_value(); }  // in the chat that is shown
    bool busy() const { return m_reply || !m_background.empty(); }
    QSet<QString> replying() const;  // ids of all chats with a reply on its way
    void endReplies();               // before the window goes: keeps what came, saved
    bool reusable() const;           // an empty new chat is shown already

    void newChat();
    void send(const QString& text);
    void stop();
    void regenerate(int turn = -1);  // -1: the last reply
    void continueReply(int turn);    // goes on where it ended
    void editLast();
    void rename(const QString& title);
    void rename(const QString& id, const QString& title);
    void deleteCurrent();
    void deleteChat(QString id);
    void duplicate(const QString& id);   // a copy of a chat, which is then shown
    void exportChat(const QString& id);  // shows it, and exportWanted() follows
    void openFind();
    void editSystemPrompt();
    void openSampling();
    QString commandOptions() const;  // sampling and system prompt, for colibri chat
    bool exportTo(const QString& path, QString* error) const;  // .md or .json
    bool importFrom(const QString& path, QString* error);
    // What the model would read now, with the draft; the reason where that is not known.
    QString renderedPrompt() const;
    void showPrompt();
    bool promptShown() const;

    // The chat template: one of TemplateChoice::all, or behind the last the sheet that edits one.
    void chooseTemplate(int index);
    void editTemplate();
    TemplateSheet* templateSheet() const { return m_templateSheet; }
    const TemplateChoice& templateChoice() const { return m_choice; }

    ChatView* view() const { return m_view; }
    Composer* composer() const { return m_composer; }
    SamplingPanel* samplingPanel() const { return m_sampling; }
    Readout* readout() const { return m_readout; }
    FindBar* findBar() const { return m_find; }
    QWidget* listButton() const;

signals:
    void currentChanged(const QString& id);         // another conversation, or a new title
    void repliesChanged(const QSet<QString>& ids);  // chats with a reply on its way
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

    void connectParts();
    void connectFind();
    Turn newTurn(Turn::Role role) const;
    void reply(int userTurn);
    void start(int turn, int userTurn, const std::string& soFar);
    nlohmann::ordered_json messagesUpTo(int userTurn) const;
    nlohmann::ordered_json promptMessages() const;  // of the chat, with the draft
    ChatOptions chatOptions() const;
    bool continuesText() const;  // no chat: a base model without a template
    void loadTemplate();         // as the settings have it for this model
    void useTemplate(const TemplateChoice& choice);
    void showTemplates();
    void applyEdited(const QString& text);
    void tickBackground(const Snapshot* snapshot);
    void finish(bool failed);
    void park();  // the reply of this chat goes on unseen
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
    TemplateSheet* m_templateSheet;
    TemplateChoice m_choice;
    std::shared_ptr<const ChatTemplate> m_template;  // nullptr: the model's own
    Button* m_pill;
    WindowClass m_windowClass = WindowClass::Normal;
    QString m_modelName;  // of the last model that was loaded

    QString m_session;  // of the model that is loaded; marks live turns

    std::optional<Reply> m_reply;  // on its way into m_chat
    std::vector<Background> m_background;
    int m_seenTokens = 0;
    int m_used = 0, m_draft = 0;  // tokens of the context: the chat, the draft
    bool m_draftLonger = false;   // only its beginning is counted
    QTimer m_draftTimer;
};

}  // namespace colibri::ui
