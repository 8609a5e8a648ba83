// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPanel: sends messages, receives and saves replies, also of chats that are not shown.
#include <algorithm>

#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {

Turn ChatPanel::newTurn(Turn::Role role) const {
    Turn turn;
    turn.role = role;
    turn.sessionTime = m_source ? m_source->sessionTime(monotonicNs()) : 0;
    turn.wallMs = QDateTime::currentMSecsSinceEpoch();
    turn.session = m_session;
    turn.live = true;
    return turn;
}

void ChatPanel::send(const QString& text) {
    if (!m_source || m_reply || text.trimmed().isEmpty()) return;
    if (m_composer->text().trimmed() == text) {
        countDraft();  // the timer may not have counted the last keys yet
        if (!m_composer->sendButton()->isEnabled()) return;  // the composer shows the reason
        m_composer->clear();
        countDraft();
    }
    Turn turn = newTurn(Turn::Role::User);
    turn.text = text;
    const QVector<int> path = m_chat.path();
    reply(m_chat.append(path.isEmpty() ? -1 : path.last(), turn));
}

nlohmann::ordered_json ChatPanel::messagesUpTo(int userTurn) const {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    if (!m_chat.system.trimmed().isEmpty())
        messages.push_back({{"role", "system"}, {"content", m_chat.system.toStdString()}});
    for (const int index : m_chat.path()) {
        const Turn& turn = m_chat.turns[index];
        const bool user = turn.role == Turn::Role::User;
        QString text = turn.text;
        if (!user) text = text.mid(splitReply(turn).answerFrom);  // reasoning is not repeated
        messages.push_back(
            {{"role", user ? "user" : "assistant"}, {"content", text.toStdString()}});
        if (index == userTurn) break;
    }
    return messages;
}

void ChatPanel::reply(int userTurn) {
    if (!m_source || !m_source->model()) return;
    if (m_chat.title.isEmpty()) m_chat.title = m_chat.suggestTitle();
    Turn turn = newTurn(Turn::Role::Model);
    turn.model = m_source->model()->name;
    turn.figures.from = turn.sessionTime;
    start(m_chat.append(userTurn, turn), userTurn, {});
}

void ChatPanel::continueReply(int index) {
    if (m_reply || !m_source || !m_source->model() || index >= m_chat.turns.size()) return;
    Turn& turn = m_chat.turns[index];
    if (turn.role != Turn::Role::Model || turn.parent < 0) return;
    turn.error.clear();
    turn.figures.stop.clear();
    start(index, turn.parent, turn.text.toStdString());
}

void ChatPanel::start(int index, int userTurn, const std::string& soFar) {
    Turn& turn = m_chat.turns[index];
    const int branch = std::max(0, int(m_chat.turns[userTurn].children.indexOf(index)));
    Sampling sampling = m_settings.drawn();
    sampling.seed += uint64_t(branch);  // each branch draws other tokens
    turn.figures.drawn = sampling.temperature > 0 ? QString("seed %1").arg(sampling.seed)
                                                  : QString("greedy sampling, no seed");
    ChatSettings used = m_settings;
    used.sampling = sampling;
    used.randomSeed = false;
    turn.figures.sampling = used.summary();
    turn.figures.limit = m_settings.maxTokens;
    ChatRequest request;
    request.messages = messagesUpTo(userTurn);
    request.sampling = sampling;
    request.maxTokens = m_settings.maxTokens;
    request.overflow = m_settings.overflow;
    request.replySoFar = soFar;
    for (const QString& stop : m_settings.stops) request.stops.push_back(stop.toStdString());
    request.chat = chatOptions();
    const auto snapshot = m_source->snapshot();
    m_viewState->follow();
    m_reply.emplace(m_source->startChat(std::move(request)), index, turn,
                    snapshot ? snapshot->store.bytesRead : 0);
    m_chat.changed = QDateTime::currentDateTime();
    m_seenTokens = 0;
    m_composer->setGenerating(true);
    m_view->show(m_chat, index);
    m_view->scrollToBottom();
    refreshHead();
    refreshMeter();
    save();
    emit currentChanged(m_chat.id);
    emit generatingChanged(true);
    emit repliesChanged(replying());
}

