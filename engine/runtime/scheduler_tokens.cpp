// SPDX-License-Identifier: Apache-2.0
// From logits to a request's tokens, text and result.
#include <algorithm>

#include "engine/runtime/job.h"
#include "engine/runtime/logprobs.h"
#include "engine/runtime/scheduler.h"

namespace colibri {

void Scheduler::writeRequestEvent(EventType type, const Job& job, uint64_t timeNs) {
    Event event{};
    event.timeNs = timeNs;
    event.type = type;
    event.request = {};
    event.request.request = job.id;
    event.request.promptTokens = uint32_t(job.promptTokens());
    event.request.cachedTokens = job.result.cachedTokens;
    event.request.generated = uint32_t(job.result.tokens.size());
    event.request.stop = job.result.stop;
    event.request.preemptions = job.result.preemptions;
    event.request.recomputed = job.result.recomputedTokens;
    event.request.preemptedNs = job.preemptedNs;
    event.request.joined = job.joined;
    m_setup.ring->write(event);
}

// So that a session can be run again.
void Scheduler::writePrompt(const Job& job) {
    const std::vector<int32_t>& prompt = job.request.prompt;
    for (size_t from = 0; from < prompt.size(); from += kEventTokens) {
        Event event{};
        event.timeNs = job.arrivedNs;
        event.type = EventType::Prompt;
        event.prompt.request = job.id;
        event.prompt.first = uint32_t(from);
        event.prompt.count = uint16_t(std::min(prompt.size() - from, size_t(kEventTokens)));
        std::copy_n(prompt.begin() + std::ptrdiff_t(from), event.prompt.count, event.prompt.tokens);
        m_setup.ring->write(event);
    }
}

void Scheduler::giveLogits(Job& job) {
    const auto vocab = size_t(m_setup.info->config.vocabSize);
    for (size_t i = job.firstRow; i < job.firstRow + job.rowCount; ++i) {
        if (!m_rows[i].logits) continue;  // given before a preemption
        job.callbacks.onLogits(uint32_t(m_rows[i].position), {m_rows[i].logits, vocab});
    }
}

void Scheduler::sample(Job& job, const BatchRow& row) {
    const ModelConfig& config = m_setup.info->config;
    const std::span<const float> logits(row.logits, size_t(config.vocabSize));
    const std::vector<int32_t>& forced = job.request.forced;
    const size_t index = job.result.tokens.size();
    const std::optional<int32_t> id = job.sampler.next(
        logits, index < forced.size() ? std::optional(forced[index]) : std::nullopt);
    if (!id) {
        job.failure = Status(
            Code::Internal, "no logit at position " + std::to_string(row.position) + " is finite",
            "The model's weights are damaged: verify the model or convert it again");
        return;
    }
    GeneratedToken token = measured(job, row, *id);
    if (job.request.logprobs) {
        token.logprobs = logprobsOf(logits, *id, *job.request.logprobs);
        job.result.logprobs.push_back(token.logprobs);
    }
    record(job, token);
    emit(job, token);
}

// The token with its times and what its step did, before the job counts it.
GeneratedToken Scheduler::measured(Job& job, const BatchRow& row, int32_t id) {
    GeneratedToken token{};
    token.request = job.id;
    token.index = uint32_t(job.result.tokens.size());
    token.id = id;
    token.timeNs = monotonicNs();
    token.gapNs = job.lastTokenNs ? token.timeNs - job.lastTokenNs : 0;
    token.stallNs = m_setup.forward->moe().stallNs();
    if (job.preemptedAtNs) token.preemptedNs = token.timeNs - job.preemptedAtNs;
    token.lookups = row.lookups;
    token.hits = row.hits;
    token.worstLayer = row.worstLayer;
    token.worstExpert = row.worstExpert;
    token.worstWaitNs = row.worstWaitNs;
    return token;
}

// Into the job's figures and the events.
void Scheduler::record(Job& job, const GeneratedToken& token) {
    job.preemptedNs += token.preemptedNs;
    job.preemptedAtNs = 0;
    if (token.index == 0) {
        job.firstTokenNs = token.timeNs;
        writeRequestEvent(EventType::RequestFirstToken, job, token.timeNs);
    } else {
        job.result.gapsMs.push_back(double(token.gapNs) * 1e-6);
    }
    job.lastTokenNs = token.timeNs;
    job.result.tokens.push_back(token.id);
    job.input.push_back(token.id);

    Event event{};
    event.timeNs = token.timeNs;
    event.type = EventType::Token;
    event.token = {job.id,
                   token.index,
                   token.id,
                   token.timeNs - m_stepStartNs,
                   token.gapNs,
                   token.stallNs,
                   token.lookups,
                   token.hits,
                   token.preemptedNs,
                   m_stepStore.freshStallNs,
                   m_step};
    m_setup.ring->write(event);
}

// Text, end of the reply, and the caller.
void Scheduler::emit(Job& job, GeneratedToken& token) {
    const std::vector<int32_t>& eosIds = m_setup.info->config.eosIds;
    const bool eos =
        !job.request.ignoreEos && std::find(eosIds.begin(), eosIds.end(), token.id) != eosIds.end();
    if (m_setup.tokenizer && !eos) {
        token.text =
            job.text.push(m_setup.tokenizer->tokenBytes(token.id, !job.request.specialText));
    }
    if (eos) {
        job.stop = StopReason::Eos;
    } else if (job.text.stopped()) {
        job.stop = StopReason::StopString;
    } else if (job.result.tokens.size() >= size_t(job.request.maxTokens)) {
        job.stop = StopReason::MaxTokens;
    } else if (int64_t(job.input.size()) >= m_setup.contextLength) {
        job.stop = StopReason::ContextFull;
    }
    if (job.stop) token.text += job.text.finish();
    if (job.callbacks.onToken && !job.callbacks.onToken(token) && !job.stop) {
        job.stop = StopReason::Cancelled;
    }
}

void Scheduler::finish(Job& job, StopReason stop, Status status) {
    RequestResult& result = job.result;
    const uint64_t now = monotonicNs();
    result.stop = stop;
    result.status = std::move(status);
    result.promptTokens = uint32_t(job.promptTokens());
    result.preemptedMs = double(job.preemptedNs) * 1e-6;
    job.text.finish();
    result.text = job.text.text();
    if (job.admittedNs) result.experts = difference(m_setup.store->stats(), job.storeBefore);
    if (job.firstTokenNs) {
        result.ttftMs = double(job.firstTokenNs - job.arrivedNs) * 1e-6;
        const double prefillS = double(job.firstTokenNs - job.admittedNs) * 1e-9;
        if (prefillS > 0) {
            result.promptTokS = double(result.promptTokens - result.cachedTokens) / prefillS;
        }
        const double decodeS = double(job.lastTokenNs - job.firstTokenNs) * 1e-9;
        if (decodeS > 0) result.decodeTokS = double(result.tokens.size() - 1) / decodeS;
    }
    if (stop == StopReason::Error || job.scored()) {
        m_kv.release(job.sequence);
    } else {
        m_kv.keep(job.sequence);
    }
    writeRequestEvent(EventType::RequestDone, job, now);
    {
        MutexLock lock(m_mutex);
        if (!job.admittedNs) --m_queued;
        if (job.admittedNs && !job.admission) --m_preempted;
        m_cancelled.erase(job.id);
        publishKv();
    }
    m_count.fetch_sub(1);
    if (job.admission) m_activeCount.fetch_sub(1);  // whoever waits for the end finds it so
    job.ended = true;
    if (job.callbacks.onDone) job.callbacks.onDone(std::move(result));
}

}  // namespace colibri
