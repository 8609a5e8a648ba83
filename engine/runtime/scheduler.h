// SPDX-License-Identifier: Apache-2.0
// The engine's scheduler thread: admits queued requests, forms one batch per step, runs the forward
// pass, samples, and reports to the callers. Finished conversations stay in the KV cache, where
// any request that begins with the same tokens finds them.
//
// Admission: waiting requests join when, together with the running ones, they fill the batch, or
// when the oldest has waited for the batch timeout, whether or not a step is running. Then all
// requests that fit the batch and the KV cache join, in queue order. A request needs KV blocks for
// its prompt; its reply takes more as it grows.
// A step has one row for every decoding request, and prompt rows up to the prefill chunk. Prompts
// take turns at going first, so neither a long prompt nor a long reply delays another request by
// more than one step. A prompt whose next block is being computed for another request waits for
// that block. After the batch size is reduced, requests take turns until enough have finished.
// Prompts whose logits are requested (onLogits) take fewer rows, so that the logits fit a buffer.
//
// Preemption: a request can leave the batch and resume later. Its blocks stay in the KV cache until
// their memory is needed; missing blocks are then recomputed from its prompt and the tokens so far.
// Its text, sampler and stop strings continue unchanged. There are two causes:
// - A growing reply finds no free block: the request that was admitted last is preempted and waits
//   at the front of the queue. The one that was admitted first never is, so there is always
//   progress.
// - The front of the queue finds no room: requests whose turn is over, that is, which have
//   generated kTurnTokens and half of what they began with, are preempted and wait at the back. A
//   request in the queue therefore never waits for the end of a long reply.
//
// Locks: m_mutex guards queue, cancellations and flags and is never held during a step or a
// callback; m_stepMutex is held during a step, and by runAlone.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "engine/base/machine.h"
#include "engine/base/mutex.h"
#include "engine/runtime/batch_stats.h"
#include "engine/runtime/forward.h"
#include "engine/runtime/request.h"
#include "engine/runtime/sampler.h"
#include "engine/runtime/text_stream.h"

namespace colibri {

constexpr size_t kQueueLimit = 64;
constexpr size_t kTurnTokens = 256;  // generated before a request is preempted for a waiting one
constexpr int64_t kScoreBytes = 64 << 20;  // logits per step for prompts that request all of them
constexpr int64_t kMinScoreRows = 16;      // but at least this many rows

struct BatchLimits {
    size_t requests = 8;        // in one step
    int64_t prefillRows = 512;  // of all prompts in one step
    uint64_t timeoutNs = 10'000'000;
};

class Scheduler {
public:
    struct Setup {
        const ContainerInfo* info;
        const Tokenizer* tokenizer;  // may be nullptr
        ExpertStore* store;
        Forward* forward;
        EventRing* ring;  // written by the scheduler thread only
        int64_t contextLength;
        std::function<void()> applyKnobs;  // called between steps
        std::function<void()> stepEnded;   // called after each step
        const KernelSet* kernels;
    };
    explicit Scheduler(const Setup& setup);
    ~Scheduler();  // cancels everything, joins

    Result<uint64_t> submit(Request request, RequestCallbacks callbacks);
    void cancel(uint64_t request);
    int activeRequests() const { return m_count.load(std::memory_order_relaxed); }
    void wake();  // a knob is waiting to be applied
    BatchStats stats() const;
    // Scheduler thread, or alone.
    const BatchLimits& batchLimits() const { return m_limits; }
    void setBatchLimits(const BatchLimits& limits) { m_limits = limits; }
    // Forces earlier turns to be recomputed: their KV blocks were computed with other settings.
    void forgetPrefixes() { m_kv.forget(); }  // scheduler thread
    // Runs `body` on the caller's thread while no step runs.
    void runAlone(const std::function<void()>& body);
    // As EnginePause.
    void pause();
    void resume();
    int64_t kvBytes() const { return m_kv.allocatedBytes(); }

private:
    struct Job;  // one request from arrival to completion
    struct StepPart {
        uint64_t request;
        bool prefill;
    };
    using Jobs = std::list<std::unique_ptr<Job>>;

