// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPanel: context meter, slow tokens, the token under the pointer.
#include <QScrollBar>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr qsizetype kCountedDraft = 60'000;  // characters; longer drafts are not counted completely

}  // namespace

// ---- the context

// The context that the last reply of this model used, and the tokens written since. Another model
// counts differently, so then the whole text is counted.
void ChatPanel::refreshMeter() {
    m_used = 0;
    QString since;
    for (const int index : m_chat.path()) {
        const Turn& turn = m_chat.turns[index];
        const bool running = m_reply && index == m_reply->turn();
        const bool counted = turn.role == Turn::Role::Model && turn.figures.promptTokens > 0 &&
                             (turn.figures.tokens > 0 || running) && m_source &&
                             turn.model == m_source->model()->name;
        if (counted) {
            m_used = turn.figures.promptTokens + turn.figures.tokens;
            since.clear();
        } else if (!running) {
            since += turn.text + "\n";
        }
    }
    if (m_source && !m_reply && !since.isEmpty())
        m_used += std::max(0, m_source->countTokens(since));
    showContext();
}

void ChatPanel::countDraft() {
    m_draftTimer.stop();
    const QString text = m_composer->text().trimmed();
    m_draft = m_source && !text.isEmpty() ? m_source->countTokens(text) : 0;
    m_draftLonger = m_draft < 0;
    if (m_draftLonger) m_draft = m_source->countTokens(text.left(kCountedDraft));
    showContext();
}

// Warns before a message is sent that would not fit, and prevents sending it.
void ChatPanel::showContext() {
    const int limit = m_source ? int(m_source->model()->contextLength) : 0;
    const int draft = std::max(0, m_draft);
    m_composer->setContext(m_used + draft, draft, limit);
    const int system = m_source && !m_chat.system.isEmpty()
                           ? std::max(0, m_source->countTokens(m_chat.system))
                           : 0;
    const QString of = " of " + count(limit) + ".";
    if (limit <= 0 || draft == 0) {
        m_composer->setNotice({}, false);
    } else if (draft + system >= limit) {
        m_composer->setNotice(QString("This message alone needs %1%2 tokens")
                                      .arg(m_draftLonger ? "more than " : "", count(draft)) +
                                  of +
                                  " Shorten it, or load the model with a larger context length.",
                              true);
    } else if (m_used + draft < limit) {
        m_composer->setNotice(
            m_draftLonger
                ? QString("Only the first %1 tokens of this message are counted.").arg(count(draft))
                : QString(),
            false);
    } else if (m_settings.overflow == Overflow::Stop) {
        m_composer->setNotice(
            QString("With this message the chat needs %1 tokens").arg(count(m_used + draft)) + of +
                " See Sampling for what happens then.",
            true, "New chat");
    } else {
        m_composer->setNotice(m_settings.overflow == Overflow::DropOldest
                                  ? "The context is full: the oldest turns will be omitted."
                                  : "The context is full: turns after the first will be omitted.",
                              false);
    }
}

// ---- tokens

void ChatPanel::refreshPill() {
    const bool bottom = m_view->atBottom();
    const int tokens = m_reply ? int(m_chat.turns[m_reply->turn()].tokens.size()) : 0;
    if (bottom || m_chat.isEmpty()) {
        m_seenTokens = tokens;
        m_pill->hide();
        m_readout->setInset(0);
        return;
    }
    const int below = m_reply ? tokens - m_seenTokens : 0;
    // The button is in the readout line or in the foot of the composer, so that it covers no text.
    const bool small = m_windowClass == WindowClass::Small;
    m_pill->setText(below > 0 && !small ? QString("Newest, %1 tokens below").arg(count(below))
                                        : QString("Newest"));
    const QSize size = m_pill->sizeHint();
    if (small) {
        m_pill->setGeometry(
            QRect(m_composer->mapTo(this, QPoint(9, m_composer->height() - 31)), size));
    } else {
        m_pill->setGeometry(QRect(QPoint(width() - 8 - size.width(), m_readout->y() + 3), size));
        m_readout->setInset(size.width() + 8);
    }
    m_pill->show();
    m_pill->raise();
}

void ChatPanel::hover(int turn, int token) {
    if (token < 0) {  // the readout line stays, the cursor in the plots disappears
        m_viewState->setCursor(std::numeric_limits<double>::quiet_NaN());
        return;
    }
    if (turn >= m_chat.turns.size()) return;
    const Turn& source = m_chat.turns[turn];
    if (token >= source.tokens.size()) return;
    m_readout->setContent(tokenReadout(source, token, m_viewState->sloMs()));
    const double t = source.tokens[token].t;
    m_viewState->setCursor(source.live ? t : std::numeric_limits<double>::quiet_NaN());
}

// The limit is the SLO. See ModelTurn for replies that are slower as a whole.
void ChatPanel::refreshSlow() {
    m_view->setSloMs(m_viewState->sloMs());
    m_readout->setSloMs(m_viewState->sloMs());
}

void ChatPanel::jump(int turn) {
    const TurnFigures& f = m_chat.turns[turn].figures;
    if (!std::isfinite(f.from)) return;
    const double to = std::isfinite(f.to) ? f.to : m_viewState->now();
    const double margin = std::max(0.5, (to - f.from) * 0.05);
    m_viewState->setRange(f.from - margin, to + margin);
}

}  // namespace colibri::ui
