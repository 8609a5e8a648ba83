// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/format.h"
#include "engine/runtime/job.h"

namespace colibri {

namespace {

Status bad(std::string what, std::string hint = {}) {
    return Status(Code::InvalidArgument, std::move(what), std::move(hint));
}

Status checkSampling(const Sampling& s, int64_t vocab) {
    if (!(s.temperature >= 0) || !std::isfinite(s.temperature)) {
        return bad("temperature must be 0 or more");
    }
    if (s.topK < 0) return bad("top-k must be 0 or more");
    if (!(s.topP > 0 && s.topP <= 1)) return bad("top-p must be above 0 and at most 1");
    if (!(s.minP >= 0 && s.minP <= 1)) return bad("min-p must be between 0 and 1");
    if (!(s.repetitionPenalty > 0) || !std::isfinite(s.repetitionPenalty)) {
        return bad("repetition penalty must be above 0");
    }
    if (!std::isfinite(s.presencePenalty) || !std::isfinite(s.frequencyPenalty)) {
        return bad("presence and frequency penalty must be finite numbers");
    }
    for (const auto& [id, bias] : s.logitBias) {
        if (id < 0 || id >= vocab || !std::isfinite(bias)) {
            return bad("logit bias: token " + std::to_string(id) +
                           " is not in the vocabulary, or its bias is not a finite number",
                       "Valid ids are 0.." + std::to_string(vocab - 1));
        }
    }
    return {};
}

Status checkTokens(std::span<const int32_t> ids, const char* where, int64_t vocab) {
    for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0 || ids[i] >= vocab) {
            return bad("token " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
                           " " + where + " is not in the vocabulary",
                       "Valid ids are 0.." + std::to_string(vocab - 1));
        }
    }
    return {};
}

}  // namespace

Scheduler::Scheduler(const Setup& setup)
    : m_setup(setup),
      m_kv(setup.forward->kvShape(), kvBlocksFor(setup.contextLength)),
      m_scoreRows(std::max<int64_t>(
          kMinScoreRows, kScoreBytes / (setup.info->config.vocabSize * int64_t(sizeof(float))))) {
    m_thread = std::thread([this] {
        pthread_setname_np(pthread_self(), "scheduler");
        loop();
    });
}

Scheduler::~Scheduler() {
    {
        MutexLock lock(m_mutex);
        m_stop = true;
        m_abort.store(true);
    }
    m_wake.notifyAll();
    m_setup.store->wakeWaiters();
    m_thread.join();
}

Status Scheduler::check(const Request& request, bool scored) const {
    const int64_t vocab = m_setup.info->config.vocabSize;
    if (request.prompt.empty()) return bad("the prompt has no tokens");
    if (request.maxTokens < (scored ? 0 : 1)) {
        return bad("max tokens must be at least " + std::to_string(scored ? 0 : 1));
    }
    COLIBRI_TRY(checkTokens(request.prompt, "of the prompt", vocab));
    COLIBRI_TRY(checkTokens(request.forced, "of the forced reply", vocab));
    const int64_t room = m_setup.contextLength - (request.maxTokens > 0 ? 1 : 0);
    if (int64_t(request.prompt.size()) > room) {
        return bad("the prompt has " + formatCount(int64_t(request.prompt.size())) +
                       " tokens; the context holds " + formatCount(m_setup.contextLength),
                   "Shorten it, or load the model with a larger context length");
    }
    COLIBRI_TRY(checkSampling(request.sampling, vocab));
    if (request.logprobs && (*request.logprobs < 0 || *request.logprobs > kMaxLogprobs)) {
        return bad("logprobs must be 0.." + std::to_string(kMaxLogprobs));
    }
    return {};
}

Result<uint64_t> Scheduler::submit(Request request, RequestCallbacks callbacks) {
    const bool scored = bool(callbacks.onLogits);
    if (Status status = check(request, scored); !status.ok()) return status;
    auto job = std::make_unique<Job>(std::move(request), std::move(callbacks), *m_setup.kernels);
    job->id = m_nextId.fetch_add(1);
    job->result.request = job->id;
    job->arrivedNs = monotonicNs();
    const uint64_t id = job->id;
    Jobs arrival;
    arrival.push_back(std::move(job));
    {
        MutexLock lock(m_mutex);
        if (m_queued >= kQueueLimit) {
            return Status(Code::Busy, formatCount(int64_t(m_queued)) + " requests are waiting",
                          "Try again later");
        }
        ++m_queued;
        m_count.fetch_add(1);
        m_arrived.splice(m_arrived.end(), arrival);
    }
    m_wake.notifyAll();
    return id;
}

