// SPDX-License-Identifier: GPL-3.0-or-later
// A long task on its own thread, with progress and cancel.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>
#include <atomic>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "app/workbench/platform/gui_queue.h"
#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri::ui {

struct JobProgress {
    QString stage;
    uint64_t done = 0, total = 0;  // total 0: not known
    QString unit = "bytes";
    double rate = NAN;  // units per second over the last two seconds
    double secondsLeft = NAN;
};

// Created, started and destroyed on the GUI thread. The work may access only data it owns; its
// results go through a shared object that is read after finished().
class Job : public QObject {
    Q_OBJECT

public:
    using Work = std::function<Status(const ProgressFn&, const CancelFlag*)>;

    explicit Job(Work work, QObject* parent = nullptr);
    ~Job() override;  // cancels and joins

    void start();
    void cancel() { m_cancel.store(true); }
    bool cancelling() const { return m_cancel.load(); }
    // The result is no longer needed: cancels, emits no signals, and deletes itself when the thread
    // has ended.
    void abandon();
    const JobProgress& progress() const { return m_shown; }

signals:
    void progressed();                             // at most 30 times a second
    void finished(const colibri::Status& status);  // once

private:
    void pull();
    void end();

    GuiQueue m_gui;
    Work m_work;
    CancelFlag m_cancel{false};
    std::thread m_thread;
    std::mutex m_mutex;  // guards m_latest, m_fresh, m_status
    Progress m_latest;
    bool m_fresh = false;
    Status m_status;
    QTimer m_timer;
    QElapsedTimer m_clock;
    JobProgress m_shown;
    std::deque<std::pair<double, uint64_t>> m_samples;  // seconds, done
    bool m_abandoned = false;
};

}  // namespace colibri::ui
