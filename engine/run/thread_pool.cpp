// SPDX-License-Identifier: Apache-2.0
#include "engine/run/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace colibri {

namespace {

// About 30 us of spinning on current processors: longer than the serial parts between two regions
// of a decode step, shorter than anyone notices as load.
constexpr int kSpins = 1500;
// Chunks per thread: enough to even out threads that are slowed down by others.
constexpr int64_t kChunksPerThread = 8;
constexpr uint64_t kClosed = 0xffffffff;   // a chunk number that no region has

inline void cpuRelax() {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

// The ticket packs the region's number (high half) and its next chunk (low half). A worker claims a
// chunk by compare-and-swap on the whole word, so a claim can only succeed in the region whose job
// fields it has read: until that chunk is reported done, the caller does not touch them. Between
// two regions the ticket is closed while the job fields change.
struct ThreadPool::Impl {
    alignas(64) std::atomic<uint64_t> ticket{0};
    alignas(64) std::atomic<uint32_t> done{0};
    alignas(64) std::atomic<const IndexedBody*> body{nullptr};
    std::atomic<int64_t> items{0}, chunk{1};
    std::atomic<uint32_t> chunks{0};
    std::atomic<int> sleepers{0};
    std::atomic<bool> stop{false};

    std::mutex mutex;                 // only for sleeping
    std::condition_variable wake;
    std::vector<std::thread> workers;

    bool runOne(int thread);
    bool idle(uint64_t seen) const { return ticket.load(std::memory_order_acquire) >> 32 == seen; }
    void work(int thread, uint64_t seen);
    void start(int threads);
    void join();
};

// Claims and runs one chunk of the current region; false when none is left.
bool ThreadPool::Impl::runOne(int thread) {
    uint64_t t = ticket.load(std::memory_order_acquire);
    for (;;) {
        const auto index = uint32_t(t);
        // acquire: who sees the next region's count also sees the ticket closed, and fails below
        if (index >= chunks.load(std::memory_order_acquire)) return false;
        const IndexedBody* run = body.load(std::memory_order_relaxed);
        const int64_t size = chunk.load(std::memory_order_relaxed);
        const int64_t total = items.load(std::memory_order_relaxed);
        if (!ticket.compare_exchange_weak(t, t + 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
            continue;
        }
        const int64_t begin = int64_t(index) * size;
        (*run)(thread, begin, std::min(begin + size, total));
        done.fetch_add(1, std::memory_order_release);
        return true;
    }
}

void ThreadPool::Impl::work(int thread, uint64_t seen) {
    while (!stop.load(std::memory_order_acquire)) {
        while (runOne(thread)) {
        }
        seen = ticket.load(std::memory_order_acquire) >> 32;
        int spins = 0;
        while (idle(seen) && !stop.load(std::memory_order_relaxed) && spins < kSpins) {
            cpuRelax();
            ++spins;
        }
        if (spins < kSpins) continue;
        std::unique_lock lock(mutex);
        // seq_cst on both sides: either the caller sees this sleeper, or it sees the new ticket.
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        wake.wait(lock, [&] {
            return ticket.load(std::memory_order_seq_cst) >> 32 != seen || stop.load();
        });
        sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }
}

void ThreadPool::Impl::start(int threads) {
    stop.store(false);
    const uint64_t seen = ticket.load() >> 32;
    for (int i = 1; i < threads; ++i) {
        workers.emplace_back([this, i, seen] {
            pthread_setname_np(pthread_self(), ("compute-" + std::to_string(i)).c_str());
            work(i, seen);
        });
    }
}

void ThreadPool::Impl::join() {
    {
        std::lock_guard lock(mutex);
        stop.store(true);
    }
    wake.notify_all();
    for (std::thread& t : workers) t.join();
    workers.clear();
}

ThreadPool::ThreadPool(int threads) : m_impl(std::make_unique<Impl>()) {
    m_impl->start(std::max(1, threads));
}

ThreadPool::~ThreadPool() { m_impl->join(); }

int ThreadPool::threads() const { return int(m_impl->workers.size()) + 1; }

void ThreadPool::resize(int threads) {
    if (std::max(1, threads) == this->threads()) return;
    m_impl->join();
    m_impl->start(std::max(1, threads));
}

void ThreadPool::parallelFor(int64_t items, int64_t grain,
                             const std::function<void(int64_t, int64_t)>& body) {
    parallelForIndexed(items, grain, [&body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void ThreadPool::parallelForIndexed(int64_t items, int64_t grain, const IndexedBody& body) {
    if (items <= 0) return;
    Impl& m = *m_impl;
    const int64_t parts = threads() * kChunksPerThread;
    const int64_t chunk = std::max<int64_t>(std::max<int64_t>(grain, 1), (items + parts - 1) / parts);
    const int64_t chunks = (items + chunk - 1) / chunk;
    if (m.workers.empty() || chunks == 1) {
        body(0, 0, items);
        return;
    }
    const uint64_t region = (m.ticket.load(std::memory_order_relaxed) >> 32) + 1;
    m.ticket.store(region << 32 | kClosed, std::memory_order_release);
    m.body.store(&body, std::memory_order_relaxed);
    m.items.store(items, std::memory_order_relaxed);
    m.chunk.store(chunk, std::memory_order_relaxed);
    m.done.store(0, std::memory_order_relaxed);
    m.chunks.store(uint32_t(chunks), std::memory_order_release);
    m.ticket.store((region + 1) << 32, std::memory_order_seq_cst);
    if (m.sleepers.load(std::memory_order_seq_cst) > 0) {
        { std::lock_guard lock(m.mutex); }   // a worker between its check and its wait
        m.wake.notify_all();
    }
    while (m.runOne(0)) {
    }
    for (int spins = 0; m.done.load(std::memory_order_acquire) != uint32_t(chunks); ++spins) {
        if (spins < kSpins) {
            cpuRelax();
        } else {
            std::this_thread::yield();       // the worker was preempted: let it run
        }
    }
}

}  // namespace colibri
