// SPDX-License-Identifier: Apache-2.0
// A mutex, its scoped lock and a condition variable that clang's thread-safety analysis follows
// (-Wthread-safety; tests/engine/base/thread_safety checks the sources that use them). With other
// compilers the annotations are empty.
//
//     Mutex m_mutex;
//     int m_count GUARDED_BY(m_mutex);          // an access without the lock does not compile
//     void add() REQUIRES(m_mutex);             // the caller holds the lock
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define COLIBRI_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define COLIBRI_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(mutex) COLIBRI_THREAD_ANNOTATION(guarded_by(mutex))
#define REQUIRES(...) COLIBRI_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) COLIBRI_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRED_BEFORE(...) COLIBRI_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))

namespace colibri {

class COLIBRI_THREAD_ANNOTATION(capability("mutex")) Mutex {
public:
    void lock() COLIBRI_THREAD_ANNOTATION(acquire_capability()) { m_mutex.lock(); }
    void unlock() COLIBRI_THREAD_ANNOTATION(release_capability()) { m_mutex.unlock(); }

private:
    friend class Condition;
    std::mutex m_mutex;
};

// Holds the mutex during its lifetime.
class COLIBRI_THREAD_ANNOTATION(scoped_lockable) MutexLock {
public:
    explicit MutexLock(Mutex& mutex) COLIBRI_THREAD_ANNOTATION(acquire_capability(mutex))
        : m_mutex(mutex) {
        m_mutex.lock();
    }
    ~MutexLock() COLIBRI_THREAD_ANNOTATION(release_capability()) { m_mutex.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex& m_mutex;
};

// Releases a mutex that the caller holds, during its lifetime.
class COLIBRI_THREAD_ANNOTATION(scoped_lockable) MutexRelease {
public:
    explicit MutexRelease(Mutex& mutex) COLIBRI_THREAD_ANNOTATION(release_capability(mutex))
        : m_mutex(mutex) {
        m_mutex.unlock();
    }
    ~MutexRelease() COLIBRI_THREAD_ANNOTATION(release_capability()) { m_mutex.lock(); }
    MutexRelease(const MutexRelease&) = delete;
    MutexRelease& operator=(const MutexRelease&) = delete;

private:
    Mutex& m_mutex;
};

class Condition {
public:
    void notifyAll() { m_condition.notify_all(); }
    void notifyOne() { m_condition.notify_one(); }
    // As always with condition variables, the wait may end early.
    void wait(Mutex& mutex) REQUIRES(mutex) {
        std::unique_lock lock(mutex.m_mutex, std::adopt_lock);
        m_condition.wait(lock);
        lock.release();
    }
    void waitFor(Mutex& mutex, std::chrono::nanoseconds time) REQUIRES(mutex) {
        std::unique_lock lock(mutex.m_mutex, std::adopt_lock);
        m_condition.wait_for(lock, time);
        lock.release();
    }

    void waitUntil(Mutex& mutex, std::chrono::steady_clock::time_point time) REQUIRES(mutex) {
        std::unique_lock lock(mutex.m_mutex, std::adopt_lock);
        m_condition.wait_until(lock, time);
        lock.release();
    }

private:
    std::condition_variable m_condition;
};

}  // namespace colibri
