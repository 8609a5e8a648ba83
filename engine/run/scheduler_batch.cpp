// SPDX-License-Identifier: Apache-2.0
// Who joins the batch, and what one step computes.
#include <algorithm>

#include "engine/base/format.h"
#include "engine/run/job.h"
#include "engine/run/scheduler.h"

namespace colibri {

// Blocks for the longest the request can become, so that an admitted one never runs dry. Earlier
// turns in the cache give way, oldest first.
bool Scheduler::reserve(Job& job) {
    const int64_t longest =
        std::min(m_setup.contextLength, int64_t(job.request.prompt.size()) + job.request.maxTokens);
    const int64_t need = kvBlocksFor(longest);
    if (m_reservedBlocks + need > m_pool.maxBlocks()) return false;
    if (!job.scored()) job.sequence = m_prefixes.take(job.request.prompt);
    while (m_reservedBlocks + m_prefixes.blocks() + need > m_pool.maxBlocks()) {
        m_prefixes.evictOldest();
    }
    job.reservedBlocks = need;
    m_reservedBlocks += need;
    return true;
}

// When the waiting requests join, on the clock of monotonicNs. REQUIRES: one waits.
uint64_t Scheduler::admissionDueNs() const {
    if (m_active.size() + m_waiting.size() >= m_limits.requests) return 0;
    return m_waiting.front()->arrivedNs + m_limits.timeoutNs;
}

// First come, first served: the head of the queue is never overtaken. Cancelled requests pass
// through to their end at once.
void Scheduler::admit() {
    if (m_waiting.empty()) return;
    bool blocked = monotonicNs() < admissionDueNs();
    for (auto it = m_waiting.begin(); it != m_waiting.end();) {
        Job& job = **it;
        if (!job.cancelled) {
            blocked = blocked || m_active.size() >= m_limits.requests || !reserve(job);
            if (blocked) {
                ++it;
                continue;
            }
        }
        job.admittedNs = monotonicNs();
        job.prefilled = size_t(job.sequence.length());
        job.result.cachedTokens = uint32_t(job.prefilled);
        job.result.queueMs = double(job.admittedNs - job.arrivedNs) * 1e-6;
        job.storeBefore = m_setup.store->stats();
        writeRequestEvent(EventType::RequestAdmitted, job, job.admittedNs);
        m_active.push_back(std::move(*it));
        it = m_waiting.erase(it);
        std::lock_guard lock(m_mutex);
        --m_queued;
    }
    m_activeCount.store(int(m_active.size()), std::memory_order_relaxed);
}

bool Scheduler::growFor(Job& job, int64_t positions) {
    if (m_pool.grow(job.sequence, positions)) return true;
    job.failure = Status(Code::OutOfMemory,
                         "no memory for the KV cache of " + formatCount(positions) + " tokens",
                         "Load the model with a smaller context length or expert cache");
    return false;
}

void Scheduler::formBatch() {
    m_rows.clear();
    size_t requests = 0;
    int64_t promptRows = m_limits.prefillRows, scoreRows = m_scoreRows;
    for (const std::unique_ptr<Job>& owned : m_active) {
        Job& job = *owned;
        job.rowCount = 0;
        if (job.cancelled || requests == m_limits.requests) continue;
        const size_t left = job.promptLeft();
        const int64_t most = job.scored() ? std::min(promptRows, scoreRows) : promptRows;
        const size_t count = left > 0 ? std::min(left, size_t(most)) : 1;
        if (count == 0 || !growFor(job, job.sequence.length() + int64_t(count))) continue;
        if (left > 0) promptRows -= int64_t(count);
        if (left > 0 && job.scored()) scoreRows -= int64_t(count);
        ++requests;
        addRows(job, count);
    }
}

void Scheduler::addRows(Job& job, size_t count) {
    const size_t left = job.promptLeft();
    job.firstRow = m_rows.size();
    job.rowCount = count;
    for (size_t i = 0; i < count; ++i) {
        BatchRow row;
        row.sequence = &job.sequence;
        row.token = left > 0 ? job.request.prompt[job.prefilled + i] : job.result.tokens.back();
        row.position = job.sequence.length() + int64_t(i);
        row.prefill = left > 0;
        row.wantLogits = left == 0 || i + 1 == left || job.scored();
        row.request = job.id;
        m_rows.push_back(std::move(row));
    }
}

// A cancelled prompt ends its step at once, as it may take long. A step that only decodes ends when
// nobody is left who wants its tokens: then it may wait for a slow disk in vain.
bool Scheduler::unwanted() const {
    bool all = !m_stepParts.empty();
    for (const StepPart& part : m_stepParts) {
        const bool cancelled = m_cancelled.count(part.request) > 0;
        if (cancelled && part.prefill) return true;
        all = all && cancelled;
    }
    return all;
}

// Counts and tells the batch, and lets cancellations reach the forward pass.
void Scheduler::startStep() {
    Event event{};
    event.type = EventType::BatchFormed;
    event.batch = {};
    event.batch.rows = uint16_t(m_rows.size());
    event.batch.queued = uint32_t(m_waiting.size());
    std::lock_guard lock(m_mutex);
    for (const std::unique_ptr<Job>& job : m_active) {
        if (job->rowCount == 0) continue;
        ++event.batch.requests;
        const bool prefill = m_rows[job->firstRow].prefill;
        if (prefill) event.batch.prefillRows += uint16_t(job->rowCount);
        m_stepParts.push_back({job->id, prefill});
    }
    if (unwanted()) m_abort.store(true);  // cancelled while the batch was formed
    m_setup.ring->write(event);
    m_steps.fetch_add(1, std::memory_order_relaxed);
    m_stepRequests.fetch_add(event.batch.requests, std::memory_order_relaxed);
    m_stepRows.fetch_add(m_rows.size(), std::memory_order_relaxed);
}

// Runs one forward pass; its results are dealt with outside the step lock (afterForward).
void Scheduler::step() {
    formBatch();
    if (m_rows.empty()) return;
    startStep();
    m_stepStartNs = monotonicNs();
    if (!m_setup.forward->run(m_rows, &m_abort)) m_rows.clear();
    std::lock_guard lock(m_mutex);
    m_stepParts.clear();
}

// Whoever had rows in this step goes behind those who had none.
void Scheduler::rotate() {
    const Jobs::iterator end = m_active.end();
    Jobs served;
    for (auto it = m_active.begin(); it != end;) {
        const auto job = it++;
        if ((*job)->rowCount > 0) served.splice(served.end(), m_active, job);
    }
    m_active.splice(end, served);
}

}  // namespace colibri
