// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace colibri {

namespace {

// About 30 us of spinning on current processors, then looking again as often as others leave the
// processor free: longer than the serial parts between two regions of a decode step, shorter than
// anyone notices as load. Waking a sleeper takes a virtual machine up to a millisecond.
constexpr int kSpins = 1500;
constexpr std::chrono::milliseconds kYielding{2};
// Bytes to fetch in advance: what memory delivers during the longest serial part.
constexpr int64_t kWarmBytes = 128 << 10;
constexpr int64_t kLine = 64;
constexpr uint64_t kClosed = 0xffffffff;  // a chunk number that no region has

inline void cpuRelax() {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

inline void fetchLine(const std::byte* address) {
    __builtin_prefetch(address, 0, 2);
}

}  // namespace

// The ticket packs the region's number (high half) and its next chunk (low half). A worker claims a
// chunk by compare-and-swap on the whole word, so a claim can only succeed while its region is
// current. The claimed chunk is not done yet, so the job fields stay as they are: they are plain,
// written before the ticket opens and read after a claim. Between two regions the ticket is closed.
struct ThreadPool::Impl {
    alignas(64) std::atomic<uint64_t> ticket{0};
    alignas(64) std::atomic<uint32_t> done{0};
    alignas(64) std::atomic<uint32_t> chunks{0};
    const IndexedBody* body = nullptr;
    std::vector<int64_t> bounds;  // chunk i is [bounds[i], bounds[i + 1])
    std::unique_ptr<std::atomic<const std::byte*>[]> streams;  // per thread
    alignas(64) std::atomic<uint32_t> warmSerial{0};
    alignas(64) std::atomic<int> sleepers{0};
    std::atomic<bool> stop{false};
    std::atomic<bool> threw{false};  // a chunk of the region; `thrown` is read when all are done
    std::exception_ptr thrown;

    std::mutex mutex;  // only for sleeping
    std::condition_variable wake;
    std::vector<std::thread> workers;
    std::vector<int> home, avoided;  // cores
    cpu_set_t allowed;               // of the process, before any were chosen

