// SPDX-License-Identifier: Apache-2.0
// Produces items on several threads and consumes them in order: conversion reads and encodes on all
// cores and writes sequentially.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

// The ring behind makeInOrder().
template <typename T, typename Make, typename Take>
class InOrder {
public:
    InOrder(int64_t count, int threads, const Make& make, const Take& take)
        : m_count(count),
          m_threads(threads),
          m_make(make),
          m_take(take),
          m_ring(size_t(threads) + 2) {}
    ~InOrder() {
        {
            std::lock_guard lock(m_mutex);
            m_stop = true;
        }
        m_taken.notify_all();
    }  // then the threads are joined

    // Once.
    Status run() {
        start();
        for (int64_t i = 0; i < m_count; ++i) {
            Slot& slot = m_ring[size_t(i) % m_ring.size()];
            if (m_workers.empty()) {
                COLIBRI_TRY(m_make(i, slot.thing));
            } else {
                waitFor(slot);
                if (slot.thrown) std::rethrow_exception(slot.thrown);
                COLIBRI_TRY(slot.status);
            }
            COLIBRI_TRY(m_take(i, slot.thing));
            std::lock_guard lock(m_mutex);
            ++m_done;
            m_taken.notify_all();
        }
        return {};
    }

private:
    struct Slot {
        T thing;
        Status status;
        std::exception_ptr thrown;
        bool ready = false;
    };

    void start() {
        for (int t = 0; t < m_threads; ++t) {
            try {
                m_workers.emplace_back([this] { work(); });
            } catch (const std::system_error&) {  // no more threads available: fewer are enough
                break;
            }
        }
    }

    void waitFor(Slot& slot) {
        std::unique_lock lock(m_mutex);
        m_made.wait(lock, [&] { return slot.ready; });
        slot.ready = false;
    }

    void work() {
        const auto ahead = int64_t(m_ring.size());
        std::unique_lock lock(m_mutex);
        while (true) {
            m_taken.wait(lock,
                         [&] { return m_stop || m_next == m_count || m_next < m_done + ahead; });
            if (m_stop || m_next == m_count) return;
            const int64_t i = m_next++;
            Slot& slot = m_ring[size_t(i % ahead)];
            lock.unlock();
            try {
                slot.status = m_make(i, slot.thing);
            } catch (...) {
                slot.thrown = std::current_exception();
            }
            lock.lock();
            slot.ready = true;
            m_made.notify_one();
        }
    }

    const int64_t m_count;
    const int m_threads;
    const Make& m_make;
    const Take& m_take;
    std::vector<Slot> m_ring;  // written by the thread that makes, until it is ready
    std::mutex m_mutex;        // guards the following, and Slot::ready
    std::condition_variable m_made, m_taken;
    int64_t m_next = 0, m_done = 0;  // to be made, taken
    bool m_stop = false;
    std::vector<std::jthread> m_workers;  // joined first
};

// Calls make(i, thing) for i in [0, count) on `threads` new threads, a few items ahead of
// take(i, thing), which the calling thread calls in order. Each T is reused for later items.
// Returns the first error in order, or rethrows an exception of make, after every thread has ended.
template <typename T, typename Make, typename Take>
Status makeInOrder(int64_t count, int threads, const Make& make, const Take& take) {
    return InOrder<T, Make, Take>(count, int(std::min<int64_t>(threads, count)), make, take).run();
}

}  // namespace colibri
