// SPDX-License-Identifier: Apache-2.0
// What one step computes.
#include <algorithm>

#include "engine/runtime/job.h"
#include "engine/runtime/scheduler.h"

namespace colibri {

void Scheduler::formBatch() {
    m_rows.clear();
    size_t requests = 0;
    int64_t promptRows = m_limits.prefillRows, scoreRows = m_scoreRows;
    for (const std::unique_ptr<Job>& owned : m_active) owned->rowCount = 0;
    for (const std::unique_ptr<Job>& owned : m_active) {
        Job& job = *owned;
        if (job.cancelled || job.outOfMemory || !job.failure.ok() || requests == m_limits.requests)
            continue;
        if (job.reads()) reuse(job);
        int64_t count = 1;
        if (job.reads()) {
            if (waitsForBlock(job)) continue;
            count =
                std::min(job.left(), job.scored() ? std::min(promptRows, scoreRows) : promptRows);
            promptRows -= count;
            if (job.scored()) scoreRows -= count;
        }
        if (count == 0) continue;
        ++requests;
        addRows(job, size_t(count));
    }
}

// Whether another request is about to complete the prompt's next block, which can be shared then:
// it is computed in this step, or a part of it already was. REQUIRES: what the cache has of the
// prompt was taken.
bool Scheduler::waitsForBlock(const Job& job) const {
    const int64_t at = job.sequence.length(), end = at + kPageTokens;
    if (at % kPageTokens != 0 || end > int64_t(job.reusable().size())) return false;
    const auto same = [&](const std::unique_ptr<Job>& other) {
        const int64_t reached = other->sequence.length();
        if (other->cancelled || !other->failure.ok() || other->scored()) return false;
        if (!other->reads() || other->readTo < end) return false;
        if (reached < at || reached >= end || (reached == at && other->rowCount == 0)) return false;
        // The same block in front means the same tokens up to it.
        const auto before = size_t(at / kPageTokens);
        return (at == 0 || other->sequence.blocks[before - 1] == job.sequence.blocks[before - 1]) &&
               std::equal(job.input.begin() + at, job.input.begin() + end,
                          other->input.begin() + at);
    };
    return std::any_of(m_active.begin(), m_active.end(), same);
}

void Scheduler::addRows(Job& job, size_t count) {
    job.firstRow = m_rows.size();
    job.rowCount = count;
    for (size_t i = 0; i < count; ++i) {
        BatchRow row;
        row.sequence = &job.sequence;
        row.position = job.sequence.length() + int64_t(i);
        row.token = job.input[size_t(row.position)];
        row.prefill = job.reads();
        row.wantLogits = row.position + 1 == int64_t(job.input.size()) ||
                         (job.scored() && row.position >= job.reached);
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

// Counts and reports the batch, and lets cancellations reach the forward pass.
void Scheduler::startStep() {
    ++m_step;
    Event event{};
    event.type = EventType::BatchFormed;
    event.batch = {};
    event.batch.rows = uint16_t(m_rows.size());
    event.batch.queued = uint32_t(m_waiting.size());
    MutexLock lock(m_mutex);
    publishKv();
    event.batch.kvHeld = uint32_t(m_publishedKv.heldBlocks);
    event.batch.kvKept = uint32_t(m_publishedKv.keptBlocks);
    event.batch.kvBlocks = uint32_t(m_publishedKv.blocks);
    for (const std::unique_ptr<Job>& job : m_active) {
        if (job->rowCount == 0) continue;
        ++event.batch.requests;
        const bool prefill = m_rows[job->firstRow].prefill;
        if (prefill) event.batch.prefillRows += uint16_t(job->rowCount);
        m_stepParts.push_back({job->id, prefill});
        Event member{};
        member.type = EventType::StepMember;
        member.stepMember = {job->id, m_step, uint16_t(job->rowCount), uint8_t(prefill)};
        m_setup.ring->write(member);
    }
    if (unwanted()) m_abort.store(true);  // cancelled while the batch was formed
    m_setup.ring->write(event);
    m_steps.fetch_add(1, std::memory_order_relaxed);
    m_stepRequests.fetch_add(event.batch.requests, std::memory_order_relaxed);
    m_stepRows.fetch_add(m_rows.size(), std::memory_order_relaxed);
}

// Runs one forward pass; afterForward processes its results outside the step lock.
void Scheduler::step() {
    formBatch();
    if (m_rows.empty()) return;
    startStep();
    m_threadBefore = threadTimes();
    m_stepStartNs = monotonicNs();
    if (!m_setup.forward->run(m_rows, &m_abort, nullptr, m_step)) m_rows.clear();
    m_forwardEndNs = monotonicNs();
    m_stepStore = m_setup.forward->moe().storeStats();
    MutexLock lock(m_mutex);
    m_stepParts.clear();
}

// Where the time of the step went. The thread is off the processor while it waits for experts;
// what is beyond that, other threads had.
void Scheduler::reportStep() {
    const uint64_t now = monotonicNs();
    const ThreadTimes after = threadTimes();
    const Forward& forward = *m_setup.forward;
    const MoeStage& moe = forward.moe();
    const auto ns = [](uint64_t value) { return float(value); };
    Event event{};
    event.type = EventType::Step;
    event.timeNs = now;
    StepEvent& s = event.step;
    s = {};
    s.step = m_step;
    s.rows = uint16_t(m_rows.size());
    for (const std::unique_ptr<Job>& job : m_active) {
        if (job->rowCount == 0) continue;
        ++s.requests;
        if (m_rows[job->firstRow].prefill) s.prefillRows += uint16_t(job->rowCount);
    }
    s.totalNs = ns(now - m_stepStartNs);
    s.sinceLastNs = m_stepEndNs ? ns(m_stepStartNs - m_stepEndNs) : 0;
    s.attentionNs = ns(forward.times().attentionNs);
    s.routerNs = ns(moe.routerNs());
    s.expertsNs = ns(moe.expertsNs());
    s.denseNs = ns(forward.times().denseNs);
    s.headNs = ns(forward.times().headNs);
    s.sampleNs = ns(now - m_forwardEndNs);
    s.stallSlotNs = ns(m_stepStore.slotStallNs);
    s.stallDiskNs = ns(m_stepStore.diskStallNs);
    s.stallLinkNs = ns(m_stepStore.linkStallNs);
    s.stallMemoryNs = ns(m_stepStore.freshStallNs);
    s.stallPrefetchNs = ns(m_stepStore.prefetchStallNs);
    const uint64_t busy = after.cpuNs - m_threadBefore.cpuNs + moe.stallNs();
    s.offCpuNs = ns(now - m_stepStartNs - std::min(busy, now - m_stepStartNs));
    s.minorFaults = uint32_t(after.minorFaults - m_threadBefore.minorFaults);
    s.majorFaults = uint32_t(after.majorFaults - m_threadBefore.majorFaults);
    m_setup.ring->write(event);
    m_stepEndNs = now;
}

// After a forward pass that succeeded for the job: what it computed can be found by others.
void Scheduler::countStored(Job& job) {
    const int64_t to = job.sequence.length(), from = to - int64_t(job.rowCount);
    const int64_t again = std::max<int64_t>(0, std::min(to, job.reached) - from);
    job.result.recomputedTokens += uint32_t(again);
    m_kvStats.recomputedTokens += uint64_t(again);
    job.reached = std::max(job.reached, to);
    if (!job.scored()) m_kv.share(job.sequence);
}

// Moves the requests with rows in this step behind those without.
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