void Scheduler::cancel(uint64_t request) {
    {
        MutexLock lock(m_mutex);
        m_cancelled.insert(request);
        if (unwanted()) m_abort.store(true);
    }
    m_wake.notifyAll();
    m_setup.store->wakeWaiters();
}

void Scheduler::wake() {
    {
        MutexLock lock(m_mutex);
        m_woken = true;
    }
    m_wake.notifyAll();
}

void Scheduler::runAlone(const std::function<void()>& body) {
    struct Alone {  // also when the body throws
        Scheduler& scheduler;
        ~Alone() {
            scheduler.m_aloneWaiting.fetch_sub(1);
            scheduler.m_stepFree.notifyAll();
        }
    };
    m_aloneWaiting.fetch_add(1);
    const Alone alone{*this};
    MutexLock lock(m_stepMutex);
    body();
}

void Scheduler::pause() {
    m_aloneWaiting.fetch_add(1);
    MutexLock lock(m_stepMutex);
    if (m_pauses++ == 0) m_pauseBeganNs = monotonicNs();
}

void Scheduler::resume() {
    {
        MutexLock lock(m_stepMutex);
        if (--m_pauses == 0) m_pausedNs += monotonicNs() - m_pauseBeganNs;
    }
    m_aloneWaiting.fetch_sub(1);
    m_stepFree.notifyAll();
}

// Moves the clocks of all requests on, so that a pause is in no gap.
void Scheduler::passOver(uint64_t pausedNs) {
    const auto move = [pausedNs](uint64_t& time) {
        if (time != 0) time += pausedNs;
    };
    for (const Jobs* jobs : {&m_waiting, &m_active}) {
        for (const std::unique_ptr<Job>& job : *jobs) {
            move(job->arrivedNs);
            move(job->admittedNs);
            move(job->firstTokenNs);
            move(job->lastTokenNs);
            move(job->preemptedAtNs);
        }
    }
    move(m_stepEndNs);
}

void Scheduler::loop() {
    while (waitForWork()) {
        try {
            turn();
        } catch (const std::bad_alloc&) {
            failStep();
        }
    }
    finishAll();
}

void Scheduler::turn() {
    takeArrivals();
    removeFinished();  // whose end or step had no memory in the last turn
    const uint64_t beganNs = monotonicNs();
    {
        MutexLock lock(m_stepMutex);
        while (m_aloneWaiting.load() != 0) m_stepFree.wait(m_stepMutex);
        if (m_pausedNs > 0)
            passOver(std::min(std::exchange(m_pausedNs, 0), monotonicNs() - beganNs));
        m_setup.applyKnobs();
        dropCancelled();
        growReplies();
        admit();
        if (!m_active.empty()) step();
    }
    if (!m_rows.empty()) {
        afterForward();
        reportStep();
        m_setup.stepEnded();
    } else {
        m_stepEndNs = 0;
    }
    m_rows.clear();
    removeFinished();
    if (m_active.empty()) m_stepEndNs = 0;
    m_activeCount.store(int(m_active.size()), std::memory_order_relaxed);
}

// There was no memory for a step: the requests in the batch end, or if there are none the next that
// waits, and what is theirs is free for others. Allocates nothing.
void Scheduler::failStep() {
    {
        MutexLock lock(m_mutex);
        m_stepParts.clear();
    }
    m_rows.clear();
    m_setup.forward->giveUp();
    if (m_active.empty() && !m_waiting.empty()) {
        m_active.splice(m_active.end(), m_waiting, m_waiting.begin());
    }
    for (const std::unique_ptr<Job>& job : m_active) job->outOfMemory = true;
}

BatchStats Scheduler::stats() const {
    BatchStats s;
    s.active = m_activeCount.load(std::memory_order_relaxed);
    s.steps = m_steps.load(std::memory_order_relaxed);
    s.requests = m_stepRequests.load(std::memory_order_relaxed);
    s.rows = m_stepRows.load(std::memory_order_relaxed);
    MutexLock lock(m_mutex);
    s.queued = int(m_queued);
    s.preempted = m_preempted;
    s.kv = m_publishedKv;
    return s;
}