    Status check(const Request& request, bool scored) const;
    void loop();
    void turn();
    void passOver(uint64_t pausedNs);
    void failStep();
    bool tryFinish(Job& job, StopReason stop, const Status& status);
    bool waitForWork();
    uint64_t admissionDueNs() const;
    void takeArrivals();
    void dropCancelled();
    void growReplies();
    void admit();
    int64_t positionsFor(const Job& job) const;
    bool hasRoom(const Job& job) const;
    bool makeRoom(const Job& job);
    bool reserve(Job& job);
    void reuse(Job& job);
    void preempt(Job& job, bool toFront);
    void step();
    void formBatch();
    bool waitsForBlock(const Job& job) const;
    void addRows(Job& job, size_t count);
    void startStep();
    bool unwanted() const REQUIRES(m_mutex);  // nobody needs the running step
    void rotate();
    void countStored(Job& job);
    void afterForward();
    void reportStep();  // its times, after afterForward()
    void takeRows(Job& job);
    void giveLogits(Job& job);
    void sample(Job& job, const BatchRow& row);  // draws, records and emits one token
    GeneratedToken measured(Job& job, const BatchRow& row, int32_t id);
    void record(Job& job, const GeneratedToken& token);
    void emit(Job& job, GeneratedToken& token);
    void finish(Job& job, StopReason stop, Status status);
    void removeFinished();
    void finishAll();
    void publishKv() REQUIRES(m_mutex);  // for stats()
    void writePrompt(const Job& job);
    void writeRequestEvent(EventType type, const Job& job, uint64_t timeNs);

    const Setup m_setup;
    KvCache m_kv;
    KvStats m_kvStats;          // scheduler thread; others see m_publishedKv
    const int64_t m_scoreRows;  // maximum prompt rows of one step with logits
    BatchLimits m_limits;
    Jobs m_waiting, m_active;  // scheduler thread; m_active in turn order
    uint64_t m_admissions = 0;
    std::vector<BatchRow> m_rows;
    uint32_t m_step = 0;  // number of the step, from 1
    uint64_t m_stepStartNs = 0, m_forwardEndNs = 0;
    uint64_t m_stepEndNs = 0;    // end of the last step; 0: no request was left then
    ThreadTimes m_threadBefore;  // at its start
    StoreStats m_stepStore;      // what the store counted in the forward pass

    mutable Mutex m_mutex;
    Condition m_wake;
    Jobs m_arrived GUARDED_BY(m_mutex);
    std::unordered_set<uint64_t> m_cancelled GUARDED_BY(m_mutex);
    size_t m_queued GUARDED_BY(m_mutex) = 0;  // arrived or waiting, not admitted
    std::vector<StepPart> m_stepParts
        GUARDED_BY(m_mutex);  // requests with rows in the running step
    bool m_stop GUARDED_BY(m_mutex) = false, m_woken GUARDED_BY(m_mutex) = false;
    KvStats m_publishedKv GUARDED_BY(m_mutex);
    int m_preempted GUARDED_BY(m_mutex) = 0;  // waiting to resume

    Mutex m_stepMutex;
    Condition m_stepFree;
    int m_pauses GUARDED_BY(m_stepMutex) = 0;
    uint64_t m_pauseBeganNs GUARDED_BY(m_stepMutex) = 0;
    uint64_t m_pausedNs GUARDED_BY(m_stepMutex) = 0;  // since the last step
    std::atomic<int> m_aloneWaiting{0};
    std::atomic<bool> m_abort{false};  // the running step is not wanted
    std::atomic<int> m_count{0};
    std::atomic<int> m_activeCount{0};
    std::atomic<uint64_t> m_steps{0}, m_stepRequests{0}, m_stepRows{0};
    std::atomic<uint64_t> m_nextId{1};
    std::thread m_thread;
};

}  // namespace colibri
