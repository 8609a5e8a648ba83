// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/pm_source.h"

#include <algorithm>
#include <cmath>

#include "engine/base/thread.h"

namespace colibri {
namespace {

constexpr size_t kMostUnreadSamples = 4096;  // 8 s; a reader that is later gets the newest

// The mean over the samples, weighted by their time.
double meanPercent(const std::vector<PmSample>& samples, int metric) {
    double sum = 0, time = 0;
    for (const PmSample& sample : samples) {
        if (std::isnan(sample.percent[metric])) continue;
        sum += sample.percent[metric] * double(sample.durationNs);
        time += double(sample.durationNs);
    }
    return time > 0 ? sum / time : NAN;
}

}  // namespace

Result<std::unique_ptr<PmSource>> PmSource::start(const GpuLibraryPaths& libraries, int deviceIndex,
                                                  std::chrono::milliseconds decodeEvery) {
    Result<std::shared_ptr<CudaDriver>> driver = CudaDriver::open(libraries.driver);
    if (!driver) return driver.status();
    Result<std::shared_ptr<CuptiLibrary>> cupti = CuptiLibrary::open(libraries.cupti);
    if (!cupti) return cupti.status();
    Result<std::unique_ptr<PmSession>> session = PmSession::start(*driver, *cupti, deviceIndex);
    if (!session) return session.status();
    auto source = std::unique_ptr<PmSource>(new PmSource(decodeEvery));
    source->m_session = std::move(*session);
    source->m_metrics = source->m_session->metrics();
    {
        MutexLock lock(source->m_mutex);
        std::fill(std::begin(source->m_last), std::end(source->m_last), NAN);
    }
    COLIBRI_TRY(startThread(source->m_thread, "gpu-counters", [s = source.get()] { s->run(); }));
    return source;
}

PmSource::~PmSource() {
    {
        MutexLock lock(m_mutex);
        m_stopping = true;
    }
    m_wake.notifyAll();
    if (m_thread.joinable()) m_thread.join();
}

void PmSource::run() {
    std::vector<PmSample> samples;
    MutexLock lock(m_mutex);
    while (!m_stopping && m_status.ok()) {
        m_wake.waitFor(m_mutex, m_decodeEvery);
        if (m_stopping) return;
        samples.clear();
        Status status;
        {
            MutexRelease release(m_mutex);
            status = m_session->decode(samples);
        }
        m_status = status;
        m_samples += samples.size();
        m_overflows = m_session->overflows();
        m_new.insert(m_new.end(), samples.begin(), samples.end());
        if (m_new.size() > kMostUnreadSamples) {
            m_new.erase(m_new.begin(), m_new.end() - ptrdiff_t(kMostUnreadSamples));
        }
    }
}

Status PmSource::read(GpuReading& reading) {
    MutexLock lock(m_mutex);
    if (!m_status.ok()) return m_status;
    for (int metric = 0; metric < kPmMetricCount; ++metric) {
        const double mean = meanPercent(m_new, metric);
        if (!std::isnan(mean)) m_last[metric] = std::clamp(mean / 100, 0.0, 1.0);
    }
    m_new.clear();
    reading.smUtilisation = m_last[int(PmMetric::SmActive)];
    reading.dramThroughput = m_last[int(PmMetric::DramThroughput)];
    reading.busy = m_last[int(PmMetric::GpuActive)];
    return {};
}

uint64_t PmSource::samples() const {
    MutexLock lock(m_mutex);
    return m_samples;
}

uint64_t PmSource::overflows() const {
    MutexLock lock(m_mutex);
    return m_overflows;
}

}  // namespace colibri
