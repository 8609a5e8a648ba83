// SPDX-License-Identifier: GPL-3.0-or-later
// A thread that runs short tasks in order: tokenising a chat, saving it, closing an engine.
// Functions are thread-safe.
#pragma once

#include <QtGlobal>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace colibri::ui {

class Worker {
public:
    Worker() : m_thread([this] { run(); }) {}
    ~Worker() {  // runs the queued tasks, then joins
        {
            const std::lock_guard lock(m_mutex);
            m_stopping = true;
        }
        m_wake.notify_one();
        m_thread.join();
    }

    void waitForAll() {  // blocks until all tasks posted so far have run
        std::promise<void> done;
        post([&done] { done.set_value(); });
        done.get_future().wait();
    }

    void post(std::function<void()> task) {
        {
            const std::lock_guard lock(m_mutex);
            m_tasks.push_back(std::move(task));
        }
        m_wake.notify_one();
    }

private:
    void run() {
        std::unique_lock lock(m_mutex);
        while (true) {
            m_wake.wait(lock, [this] { return m_stopping || !m_tasks.empty(); });
            if (m_tasks.empty()) return;
            std::function<void()> task = std::move(m_tasks.front());
            m_tasks.pop_front();
            lock.unlock();
            try {
                task();
            } catch (const std::bad_alloc&) {
                qWarning("A task was dropped: out of memory");
            }
            task = nullptr;  // destroys its captures on this thread
            lock.lock();
        }
    }

    std::mutex m_mutex;  // guards m_tasks, m_stopping
    std::condition_variable m_wake;
    std::deque<std::function<void()>> m_tasks;
    bool m_stopping = false;
    std::thread m_thread;  // last: starts when the other members exist
};

}  // namespace colibri::ui
