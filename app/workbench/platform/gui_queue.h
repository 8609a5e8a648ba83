// SPDX-License-Identifier: GPL-3.0-or-later
// Runs tasks from any thread on this object's thread, in order. Drops pending tasks when the object
// is destroyed. Unlike Qt's queued connections, ThreadSanitizer can follow this lock.
#pragma once

#include <QCoreApplication>
#include <QEvent>
#include <QObject>
#include <QPointer>
#include <functional>
#include <mutex>
#include <vector>

namespace colibri::ui {

class GuiQueue : public QObject {
public:
    void post(std::function<void()> task) {
        bool first;
        {
            const std::lock_guard lock(m_mutex);
            first = m_tasks.empty();
            m_tasks.push_back(std::move(task));
        }
        if (first) QCoreApplication::postEvent(this, new QEvent(QEvent::User));
    }

protected:
    void customEvent(QEvent*) override {
        std::vector<std::function<void()>> tasks;
        {
            const std::lock_guard lock(m_mutex);
            tasks.swap(m_tasks);
        }
        const QPointer<GuiQueue> self(this);  // a task may delete its owner
        for (const auto& task : tasks) {
            if (self) task();
        }
    }

private:
    std::mutex m_mutex;  // guards m_tasks
    std::vector<std::function<void()>> m_tasks;
};

}  // namespace colibri::ui