    int64_t nextCut(int64_t from, int64_t items, int64_t grain) const;
    void cut(int64_t items, int64_t grain);
    bool runOne(int thread);
    void runChunk(int thread, size_t index);
    bool idle(uint64_t seen) const { return ticket.load(std::memory_order_acquire) >> 32 == seen; }
    bool awaitWork(int thread, uint64_t seen, uint32_t& fetched) const;
    void work(int thread);
    void fetch(int thread, uint64_t seen) const;
    void start(int threads);
    void place();
    void join();
};

// Chunks that shrink: each thread's share of half of what is left. Few claims for the bulk, and
// all threads end within one small chunk of each other.
int64_t ThreadPool::Impl::nextCut(int64_t from, int64_t items, int64_t grain) const {
    const auto parts = 2 * (int64_t(workers.size()) + 1);
    const int64_t left = items - from;
    return from + std::min(left, std::max(grain, (left + parts - 1) / parts));
}

void ThreadPool::Impl::cut(int64_t items, int64_t grain) {
    bounds.assign(1, 0);
    while (bounds.back() < items) bounds.push_back(nextCut(bounds.back(), items, grain));
}

// Claims and runs one chunk of the current region; false when none is left.
bool ThreadPool::Impl::runOne(int thread) {
    uint64_t t = ticket.load(std::memory_order_acquire);
    // acquire: who sees the next region's count also sees the ticket closed, and fails below
    while (uint32_t(t) < chunks.load(std::memory_order_acquire)) {
        if (!ticket.compare_exchange_weak(t, t + 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
            continue;
        }
        runChunk(thread, uint32_t(t));
        return true;
    }
    return false;
}

// What it throws, the first of the region, goes to the caller when all chunks are done.
void ThreadPool::Impl::runChunk(int thread, size_t index) {
    try {
        (*body)(thread, bounds[index], bounds[index + 1]);
    } catch (...) {
        if (!threw.exchange(true, std::memory_order_relaxed)) thrown = std::current_exception();
    }
    done.fetch_add(1, std::memory_order_release);
}

// Prefetches never fault, so the memory of a stream may be unmapped.
void ThreadPool::Impl::fetch(int thread, uint64_t seen) const {
    const std::byte* stream = streams[size_t(thread)].load(std::memory_order_relaxed);
    if (!stream) return;
    for (int64_t at = 0; at < kWarmBytes && idle(seen); at += 8 * kLine) {
        for (int64_t line = at; line < at + 8 * kLine; line += kLine) fetchLine(stream + line);
    }
}

// Until there is a region after `seen`, awake; false: it is time to sleep.
bool ThreadPool::Impl::awaitWork(int thread, uint64_t seen, uint32_t& fetched) const {
    using Clock = std::chrono::steady_clock;
    Clock::time_point until{};
    for (int spins = 0; idle(seen) && !stop.load(std::memory_order_relaxed); ++spins) {
        if (const uint32_t serial = warmSerial.load(std::memory_order_acquire); serial != fetched) {
            fetched = serial;
            fetch(thread, seen);
        }
        if (spins < kSpins) {
            cpuRelax();
            continue;
        }
        if (spins == kSpins) until = Clock::now() + kYielding;
        if (Clock::now() >= until) return false;
        std::this_thread::yield();
    }
    return true;
}

void ThreadPool::Impl::work(int thread) {
    uint32_t fetched = warmSerial.load(std::memory_order_relaxed);
    while (!stop.load(std::memory_order_acquire)) {
        // Read first: a region that opens after a claim has failed must not count as seen.
        const uint64_t seen = ticket.load(std::memory_order_acquire) >> 32;
        while (runOne(thread)) {
        }
        if (awaitWork(thread, seen, fetched)) continue;
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
    streams = std::make_unique<std::atomic<const std::byte*>[]>(size_t(threads));
    workers.reserve(size_t(threads));
    try {
        for (int i = 1; i < threads; ++i) {
            workers.emplace_back([this, i] {
                pthread_setname_np(pthread_self(), ("compute-" + std::to_string(i)).c_str());
                work(i);
            });
        }
    } catch (...) {  // none may be left running
        join();
        throw;
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

// Affinity of the caller and the workers.
void ThreadPool::Impl::place() {
    cpu_set_t rest = allowed, cores;
    for (const int core : avoided) CPU_CLR(size_t(core), &rest);
    CPU_ZERO(&cores);
    for (const int core : home)
        if (CPU_ISSET(size_t(core), &rest)) CPU_SET(size_t(core), &cores);
    const auto tooFew = [&] { return CPU_COUNT(&cores) <= int(workers.size()); };
    if (tooFew()) cores = rest;
    if (tooFew()) cores = allowed;
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
    for (std::thread& t : workers) pthread_setaffinity_np(t.native_handle(), sizeof cores, &cores);
}

void ThreadPool::place(const std::vector<int>& home, const std::vector<int>& avoided) {
    if (home == m_impl->home && avoided == m_impl->avoided) return;
    m_impl->home = home;
    m_impl->avoided = avoided;
    m_impl->place();
}

ThreadPool::ThreadPool(int threads) : m_impl(std::make_unique<Impl>()) {
    CPU_ZERO(&m_impl->allowed);
    sched_getaffinity(0, sizeof m_impl->allowed, &m_impl->allowed);
    m_impl->start(std::max(1, threads));
}

ThreadPool::~ThreadPool() {
    m_impl->join();
}

int ThreadPool::threads() const {
    return int(m_impl->workers.size()) + 1;
}

void ThreadPool::resize(int threads) {
    if (std::max(1, threads) == this->threads()) return;
    m_impl->join();
    m_impl->start(std::max(1, threads));
    if (!m_impl->home.empty() || !m_impl->avoided.empty()) m_impl->place();
}

int64_t ThreadPool::chunkBegin(int64_t items, int64_t grain, int index) const {
    int64_t at = 0;
    for (int i = 0; i < index && at < items; ++i) at = m_impl->nextCut(at, items, grain);
    return at;
}

void ThreadPool::warm(int thread, const std::byte* stream) {
    m_impl->streams[size_t(thread)].store(stream, std::memory_order_relaxed);
}

void ThreadPool::warmed() {
    m_impl->warmSerial.fetch_add(1, std::memory_order_release);
}

void ThreadPool::parallelFor(int64_t items, int64_t grain,
                             const std::function<void(int64_t, int64_t)>& body) {
    parallelForIndexed(items, grain,
                       [&body](int, int64_t begin, int64_t end) { body(begin, end); });
}

void ThreadPool::parallelForIndexed(int64_t items, int64_t grain, const IndexedBody& body) {
    if (items <= 0) return;
    Impl& m = *m_impl;
    grain = std::max<int64_t>(grain, 1);
    if (m.workers.empty() || items <= grain) {
        body(0, 0, items);
        return;
    }
    const uint64_t region = (m.ticket.load(std::memory_order_relaxed) >> 32) + 1;
    m.ticket.store(region << 32 | kClosed, std::memory_order_release);
    m.body = &body;
    m.cut(items, grain);
    const auto chunks = uint32_t(m.bounds.size() - 1);
    m.done.store(0, std::memory_order_relaxed);
    m.chunks.store(chunks, std::memory_order_release);
    // The caller has the first chunk, so that workers start where their streams were warmed.
    m.ticket.store((region + 1) << 32 | 1, std::memory_order_seq_cst);
    if (m.sleepers.load(std::memory_order_seq_cst) > 0) {
        { std::lock_guard lock(m.mutex); }  // a worker between its check and its wait
        m.wake.notify_all();
    }
    m.runChunk(0, 0);
    while (m.runOne(0)) {
    }
    for (int spins = 0; m.done.load(std::memory_order_acquire) != chunks; ++spins) {
        if (spins < kSpins) {
            cpuRelax();
        } else {
            std::this_thread::yield();  // the worker was preempted: let it run
        }
    }
    if (m.threw.exchange(false, std::memory_order_relaxed)) {
        std::rethrow_exception(std::exchange(m.thrown, nullptr));
    }
}

}  // namespace colibri