void ChatPanel::stop() {
    if (m_reply && m_source) m_source->cancelChat(m_reply->run());
}

void ChatPanel::regenerate(int turn) {
    if (m_reply) return;
    const QVector<int> path = m_chat.path();
    if (turn < 0)
        for (const int index : path)
            if (m_chat.turns[index].role == Turn::Role::Model) turn = index;
    if (turn < 0) return;
    reply(m_chat.turns[turn].parent);
}

// ---- running replies

void ChatPanel::tick(const std::shared_ptr<const Snapshot>& newest) {
    tickBackground(newest.get());
    if (!m_reply) return;
    const Reply::Step step = m_reply->advance(&m_chat, m_source, newest.get());
    if (step.ended) return finish(step.failed);
    if (m_reply->saveDue()) m_store->saveReply(m_chat, m_reply->turn());
    const Turn& turn = m_chat.turns[m_reply->turn()];
    const bool prompt = turn.tokens.isEmpty();
    if (!prompt && !step.grew) return;
    const QString progress = step.promptTotal > 0
                                 ? QString("Reading the prompt, %1 of %2 tokens")
                                       .arg(count(step.promptDone), count(step.promptTotal))
                                 : QString();
    m_view->update(m_chat, m_reply->turn(),
                   prompt ? ModelTurn::State::Prompt : ModelTurn::State::Generating, progress);
    refreshMeter();
    refreshPill();
}

void ChatPanel::tickBackground(const Snapshot* snapshot) {
    const size_t before = m_background.size();
    std::erase_if(m_background, [&](Background& other) {
        const bool ended = other.reply.advance(&other.chat, m_source, snapshot).ended;
        if (ended) other.chat.changed = QDateTime::currentDateTime();
        if (ended)
            m_store->save(other.chat);
        else if (other.reply.saveDue())
            m_store->saveReply(other.chat, other.reply.turn());
        return ended;
    });
    if (m_background.size() != before) emit repliesChanged(replying());
}

void ChatPanel::finish(bool failed) {
    const int index = m_reply->turn();
    m_reply.reset();
    m_composer->setGenerating(false);
    m_view->update(m_chat, index, ModelTurn::State::Done, {});
    refreshMeter();
    refreshPill();
    m_chat.changed = QDateTime::currentDateTime();
    save();
    emit generatingChanged(false);
    emit repliesChanged(replying());
    if (failed) emit replyFailed(m_chat.turns[index].error);
}

void ChatPanel::moveToBackground() {
    if (!m_reply) return;
    m_background.push_back({std::move(m_chat), std::move(*m_reply)});
    m_reply.reset();
    m_chat = Conversation::create();
}

QSet<QString> ChatPanel::replying() const {
    QSet<QString> ids;
    if (m_reply) ids << m_chat.id;
    for (const Background& other : m_background) ids << other.chat.id;
    return ids;
}

void ChatPanel::dropReply(const QString& id) {
    if (id == m_chat.id && m_reply) {
        stop();
        m_reply.reset();
    }
    std::erase_if(m_background, [&](const Background& other) {
        if (other.chat.id == id && m_source) m_source->cancelChat(other.reply.run());
        return other.chat.id == id;
    });
    emit repliesChanged(replying());
}

void ChatPanel::endReplies() {
    if (m_reply) {
        const int index = m_reply->turn();
        stop();
        m_reply->interrupt(&m_chat, m_source);
        m_reply.reset();
        m_composer->setGenerating(false);
        m_view->update(m_chat, index, ModelTurn::State::Done, {});
        save();
    }
    for (Background& other : m_background) {
        if (m_source) m_source->cancelChat(other.reply.run());
        other.reply.interrupt(&other.chat, m_source);
        m_store->save(other.chat);
    }
    m_background.clear();
}

void ChatPanel::save() {
    m_store->save(m_chat);
}

}  // namespace colibri::ui
