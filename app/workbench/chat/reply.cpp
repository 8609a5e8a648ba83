// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/reply.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr qint64 kSaveEveryMs = 1500;  // a killed program loses at most so much

}  // namespace

QString contextFullText(const SessionSource& source, int64_t needed) {
    const auto tokens = [](int64_t n) { return count(n) + " tokens"; };
    const int64_t length = source.model() ? source.model()->contextLength : 0;
    const int64_t most = source.knobLimits(KnobId::ContextLength).max;
    const QString text = needed > length ? "This chat fills the context: it needs " +
                                               tokens(needed) + " of " + count(length)
                                         : "This chat fills the context of " + tokens(length);
    return most > length ? text + "; the model can hold " + tokens(most) +
                               ". Load it with a larger context length, or start a new chat."
                         : text + ", the model's maximum. Start a new chat.";
}

Reply::Reply(std::shared_ptr<ChatRun> run, int turn, const Turn& before, uint64_t bytesRead)
    : m_run(std::move(run)),
      m_turn(turn),
      m_textBefore(before.text),
      m_tokensBefore(int(before.tokens.size())),
      m_startNs(monotonicNs()),
      m_bytesAtStart(bytesRead),
      m_bytesBefore(std::isfinite(before.figures.bytesRead) ? before.figures.bytesRead : 0) {}

Reply::Step Reply::advance(Conversation* chat, const SessionSource* source,
                           const Snapshot* snapshot) {
    const ChatRun::Update update = m_run->take();
    Turn* turn = &chat->turns[m_turn];
    if (update.promptTotal > 0) m_promptTotal = update.promptTotal;
    add(turn, update, source, snapshot);
    Step step{!update.tokens.empty(), false, false, update.promptDone, update.promptTotal};
    if (!update.result) return step;
    end(turn, *update.result, source);
    step.ended = true;
    step.failed = !turn->error.isEmpty() && !update.result->status.ok();
    return step;
}

void Reply::add(Turn* turn, const ChatRun::Update& update, const SessionSource* source,
                const Snapshot* snapshot) {
    TurnFigures& f = turn->figures;
    const bool continues = m_tokensBefore > 0;
    if (!continues) {
        f.promptTokens = int(m_promptTotal);
        turn->inReasoning = update.inReasoning;
    }
    f.leftOut = std::max(f.leftOut, update.leftOut);
    for (const GeneratedToken& token : update.tokens) {
        turn->text += exactText(token.text);
        TokenMark mark;
        mark.end = int(turn->text.size());
        mark.gapMs = float(double(token.gapNs) / 1e6);
        mark.stallMs = float(double(token.stallNs) / 1e6);
        mark.waitMs = float(double(token.worstWaitNs) / 1e6);
        mark.t = source ? source->sessionTime(token.timeNs) : 0;
        if (token.worstWaitNs > 0) {
            mark.layer = token.worstLayer;
            mark.expert = token.worstExpert;
        }
        if (turn->tokens.isEmpty() && token.timeNs > m_startNs)
            f.ttftMs = double(token.timeNs - m_startNs) / 1e6;
        turn->tokens << mark;
        m_gapSumMs += mark.gapMs;
        m_lookups += token.lookups;
        m_hits += token.hits;
    }
    if (update.tokens.empty()) return;
    const int made = int(turn->tokens.size()) - m_tokensBefore;
    f.tokens = int(turn->tokens.size());
    if (made > 1 && m_gapSumMs > 0) f.tokS = (made - 1) / m_gapSumMs * 1000;
    if (m_lookups > 0) f.hitRate = double(m_hits) / double(m_lookups) * 100;
    if (snapshot && snapshot->store.bytesRead >= m_bytesAtStart)
        f.bytesRead = m_bytesBefore + double(snapshot->store.bytesRead - m_bytesAtStart);
    f.to = turn->tokens.last().t;
    m_unsaved = true;
}

void Reply::end(Turn* turn, const RequestResult& result, const SessionSource* source) {
    TurnFigures& f = turn->figures;
    const bool failed = !result.status.ok(), continues = m_tokensBefore > 0;
    if (!failed) {
        // A stop string is removed from the text, so tokens may end beyond it.
        const QString text = m_textBefore + exactText(result.text);
        if (text.size() > m_textBefore.size() && text.size() <= turn->text.size())
            turn->text = text;
        for (TokenMark& mark : turn->tokens) mark.end = std::min(mark.end, int(turn->text.size()));
        f.tokens = m_tokensBefore + int(result.tokens.size());
        if (!continues) {
            f.promptTokens = int(result.promptTokens);
            f.cachedTokens = int(result.cachedTokens);
            f.ttftMs = result.ttftMs;
            f.promptTokS = result.promptTokS > 0 ? result.promptTokS : TurnFigures::kUnknown;
        }
        if (result.decodeTokS > 0) f.tokS = result.decodeTokS;
        if (result.experts.lookups > 0)
            f.hitRate = double(result.experts.hits) / double(result.experts.lookups) * 100;
        f.bytesRead = m_bytesBefore + double(result.experts.bytesRead);
    } else if (result.stop != StopReason::Cancelled) {
        turn->error = str(result.status.text());
    }
    const bool full = result.stop == StopReason::ContextFull;
    if (full)
        turn->error =
            source ? contextFullText(*source, m_promptTotal) : QString("The context is full.");
    f.stop = failed && result.stop != StopReason::Cancelled && !full
                 ? QString("error")
                 : QString(stopReasonName(result.stop));
    if (source) f.to = source->sessionTime(monotonicNs());
}

void Reply::interrupt(Conversation* chat, const SessionSource* source) {
    m_run->cancel();
    if (advance(chat, source, nullptr).ended) return;
    chat->turns[m_turn].figures.stop = kInterrupted;
}

bool Reply::saveDue() {
    if (!m_unsaved || (m_saved.isValid() && m_saved.elapsed() < kSaveEveryMs)) return false;
    m_unsaved = false;
    m_saved.start();
    return true;
}

}  // namespace colibri::ui
