// SPDX-License-Identifier: Apache-2.0
// Traces every kernel and copy of this process on the GPU with CUPTI. Needs no permission for
// counters. Costs memory of the GPU (kActivityGpuBytes at most) and about a microsecond per launch.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/telemetry/gpu_scope.h"
#include "profiler/gpu/activity_buffers.h"
#include "profiler/gpu/activity_records.h"
#include "profiler/gpu/cuda_driver.h"
#include "profiler/gpu/cupti_library.h"
#include "profiler/gpu/gpu_library.h"
#include "profiler/gpu/gpu_span.h"

namespace colibri {

struct ActivityOptions {
    size_t bufferBytes = size_t(1) << 20, mostBuffers = 64;  // of host memory
    size_t mostSpans = size_t(1) << 18;                      // that nobody has taken yet
    std::chrono::milliseconds flushEvery{50};
    GpuLibraryPaths libraries;
};
// CUPTI keeps records on the GPU until a buffer of the host takes them: 16 buffers of 3.2 MB.
constexpr size_t kActivityGpuBuffers = 16, kActivityGpuBytes = kActivityGpuBuffers * 3'200'000;

struct ActivityCounts {
    uint64_t spans = 0;           // handed out or waiting to be taken
    uint64_t droppedByCupti = 0;  // records for which CUPTI had no buffer
    uint64_t droppedSpans = 0;    // more than mostSpans: nobody took them
    uint64_t untimed = 0;         // records without times
    uint64_t buffers = 0, bytes = 0;
};

// Owner: whoever runs work on the GPU. The owner ends all CUDA calls before it destroys the source.
// All functions: any thread.
class ActivitySource final : public GpuScopeSink {
public:
    // Errors: Unsupported with reason and remedy: no driver, no CUPTI, another program traces.
    static Result<std::unique_ptr<ActivitySource>> start(const ActivityOptions& options = {});
    ~ActivitySource() override;  // stop()

    void push(uint64_t workId) override;
    void pop() override;

    // Appends the spans since the last call. They may be older than spans of an earlier call.
    void take(std::vector<GpuSpan>& out) EXCLUDES(m_mutex);
    // Collects what is complete now; the thread does so every `flushEvery`.
    void flush() EXCLUDES(m_flushMutex, m_mutex);
    // Ends the trace; the last spans can be taken afterwards. Returns status().
    Status stop() EXCLUDES(m_flushMutex, m_mutex);
    // Why the trace ended early: the GPU is lost, for example. Ok while it runs.
    Status status() const EXCLUDES(m_mutex);
    ActivityCounts counts() const EXCLUDES(m_mutex);

private:
    ActivitySource(const ActivityOptions& options, std::shared_ptr<CudaDriver> driver,
                   std::shared_ptr<CuptiLibrary> cupti);
    Status subscribe() EXCLUDES(m_flushMutex);
    void registerClock();
    Status enable();
    void run();
    void flushNow(uint32_t flags, bool last) REQUIRES(m_flushMutex);
    void readBuffer(const ActivityBuffer& buffer, int64_t offsetNs) REQUIRES(m_flushMutex);
    int64_t clockOffset() const;
    void detach() REQUIRES(m_flushMutex);

    const ActivityOptions m_options;
    const std::shared_ptr<CudaDriver> m_driver;
    const std::shared_ptr<CuptiLibrary> m_cupti;
    cupti::Subscriber m_subscriber = nullptr;
    bool m_ownClock = false;  // CUPTI uses CLOCK_MONOTONIC: the offset is 0
    ActivityBuffers m_buffers;
    std::atomic<bool> m_tracing = false;

    Mutex m_flushMutex;  // one flush at a time; held over calls of CUPTI
    ActivityRecords m_records GUARDED_BY(m_flushMutex);
    bool m_attached GUARDED_BY(m_flushMutex) = false;

    mutable Mutex m_mutex;
    Condition m_wake;
    bool m_stopping GUARDED_BY(m_mutex) = false;
    Status m_status GUARDED_BY(m_mutex);
    std::vector<GpuSpan> m_spans GUARDED_BY(m_mutex);
    ActivityCounts m_counts GUARDED_BY(m_mutex);
    std::thread m_thread;
};

}  // namespace colibri
