// SPDX-License-Identifier: Apache-2.0
// Admission of requests to the batch, and preemption.
#include <algorithm>

#include "engine/base/format.h"
#include "engine/runtime/job.h"
#include "engine/runtime/scheduler.h"

namespace colibri {

namespace {

Status noMemory(int64_t positions) {
    return Status(Code::OutOfMemory,
                  "no memory for the KV cache of " + formatCount(positions) + " tokens",
                  "Load the model with a smaller context length or expert cache");
}

}  // namespace

// Gives every running request a block for its next token, in order of admission.
void Scheduler::growReplies() {
    std::vector<Job*> jobs;
    for (const std::unique_ptr<Job>& job : m_active) {
        if (job->cancelled) {
            m_kv.keep(job->sequence);  // it ends with this step
        } else {
            jobs.push_back(job.get());
        }
    }
    std::sort(jobs.begin(), jobs.end(),
              [](const Job* a, const Job* b) { return a->admission < b->admission; });
    for (size_t i = 0; i < jobs.size(); ++i) {
        Job& job = *jobs[i];
        const int64_t positions = job.sequence.length() + 1;
        while (!m_kv.grow(job.sequence, positions)) {
            if (jobs.size() == 1) {
                job.failure = noMemory(positions);
                break;
            }
            const bool itself = jobs.back() == &job;
            preempt(*jobs.back(), true);
            jobs.pop_back();
            if (itself) break;
        }
    }
}

// When the waiting requests join, on the clock of monotonicNs. REQUIRES: one waits.
uint64_t Scheduler::admissionDueNs() const {
    if (m_active.size() + m_waiting.size() >= m_limits.requests) return 0;
    return m_waiting.front()->arrivedNs + m_limits.timeoutNs;
}

// The front of the queue is never overtaken. Cancelled requests pass through to their end at once.
void Scheduler::admit() {
    if (m_waiting.empty()) return;
    const uint64_t due = admissionDueNs();
    bool blocked = monotonicNs() < due;
    size_t count = m_waiting.size();  // requests preempted now are not considered before the step
    for (auto it = m_waiting.begin(); count > 0; --count) {
        Job& job = **it;
        if (!job.cancelled) {
            blocked = blocked || !(hasRoom(job) || makeRoom(job)) || !reserve(job);
            if (blocked) {
                ++it;
                continue;
            }
        }
        const bool again = job.admittedNs != 0;
        const uint64_t now = monotonicNs();
        job.admission = ++m_admissions;
        job.joined = due == 0 ? JoinReason::BatchFull : JoinReason::Timeout;
        job.turnStart = job.result.tokens.size();
        job.readTo = int64_t(job.input.size());
        if (!again) {
            job.admittedNs = now;
            job.result.queueMs = double(now - job.arrivedNs) * 1e-6;
            job.storeBefore = m_setup.store->stats();
            m_kvStats.promptTokens += uint64_t(job.promptTokens());
        }
        if (!again && !job.cancelled && job.callbacks.onPrefill) {
            job.callbacks.onPrefill(uint32_t(job.reached), uint32_t(job.promptTokens()));
        }
        writeRequestEvent(again ? EventType::RequestResumed : EventType::RequestAdmitted, job, now);
        m_active.push_back(std::move(*it));
        it = m_waiting.erase(it);
        MutexLock lock(m_mutex);
        if (again) {
            --m_preempted;
        } else {
            --m_queued;
        }
    }
    m_activeCount.store(int(m_active.size()), std::memory_order_relaxed);
}

// One more token than there are, so that none is admitted only to be preempted at once.
int64_t Scheduler::positionsFor(const Job& job) const {
    return std::min(m_setup.contextLength, int64_t(job.input.size()) + 1);
}

bool Scheduler::hasRoom(const Job& job) const {
    return m_active.size() < m_limits.requests &&
           m_kv.missing(job.reusable(), positionsFor(job)) == 0;
}

// Preempts requests whose turn is over if that makes room for a waiting one; those that have been
// in the batch for longest go first.
bool Scheduler::makeRoom(const Job& job) {
    std::vector<Job*> over;
    int64_t blocks = 0;
    for (const std::unique_ptr<Job>& active : m_active) {
        const size_t turn = active->result.tokens.size() - active->turnStart;
        if (active->cancelled || turn < std::max(kTurnTokens, size_t(active->readTo / 2))) continue;
        over.push_back(active.get());
        blocks += m_kv.heldAlone(active->sequence);
    }
    if (m_active.size() - over.size() >= m_limits.requests) return false;
    if (m_kv.missing(job.reusable(), positionsFor(job)) > blocks) return false;
    std::sort(over.begin(), over.end(),
              [](const Job* a, const Job* b) { return a->admission < b->admission; });
    for (Job* const active : over) {
        if (hasRoom(job)) break;
        preempt(*active, false);
    }
    return hasRoom(job);
}

// Takes the cached part of a request's input, and blocks for the rest. False: not now.
bool Scheduler::reserve(Job& job) {
    reuse(job);
    if (m_kv.grow(job.sequence, positionsFor(job))) return true;
    m_kv.release(job.sequence);
    if (!m_active.empty()) return false;
    job.failure = noMemory(positionsFor(job));
    return true;
}

// Takes what the cache has of the input behind what is stored. Tokens that the request computed
// itself before a preemption are not counted as saved.
void Scheduler::reuse(Job& job) {
    if (job.scored()) return;
    m_kv.find(job.sequence, job.reusable());
    const int64_t to = std::min(job.sequence.length(), job.promptTokens());
    if (to > job.reached) {
        job.result.cachedTokens += uint32_t(to - job.reached);
        m_kvStats.reusedTokens += uint64_t(to - job.reached);
    }
    job.reached = std::max(job.reached, job.sequence.length());
}

// Takes a request out of the batch, to the front or the back of the queue.
void Scheduler::preempt(Job& job, bool toFront) {
    if (job.scored()) {
        m_kv.release(job.sequence);
    } else {
        m_kv.keep(job.sequence);
    }
    job.admission = 0;
    ++job.result.preemptions;
    ++m_kvStats.preemptions;
    const uint64_t now = monotonicNs();
    if (job.preemptedAtNs == 0) job.preemptedAtNs = now;
    writeRequestEvent(EventType::RequestPreempted, job, now);
    const auto at = std::find_if(m_active.begin(), m_active.end(),
                                 [&](const std::unique_ptr<Job>& j) { return j.get() == &job; });
    m_waiting.splice(toFront ? m_waiting.begin() : m_waiting.end(), m_active, at);
    MutexLock lock(m_mutex);
    ++m_preempted;
}

}  // namespace colibri