void Scheduler::publishKv() {
    const KvCounts blocks = m_kv.counts();
    m_publishedKv = m_kvStats;
    m_publishedKv.heldBlocks = blocks.held;
    m_publishedKv.keptBlocks = blocks.kept;
    m_publishedKv.blocks = blocks.all;
    m_publishedKv.blockTokens = kPageTokens;
}

// False: time to stop.
bool Scheduler::waitForWork() {
    MutexLock lock(m_mutex);
    while (!m_stop && !m_woken && m_arrived.empty() && m_cancelled.empty() && m_active.empty()) {
        if (m_waiting.empty()) {
            m_wake.wait(m_mutex);
            continue;
        }
        const uint64_t due = admissionDueNs();
        if (monotonicNs() >= due) break;
        m_wake.waitUntil(m_mutex,
                         std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due)));
    }
    m_woken = false;
    return !m_stop;
}

void Scheduler::takeArrivals() {
    Jobs arrived;
    {
        MutexLock lock(m_mutex);
        arrived.swap(m_arrived);
    }
    for (const std::unique_ptr<Job>& job : arrived) {
        writeRequestEvent(EventType::RequestArrived, *job, job->arrivedNs);
        writePrompt(*job);
    }
    m_waiting.splice(m_waiting.end(), arrived);
}

void Scheduler::dropCancelled() {
    std::unordered_set<uint64_t> ids;
    {
        MutexLock lock(m_mutex);
        ids.swap(m_cancelled);
        m_abort.store(m_stop);
    }
    if (ids.empty()) return;
    for (Jobs* jobs : {&m_waiting, &m_active}) {
        for (const std::unique_ptr<Job>& job : *jobs) {
            if (ids.count(job->id)) job->cancelled = true;
        }
    }
}

void Scheduler::afterForward() {
    for (const std::unique_ptr<Job>& job : m_active) {
        if (job->rowCount == 0) continue;
        try {
            takeRows(*job);
        } catch (const std::bad_alloc&) {  // the others go on
            job->outOfMemory = true;
        }
    }
    rotate();
}

// Processes the results of the step for one request.
void Scheduler::takeRows(Job& job) {
    const BatchRow& last = m_rows[job.firstRow + job.rowCount - 1];
    if (!last.status.ok()) {
        job.failure = last.status;
        return;
    }
    const int64_t before = job.reached;
    countStored(job);
    if (last.prefill) {
        if (job.callbacks.onPrefill && job.reached > before && job.result.tokens.empty()) {
            job.callbacks.onPrefill(uint32_t(job.reached), uint32_t(job.promptTokens()));
        }
        if (job.scored()) giveLogits(job);
        if (job.reads()) return;
        if (job.request.maxTokens == 0) job.stop = StopReason::MaxTokens;
    }
    if (last.logits && !job.stop) sample(job, last);
}

void Scheduler::removeFinished() {
    for (auto it = m_active.begin(); it != m_active.end();) {
        Job& job = **it;
        bool ended = false;
        if (job.outOfMemory || !job.failure.ok()) {
            ended = tryFinish(job, StopReason::Error, job.failure);
        } else if (job.stop) {
            ended = tryFinish(job, *job.stop, {});
        } else if (job.cancelled) {
            ended = tryFinish(job, StopReason::Cancelled, {});
        }
        it = ended ? m_active.erase(it) : std::next(it);
    }
}

// False: there is no memory for the end itself; it is tried again.
bool Scheduler::tryFinish(Job& job, StopReason stop, const Status& status) {
    try {
        if (job.outOfMemory && stop == StopReason::Error && status.ok()) {
            finish(job, stop,
                   {Code::OutOfMemory, "there was not enough memory to compute the next token",
                    "Choose a smaller expert cache, context length or batch"});
        } else {
            finish(job, stop, status);
        }
    } catch (const std::bad_alloc&) {
        job.outOfMemory = true;
    }
    return job.ended;
}

void Scheduler::finishAll() {
    takeArrivals();
    m_activeCount.store(int(m_active.size()), std::memory_order_relaxed);
    for (Jobs* jobs : {&m_active, &m_waiting}) {
        for (const std::unique_ptr<Job>& job : *jobs) {
            while (!tryFinish(*job, StopReason::Cancelled, {})) {
            }
        }
        jobs->clear();
    }
}

}  // namespace colibri
