// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/activity_source.h"

#include <algorithm>

#include "engine/base/thread.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {
namespace {

// Kernels run as they would without the trace; the external ids join them to the engine's work.
constexpr cupti::ActivityKind kTracedKinds[] = {cupti::kConcurrentKernel, cupti::kMemcpy,
                                                cupti::kMemcpyPeer, cupti::kMemset,
                                                cupti::kExternalCorrelation};

void ignoreCallback(void*, uint32_t, uint32_t, const void*) {}

}  // namespace

ActivitySource::ActivitySource(const ActivityOptions& options, std::shared_ptr<CudaDriver> driver,
                               std::shared_ptr<CuptiLibrary> cupti)
    : m_options(options),
      m_driver(std::move(driver)),
      m_cupti(std::move(cupti)),
      m_buffers(options.bufferBytes, options.mostBuffers) {}

Result<std::unique_ptr<ActivitySource>> ActivitySource::start(const ActivityOptions& options) {
    // Without a driver some of CUPTI's functions crash, so the driver comes first.
    Result<std::shared_ptr<CudaDriver>> driver = CudaDriver::open(options.libraries.driver);
    if (!driver) return driver.status();
    Result<std::shared_ptr<CuptiLibrary>> cupti = CuptiLibrary::open(options.libraries.cupti);
    if (!cupti) return cupti.status();
    auto source = std::unique_ptr<ActivitySource>(new ActivitySource(options, *driver, *cupti));
    if (!source->m_buffers.install()) {
        return Status(Code::Busy, "this process traces the GPU already",
                      "Close the other model that runs on the GPU");
    }
    // Another tool may hold CUPTI, whose clock and limits are those of the process. So nothing is
    // changed before the subscription.
    COLIBRI_TRY(source->subscribe());
    source->registerClock();
    COLIBRI_TRY(source->enable());
    COLIBRI_TRY(startThread(source->m_thread, "gpu-activity", [s = source.get()] { s->run(); }));
    return source;
}

ActivitySource::~ActivitySource() {
    (void)stop();
}

void ActivitySource::registerClock() {
    const cupti::Functions& fn = m_cupti->fn();
    size_t limit = kActivityGpuBuffers, size = sizeof limit;
    // A limit or clock that CUPTI refuses is no reason to give up: the default limit is larger,
    // and the offset of CUPTI's own clock is measured.
    (void)fn.activitySetAttribute(cupti::kDeviceBufferPoolLimit, &size, &limit);
    m_ownClock = fn.activityRegisterTimestamp(monotonicNs) == cupti::kSuccess;
}

Status ActivitySource::subscribe() {
    char holder[cupti::kOldSubscriberNameBytes + 1] = {};
    cupti::SubscriberParams params{.structSize = sizeof params,
                                   .subscriberName = "Colibri Workbench",
                                   .oldSubscriberName = holder,
                                   .oldSubscriberSize = cupti::kOldSubscriberNameBytes};
    m_cupti->addUser();
    const cupti::Result result =
        m_cupti->fn().subscribe(&m_subscriber, ignoreCallback, nullptr, &params);
    if (result == cupti::kSuccess) {
        m_cupti->setSubscribed();
        MutexLock lock(m_flushMutex);
        m_attached = true;
        return {};
    }
    m_cupti->removeUser();
    if (result == cupti::kMultipleSubscribers) {
        const std::string who = holder[0] ? holder : "another tool";
        return {Code::Unsupported, "kernels cannot be traced: " + who + " traces this process",
                "Start this program outside Nsight, cuda-gdb and other profilers"};
    }
    return m_cupti->status(result, "kernels cannot be traced");
}

Status ActivitySource::enable() {
    const cupti::Functions& fn = m_cupti->fn();
    constexpr const char* kWhat = "kernels cannot be traced";
    COLIBRI_TRY(m_cupti->status(
        fn.activityRegisterCallbacks(ActivityBuffers::requested, ActivityBuffers::completed),
        kWhat));
    for (const cupti::ActivityKind kind : kTracedKinds) {
        COLIBRI_TRY(m_cupti->status(fn.activityEnable(kind), kWhat));
    }
    // CUPTI writes external ids only beside records of calls. A call that this version does not
    // have costs only the ids of its spans.
    for (const uint32_t call : cupti::kRuntimeCalls) (void)fn.activityEnableRuntimeApi(call, 1);
    m_tracing = true;
    return {};
}

