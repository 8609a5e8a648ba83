// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/platform/job.h"

#include "app/workbench/platform/text.h"

#include <pthread.h>

namespace colibri::ui {
namespace {

constexpr int kPullMs = 33;
constexpr double kRateSeconds = 2;

}  // namespace

Job::Job(Work work, QObject* parent) : QObject(parent), m_work(std::move(work)) {
    m_timer.setInterval(kPullMs);
    connect(&m_timer, &QTimer::timeout, this, &Job::pull);
}

Job::~Job() {
    cancel();
    if (m_thread.joinable()) m_thread.join();
}

void Job::start() {
    m_clock.start();
    m_timer.start();
    m_thread = std::thread([this] {
        pthread_setname_np(pthread_self(), "job");
        const ProgressFn progress = [this](const Progress& p) {
            const std::lock_guard lock(m_mutex);
            m_latest = p;
            m_fresh = true;
        };
        Status status;
        try {
            status = m_work(progress, &m_cancel);
        } catch (const std::bad_alloc&) {
            status = {Code::OutOfMemory, "not enough memory", "Close other programs and try again"};
        }
        {
            const std::lock_guard lock(m_mutex);
            m_status = std::move(status);
        }
        // The destructor joins this thread first, so the object is alive here.
        m_gui.post([this] { end(); });
    });
}

void Job::abandon() {
    cancel();
    m_abandoned = true;
    m_timer.stop();
    disconnect();  // no more signals; end() is still called
}

void Job::pull() {
    Progress latest;
    {
        const std::lock_guard lock(m_mutex);
        if (!m_fresh) return;
        m_fresh = false;
        latest = m_latest;
    }
    if (latest.total != m_shown.total || latest.done < m_shown.done) m_samples.clear();
    const double now = double(m_clock.nsecsElapsed()) / 1e9;
    m_samples.emplace_back(now, latest.done);
    while (m_samples.size() > 2 && m_samples.front().first < now - kRateSeconds)
        m_samples.pop_front();
    m_shown.stage = str(latest.stage);
    m_shown.done = latest.done;
    m_shown.total = latest.total;
    m_shown.unit = latest.unit;
    const double seconds = now - m_samples.front().first;
    const double amount = double(latest.done - m_samples.front().second);
    m_shown.rate = seconds > 0.2 ? amount / seconds : NAN;
    m_shown.secondsLeft = m_shown.rate > 0 && latest.total >= latest.done && latest.total > 0
                              ? double(latest.total - latest.done) / m_shown.rate
                              : NAN;
    emit progressed();
}

void Job::end() {
    m_thread.join();
    m_timer.stop();
    m_work = nullptr;  // destroys its captures
    deleteLater();
    if (m_abandoned) return;
    emit finished(m_status);
}

}  // namespace colibri::ui
