// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/session_source.h"

namespace colibri::ui {

ChatRun::Update ChatRun::take() {
    const std::lock_guard lock(m_mutex);
    Update update = std::move(m_update);
    m_update = {};
    m_update.promptDone = update.promptDone;
    m_update.promptTotal = update.promptTotal;
    m_update.inReasoning = update.inReasoning;
    m_update.leftOut = update.leftOut;
    return update;
}

void ChatRun::beginInReasoning() {
    const std::lock_guard lock(m_mutex);
    m_update.inReasoning = true;
}

void ChatRun::addToken(const GeneratedToken& token) {
    const std::lock_guard lock(m_mutex);
    m_update.tokens.push_back(token);
}

void ChatRun::setPrompt(uint32_t done, uint32_t total) {
    const std::lock_guard lock(m_mutex);
    m_update.promptDone = done;
    m_update.promptTotal = total;
}

void ChatRun::setLeftOut(int messages) {
    const std::lock_guard lock(m_mutex);
    m_update.leftOut = messages;
}

void ChatRun::finish(RequestResult result) {
    const std::lock_guard lock(m_mutex);
    m_update.result = std::move(result);
}

void ChatRun::fail(const Status& status, StopReason stop) {
    RequestResult result;
    result.status = status;
    result.stop = stop;
    finish(std::move(result));
}

}  // namespace colibri::ui