void ActivitySource::push(uint64_t workId) {
    if (m_tracing) (void)m_cupti->fn().pushExternalId(cupti::kExternalKindCustom0, workId);
}

void ActivitySource::pop() {
    uint64_t last = 0;
    if (m_tracing) (void)m_cupti->fn().popExternalId(cupti::kExternalKindCustom0, &last);
}

void ActivitySource::run() {
    MutexLock lock(m_mutex);
    while (!m_stopping && m_status.ok()) {
        m_wake.waitFor(m_mutex, m_options.flushEvery);
        if (m_stopping) return;
        MutexRelease release(m_mutex);
        flush();
    }
}

void ActivitySource::flush() {
    MutexLock lock(m_flushMutex);
    if (m_attached) flushNow(0, false);
}

// The distance of CUPTI's clock from CLOCK_MONOTONIC, from the pair of readings that took least.
int64_t ActivitySource::clockOffset() const {
    if (m_ownClock) return 0;
    constexpr int kReadings = 8;
    int64_t offset = 0;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < kReadings; ++i) {
        uint64_t theirs = 0;
        const uint64_t before = monotonicNs();
        if (m_cupti->fn().getTimestamp(&theirs) != cupti::kSuccess) break;
        const uint64_t took = monotonicNs() - before;
        if (took >= least) continue;
        least = took;
        offset = int64_t(before + took / 2) - int64_t(theirs);
    }
    return offset;
}

void ActivitySource::flushNow(uint32_t flags, bool last) {
    const cupti::Functions& fn = m_cupti->fn();
    const cupti::Result flushed = fn.activityFlushAll(flags);
    const int64_t offset = clockOffset();
    uint64_t buffers = 0, bytes = 0;
    for (ActivityBuffer& buffer : m_buffers.takeCompleted()) {
        readBuffer(buffer, offset);
        ++buffers;
        bytes += buffer.validBytes;
        m_buffers.recycle(std::move(buffer));
    }
    size_t dropped = 0;
    (void)fn.activityDropped(nullptr, 0, &dropped);
    std::vector<GpuSpan> spans;
    m_records.endRound(spans, last);

    MutexLock lock(m_mutex);
    m_counts.buffers += buffers;
    m_counts.bytes += bytes;
    m_counts.droppedByCupti += dropped;
    m_counts.untimed = m_records.untimed();
    const size_t room = m_options.mostSpans - std::min(m_options.mostSpans, m_spans.size());
    const size_t kept = std::min(room, spans.size());
    m_counts.spans += kept;
    m_counts.droppedSpans += spans.size() - kept;
    m_spans.insert(m_spans.end(), spans.begin(), spans.begin() + ptrdiff_t(kept));
    if (flushed != cupti::kSuccess && m_status.ok() && !last) {
        m_status = m_cupti->status(flushed, "the trace of kernels ended");
    }
}

void ActivitySource::readBuffer(const ActivityBuffer& buffer, int64_t offsetNs) {
    cupti::ActivityRecord* record = nullptr;
    while (m_cupti->fn().activityNextRecord(buffer.bytes.get(), buffer.validBytes, &record) ==
           cupti::kSuccess) {
        m_records.add(*record, offsetNs);
    }
}

void ActivitySource::take(std::vector<GpuSpan>& out) {
    MutexLock lock(m_mutex);
    out.insert(out.end(), m_spans.begin(), m_spans.end());
    m_spans.clear();
}

Status ActivitySource::stop() {
    m_tracing = false;
    {
        MutexLock lock(m_mutex);
        m_stopping = true;
    }
    m_wake.notifyAll();
    if (m_thread.joinable()) m_thread.join();
    MutexLock lock(m_flushMutex);
    if (m_attached) detach();
    return status();
}

void ActivitySource::detach() {
    const cupti::Functions& fn = m_cupti->fn();
    flushNow(cupti::kFlushForced, true);
    for (const uint32_t call : cupti::kRuntimeCalls) (void)fn.activityEnableRuntimeApi(call, 0);
    for (const cupti::ActivityKind kind : kTracedKinds) (void)fn.activityDisable(kind);
    (void)fn.unsubscribe(m_subscriber);
    m_attached = false;
    m_cupti->removeUser();
}

Status ActivitySource::status() const {
    MutexLock lock(m_mutex);
    return m_status;
}

ActivityCounts ActivitySource::counts() const {
    MutexLock lock(m_mutex);
    return m_counts;
}

}  // namespace colibri
