// SPDX-License-Identifier: Apache-2.0
// The engine's scheduler thread: admits queued requests, forms one batch per step, runs the forward
// pass, samples, and tells the requests' owners. Finished conversations stay in the KV pool for
// their next turn.
//
// Admission: waiting requests join when, with those that run, they fill the batch, or when the
// oldest has waited for the batch timeout, whether or not a step runs meanwhile; then all join that
// the batch and the KV pool have room for, first come, first served.
// A step holds one row of every decoding request, and prompt rows up to the prefill chunk. Prompts
// take turns to go first, so neither a long prompt nor a long reply holds up another request for
// more than one step. After the batch was made smaller, requests take turns until enough have
// ended. Prompts whose logits are wanted (onLogits) take fewer rows, so that these fit a buffer.
//
// Locks: m_mutex guards queue, cancellations and flags and is never held during a step or a
// callback; m_stepMutex is held during a step, and by runAlone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "engine/run/engine.h"
#include "engine/run/forward.h"
#include "engine/run/sampler.h"
#include "engine/run/text_stream.h"

namespace colibri {

constexpr size_t kQueueLimit = 64;
constexpr int64_t kScoreBytes = 64 << 20;  // of logits per step of prompts that want all of them
constexpr int64_t kMinScoreRows = 16;      // ... but no fewer rows than this

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
        const KernelSet* kernels;
    };
    explicit Scheduler(const Setup& setup);
    ~Scheduler();  // cancels everything, joins

    Result<uint64_t> submit(Request request, RequestCallbacks callbacks);
    void cancel(uint64_t request);
    int activeRequests() const { return m_count.load(std::memory_order_relaxed); }
    void wake();  // a knob waits to be applied
    BatchStats stats() const;
    // Scheduler thread, or alone.
    const BatchLimits& batchLimits() const { return m_limits; }
    void setBatchLimits(const BatchLimits& limits) { m_limits = limits; }
    // Earlier turns must be computed anew: what is kept of them came about in another way.
    void forgetPrefixes() { m_prefixes.clear(); }  // scheduler thread
    // Runs `body` on the caller's thread while no step runs.
    void runAlone(const std::function<void()>& body);
    int64_t kvBytes() const { return m_pool.allocatedBytes(); }

private:
    struct Job;  // one request from arrival to its end
    struct StepPart {
        uint64_t request;
        bool prefill;
    };
    using Jobs = std::list<std::unique_ptr<Job>>;

    Status check(const Request& request, bool scored) const;
    void loop();
    bool waitForWork();
    uint64_t admissionDueNs() const;
    void takeArrivals();
    void dropCancelled();
    void admit();
    bool reserve(Job& job);
    void step();
    void formBatch();
    void addRows(Job& job, size_t count);
    void startStep();
    bool unwanted() const;  // REQUIRES m_mutex: the running step
    void rotate();
    bool growFor(Job& job, int64_t positions);
    void afterForward();
    void giveLogits(Job& job);
    void sample(Job& job, const BatchRow& row);
    void finish(Job& job, StopReason stop, Status status);
    void removeFinished();
    void finishAll();
    void writeRequestEvent(EventType type, const Job& job, uint64_t timeNs);

    const Setup m_setup;
    KvPool m_pool;
    PrefixCache m_prefixes;
    const int64_t m_scoreRows;  // most rows of one step whose prompts want all logits
    BatchLimits m_limits;
    Jobs m_waiting, m_active;  // scheduler thread; the active ones in the order of their turns
    int64_t m_reservedBlocks = 0;
    std::vector<BatchRow> m_rows;
    uint64_t m_stepStartNs = 0;

    mutable std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::unique_ptr<Job>> m_arrived;
    std::unordered_set<uint64_t> m_cancelled;
    size_t m_queued = 0;                    // arrived or waiting, not admitted
    std::vector<StepPart> m_stepParts;      // who has rows in the running step
    bool m_stop = false, m_woken = false;

    std::mutex m_stepMutex;
    std::condition_variable m_stepFree;
    std::atomic<int> m_aloneWaiting{0};
    std::atomic<bool> m_abort{false};  // the running step is not wanted
    std::atomic<int> m_count{0};
    std::atomic<int> m_activeCount{0};
    std::atomic<uint64_t> m_steps{0}, m_stepRequests{0}, m_stepRows{0};
    std::atomic<uint64_t> m_nextId{1};
    std::thread m_thread;
};

}  // namespace colibri
