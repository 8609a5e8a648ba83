// SPDX-License-Identifier: Apache-2.0
// Reads the counters of PM sampling on its own thread and averages them.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "profiler/gpu/gpu_library.h"
#include "profiler/gpu/gpu_reading.h"
#include "profiler/gpu/pm_session.h"

namespace colibri {

// All functions: any thread.
class PmSource {
public:
    // Errors: those of CudaDriver::open, CuptiLibrary::open and PmSession::start.
    static Result<std::unique_ptr<PmSource>> start(
        const GpuLibraryPaths& libraries, int deviceIndex,
        std::chrono::milliseconds decodeEvery = std::chrono::milliseconds(50));
    ~PmSource();  // waits for a decode that is in progress

    // Sets the shares that PM sampling measures, averaged over the time since the last call; those
    // of the last call if no sample has arrived since. Errors: the sampling has ended.
    Status read(GpuReading& reading) EXCLUDES(m_mutex);
    int metrics() const { return m_metrics; }  // the first so many of PmMetric are measured
    uint64_t samples() const EXCLUDES(m_mutex);
    uint64_t overflows() const EXCLUDES(m_mutex);

private:
    explicit PmSource(std::chrono::milliseconds decodeEvery) : m_decodeEvery(decodeEvery) {}
    void run();

    const std::chrono::milliseconds m_decodeEvery;
    std::unique_ptr<PmSession> m_session;  // of the thread, while it runs
    int m_metrics = 0;

    mutable Mutex m_mutex;
    Condition m_wake;
    bool m_stopping GUARDED_BY(m_mutex) = false;
    Status m_status GUARDED_BY(m_mutex);
    std::vector<PmSample> m_new GUARDED_BY(m_mutex);  // since the last read
    double m_last[kPmMetricCount] GUARDED_BY(m_mutex);
    uint64_t m_samples GUARDED_BY(m_mutex) = 0, m_overflows GUARDED_BY(m_mutex) = 0;
    std::thread m_thread;
};

}  // namespace colibri
