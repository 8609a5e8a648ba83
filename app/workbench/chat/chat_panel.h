// SPDX-License-Identifier: GPL-3.0-or-later
// The chat: head, conversation, readout line, composer; and what happens between them. Replies are
// taken from their ChatRun by tick(), on the window's timer; each message is saved as it comes.
#pragma once

#include <QElapsedTimer>
#include <QWidget>
#include <memory>

#include "app/workbench/chat/chat_store.h"
#include "app/workbench/chat/chat_view.h"
#include "app/workbench/chat/composer.h"
#include "app/workbench/chat/sampling_panel.h"
#include "app/workbench/session/view_state.h"

class QLineEdit;

namespace colibri::ui {

class ChatHead;
class FindBar;
class Readout;

class ChatPanel : public QWidget {
    Q_OBJECT

public:
    enum class Density { Small, Normal, Large };

    ChatPanel(ChatStore* store, ViewState* view, QWidget* window, QWidget* parent = nullptr);
    ~ChatPanel() override;
    void setSource(SessionSource* source);
    void setDensity(Density density);
    void tick(const std::shared_ptr<const Snapshot>& snapshot);

    const Conversation& conversation() const { return m_chat; }
    void openConversation(Conversation conversation);
    void openById(const QString& id);
    bool generating() const { return m_run != nullptr; }
    bool reusable() const;                        // an empty new chat is shown already

    void newChat();
    void send(const QString& text);
    void stop();
    void regenerate(int turn = -1);               // -1: the last reply
    void editLast();
    void rename(const QString& title);
    void deleteCurrent();
    void openFind();
    void editSystemPrompt();
    void openSampling();
    QString commandOptions() const;               // sampling and system prompt, for colibri chat
    bool exportTo(const QString& path, QString* error) const;   // .md or .json
    bool importFrom(const QString& path, QString* error);

    ChatView* view() const { return m_view; }
    Composer* composer() const { return m_composer; }
    SamplingPanel* samplingPanel() const { return m_sampling; }
    Readout* readout() const { return m_readout; }
    FindBar* findBar() const { return m_find; }
    QWidget* listButton() const;

signals:
    void currentChanged(const QString& id);       // another conversation, or a new title
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
    void reply(int userTurn);
    nlohmann::ordered_json messagesUpTo(int userTurn) const;
    void apply(const ChatRun::Update& update, const Snapshot* snapshot);
    void finish(const RequestResult& result);
    void save();
    void saveWhileStreaming();
    void refreshHead();
    void refreshMeter();
    void refreshSlow();
    void beginSession(const QString& model);
    QString contextFullText() const;
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
    Button* m_pill;
    Density m_density = Density::Normal;
    QString m_modelName;                          // of the last model that was loaded

    std::shared_ptr<ChatRun> m_run;
    int m_running = -1;                           // index of the turn being generated
    uint64_t m_startNs = 0, m_lookups = 0, m_hits = 0, m_bytesAtStart = 0;
    double m_gapSumMs = 0;
    double m_slowMs = 0, m_slowSlo = 0;                 // tokens with a longer gap are marked
    int m_promptTotal = 0, m_seenTokens = 0;
    QElapsedTimer m_saved;
    bool m_unsaved = false;                       // tokens since then
};

}  // namespace colibri::ui
