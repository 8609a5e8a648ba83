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

// Calls make(i, thing) for i in [0, count) on `threads` new threads, a few items ahead of
// take(i, thing), which the calling thread calls in order. Each T is reused for later items.
// Returns the first error in order, or rethrows an exception of make, after every thread has ended.
template <typename T, typename Make, typename Take>
Status makeInOrder(int64_t count, int threads, const Make& make, const Take& take) {
    struct Slot {
        T thing;
        Status status;
        std::exception_ptr thrown;
        bool ready = false;
    };
    threads = int(std::min<int64_t>(threads, count));
    std::vector<Slot> ring(size_t(threads) + 2);
    const auto ahead = int64_t(ring.size());
    std::mutex mutex;
    std::condition_variable made, taken;
    int64_t next = 0, done = 0;
    bool stop = false;

    const auto work = [&] {
        std::unique_lock lock(mutex);
        while (true) {
            taken.wait(lock, [&] { return stop || next == count || next < done + ahead; });
            if (stop || next == count) return;
            const int64_t i = next++;
            Slot& slot = ring[size_t(i % ahead)];
            lock.unlock();
            try {
                slot.status = make(i, slot.thing);
            } catch (...) {
                slot.thrown = std::current_exception();
            }
            lock.lock();
            slot.ready = true;
            made.notify_one();
        }
    };
    std::vector<std::jthread> workers;
    struct Stop {  // runs before the threads are joined, on every exit
        std::mutex& mutex;
        std::condition_variable& taken;
        bool& stop;
        ~Stop() {
            std::lock_guard lock(mutex);
            stop = true;
            taken.notify_all();
        }
    } stopAtEnd{mutex, taken, stop};
    for (int t = 0; t < threads; ++t) {
        try {
            workers.emplace_back(work);
        } catch (const std::system_error&) {  // no more threads available: fewer are enough
            break;
        }
    }
    for (int64_t i = 0; workers.empty() && i < count; ++i) {
        COLIBRI_TRY(make(i, ring[0].thing));
        COLIBRI_TRY(take(i, ring[0].thing));
    }
    if (workers.empty()) return {};

    for (int64_t i = 0; i < count; ++i) {
        Slot& slot = ring[size_t(i % ahead)];
        {
            std::unique_lock lock(mutex);
            made.wait(lock, [&] { return slot.ready; });
            slot.ready = false;
        }
        if (slot.thrown) std::rethrow_exception(slot.thrown);
        COLIBRI_TRY(slot.status);
        COLIBRI_TRY(take(i, slot.thing));
        std::lock_guard lock(mutex);
        ++done;
        taken.notify_all();
    }
    return {};
}

}  // namespace colibri
