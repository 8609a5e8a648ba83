// SPDX-License-Identifier: GPL-3.0-or-later
// Plays CUPTI: the entry points that the program uses, with its rules on order where a test depends
// on them. FAKE_VERSION: another version of the interface; FAKE_INCOMPLETE: without one function.
#include <cstdlib>
#include <cstring>
#include <deque>

#include "fake_gpu.h"
#include "profiler/gpu/cupti_functions.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION 130001
#endif

using namespace colibri::cupti;

namespace {

thread_local std::vector<uint64_t> t_externalIds;

struct Image {  // of counter data, as this library fills it
    uint64_t count;
    fake::Cupti::Sample samples[64];
};

class FakeCupti final : public fake::Cupti {
public:
    void reset() override {
        forget();
        recordsPerBuffer = 1000;
        reverseBuffers = externalIdsLate = keepBuffers = overflow = false;
        clockAheadNs = 0;
        dropped = 0;
        oldSubscriber.clear();
        chip = "GH100";
        unknownMetrics.clear();
        metricsInOnePass = 3;
        unsupportedBecause = 0;
        refusedModes.clear();
        acceptedMode = -1;
        std::lock_guard lock(m_work);
        enabled.clear();
        tracedCalls.clear();
        m_records.clear();
        m_late.clear();
        m_kept.clear();
        m_samples.clear();
        timestamp = nullptr;
    }

    void launch(const fake::Launch& work) override {
        std::lock_guard lock(m_work);
        const uint32_t correlation = ++m_correlation;
        // CUPTI writes external ids only beside the record of a call.
        const bool named = enabled.count(kExternalCorrelation) && tracedCalls.count(211);
        if (named && !t_externalIds.empty()) {
            ExternalCorrelationRecord record{};
            record.kind = kExternalCorrelation;
            record.externalKind = kExternalKindCustom0;
            record.externalId = t_externalIds.back();
            record.correlationId = correlation;
            add(externalIdsLate ? m_late : m_records, record);
        }
        const int64_t shift = timestamp ? 0 : clockAheadNs;
        const auto fill = [&](auto record, ActivityKind kind) {
            if (!enabled.count(kind)) return;
            record.kind = kind;
            record.start = work.startNs + uint64_t(shift);
            record.end = work.endNs + uint64_t(shift);
            record.deviceId = 0;
            record.streamId = work.stream;
            record.correlationId = correlation;
            add(m_records, record);
        };
        switch (work.kind) {
            case fake::Launch::Kernel: {
                KernelRecord record{};
                record.name = work.name;
                return fill(record, kConcurrentKernel);
            }
            case fake::Launch::Copy: {
                MemcpyRecord record{};
                record.copyKind = uint8_t(work.copyKind);
                record.bytes = work.bytes;
                return fill(record, kMemcpy);
            }
            case fake::Launch::PeerCopy: {
                MemcpyPeerRecord record{};
                record.bytes = work.bytes;
                return fill(record, kMemcpyPeer);
            }
            case fake::Launch::Memset: {
                MemsetRecord record{};
                record.bytes = work.bytes;
                return fill(record, kMemset);
            }
        }
    }

    struct Buffer {
        uint8_t* bytes = nullptr;
        size_t size = 0, valid = 0;
    };
    void flush() {
        std::lock_guard lock(m_work);
        std::vector<Buffer> buffers;
        while (!m_records.empty()) {
            Buffer buffer;
            size_t most = 0;
            requested(&buffer.bytes, &buffer.size, &most);
            for (size_t i = 0; i < recordsPerBuffer && !m_records.empty(); ++i) {
                const std::vector<uint8_t> record = m_records.front();
                m_records.pop_front();
                if (buffer.valid + record.size() > buffer.size) {
                    ++dropped;
                    continue;
                }
                std::memcpy(buffer.bytes + buffer.valid, record.data(), record.size());
                buffer.valid += record.size();
            }
            if (buffer.bytes) buffers.push_back(buffer);
        }
        std::swap(m_records, m_late);
        if (reverseBuffers) std::reverse(buffers.begin(), buffers.end());
        for (const Buffer& buffer : buffers) {
            if (keepBuffers) {
                m_kept.push_back(buffer);
            } else {
                completed(nullptr, 0, buffer.bytes, buffer.size, buffer.valid);
            }
        }
    }
    void completeLate() override {
        std::lock_guard lock(m_work);
        for (const Buffer& buffer : m_kept)
            completed(nullptr, 0, buffer.bytes, buffer.size, buffer.valid);
        m_kept.clear();
    }

    void addSamples(const std::vector<Sample>& samples) override {
        std::lock_guard lock(m_work);
        m_samples.insert(m_samples.end(), samples.begin(), samples.end());
    }
    void decode(PmDecodeParams& params) {
        std::lock_guard lock(m_work);
        auto& image = *reinterpret_cast<Image*>(params.counterData);
        while (!m_samples.empty() && image.count < std::size(image.samples)) {
            image.samples[image.count++] = m_samples.front();
            m_samples.pop_front();
        }
        params.stopReason = m_samples.empty() ? kEndOfRecords : kCounterDataFull;
        params.overflow = std::exchange(overflow, false);
    }

    BufferRequested requested = nullptr;
    BufferCompleted completed = nullptr;
    TimestampCallback timestamp = nullptr;
    std::set<uint32_t> enabled, tracedCalls;  // kinds; calls of the runtime

private:
    template <typename Record>
    static void add(std::deque<std::vector<uint8_t>>& records, const Record& record) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(&record);
        records.emplace_back(bytes, bytes + sizeof record);
    }

    std::mutex m_work;
    uint32_t m_correlation = 0;
    std::deque<std::vector<uint8_t>> m_records, m_late;
    std::vector<Buffer> m_kept;
    std::deque<Sample> m_samples;
};

FakeCupti g_cupti;

Result enterCupti(const char* symbol) {
    return Result(g_cupti.enter(symbol));
}

struct Host {
    int metrics = 0;
};

}  // namespace

#define CUPTI_ENTRY(symbol, ...) extern "C" Result symbol(__VA_ARGS__)
// One that only returns its scripted result.
#define CUPTI_PLAIN(symbol, ...)                     \
    CUPTI_ENTRY(symbol __VA_OPT__(, ) __VA_ARGS__) { \
        return enterCupti(#symbol);                  \
    }

extern "C" fake::Cupti* fakeCupti() {
    return &g_cupti;
}

CUPTI_ENTRY(cuptiGetVersion, uint32_t* version) {
    *version = FAKE_VERSION;
    return kSuccess;
}
CUPTI_ENTRY(cuptiGetResultString, Result result, const char** text) {
    *text = result == kUnknown ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_ERROR_OF_A_TEST";
    return kSuccess;
}
CUPTI_ENTRY(cuptiGetTimestamp, uint64_t* time) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    *time = uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec) +
            uint64_t(g_cupti.clockAheadNs);
    return kSuccess;
}
extern "C" Result cuptiFinalize() {
    return enterCupti("cuptiFinalize");
}
CUPTI_ENTRY(cuptiSubscribe_v2, Subscriber* subscriber, Callback, void*, SubscriberParams* params) {
    const Result result = enterCupti("cuptiSubscribe_v2");
    if (result == kMultipleSubscribers && params->oldSubscriberName) {
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
                 g_cupti.oldSubscriber.c_str());
    }
    *subscriber = &g_cupti;
    return result;
}
CUPTI_PLAIN(cuptiUnsubscribe, Subscriber)
CUPTI_PLAIN(cuptiActivitySetAttribute, uint32_t, size_t*, void*)
CUPTI_ENTRY(cuptiActivityRegisterTimestampCallback, TimestampCallback callback) {
    const Result result = enterCupti("cuptiActivityRegisterTimestampCallback");
    if (result == kSuccess) g_cupti.timestamp = callback;
    return result;
}
CUPTI_ENTRY(cuptiActivityRegisterCallbacks, BufferRequested requested, BufferCompleted completed) {
    g_cupti.requested = requested;
    g_cupti.completed = completed;
    return enterCupti("cuptiActivityRegisterCallbacks");
}
CUPTI_ENTRY(cuptiActivityEnable, ActivityKind kind) {
    g_cupti.enabled.insert(kind);
    return enterCupti("cuptiActivityEnable");
}
CUPTI_ENTRY(cuptiActivityDisable, ActivityKind kind) {
    g_cupti.enabled.erase(kind);
    return enterCupti("cuptiActivityDisable");
}
CUPTI_ENTRY(cuptiActivityEnableRuntimeApi, uint32_t call, uint8_t on) {
    if (on) {
        g_cupti.tracedCalls.insert(call);
    } else {
        g_cupti.tracedCalls.erase(call);
    }
    return enterCupti("cuptiActivityEnableRuntimeApi");
}
#ifndef FAKE_INCOMPLETE
CUPTI_ENTRY(cuptiActivityFlushAll, uint32_t) {
    const Result result = enterCupti("cuptiActivityFlushAll");
    if (result == kSuccess) g_cupti.flush();
    return result;
}
#endif
CUPTI_ENTRY(cuptiActivityGetNextRecord, uint8_t* buffer, size_t valid, ActivityRecord** record) {
    uint8_t* next = buffer;
    if (*record) {
        const uint32_t kind = (*record)->kind;
        next = reinterpret_cast<uint8_t*>(*record) +
               (kind == kConcurrentKernel ? sizeof(KernelRecord)
                : kind == kMemcpy         ? sizeof(MemcpyRecord)
                : kind == kMemcpyPeer     ? sizeof(MemcpyPeerRecord)
                : kind == kMemset         ? sizeof(MemsetRecord)
                                          : sizeof(ExternalCorrelationRecord));
    }
    if (next >= buffer + valid) return kMaxLimitReached;
    *record = reinterpret_cast<ActivityRecord*>(next);
    return kSuccess;
}
CUPTI_ENTRY(cuptiActivityGetNumDroppedRecords, Context, uint32_t, size_t* count) {
    *count = std::exchange(g_cupti.dropped, 0);
    return enterCupti("cuptiActivityGetNumDroppedRecords");
}
CUPTI_ENTRY(cuptiActivityPushExternalCorrelationId, uint32_t, uint64_t id) {
    t_externalIds.push_back(id);
    return enterCupti("cuptiActivityPushExternalCorrelationId");
}
CUPTI_ENTRY(cuptiActivityPopExternalCorrelationId, uint32_t, uint64_t* id) {
    if (t_externalIds.empty()) return Result(18);
    *id = t_externalIds.back();
    t_externalIds.pop_back();
    return enterCupti("cuptiActivityPopExternalCorrelationId");
}

CUPTI_PLAIN(cuptiProfilerInitialize, ProfilerParams*)
CUPTI_PLAIN(cuptiProfilerDeInitialize, ProfilerParams*)
CUPTI_ENTRY(cuptiProfilerDeviceSupported, DeviceSupportedParams* params) {
    uint32_t* levels = &params->isSupported;
    for (int i = 0; i < 7; ++i) levels[i] = kSupported;
    if (g_cupti.unsupportedBecause) levels[0] = levels[g_cupti.unsupportedBecause] = kUnsupported;
    return params->api == kApiPmSampling ? enterCupti("cuptiProfilerDeviceSupported")
                                         : kInvalidParameter;
}
CUPTI_ENTRY(cuptiDeviceGetChipName, ChipNameParams* params) {
    params->chipName = g_cupti.chip.c_str();
    return enterCupti("cuptiDeviceGetChipName");
}
CUPTI_ENTRY(cuptiProfilerHostInitialize, HostInitializeParams* params) {
    const Result result = enterCupti("cuptiProfilerHostInitialize");
    params->host = result == kSuccess ? new Host : nullptr;
    return result;
}
CUPTI_ENTRY(cuptiProfilerHostDeinitialize, HostDeinitializeParams* params) {
    delete static_cast<Host*>(params->host);
    return enterCupti("cuptiProfilerHostDeinitialize");
}
CUPTI_ENTRY(cuptiProfilerHostConfigAddMetrics, HostAddMetricsParams* params) {
    for (size_t i = 0; i < params->numMetrics; ++i) {
        if (g_cupti.unknownMetrics.count(params->metricNames[i])) return kInvalidMetricName;
    }
    static_cast<Host*>(params->host)->metrics += int(params->numMetrics);
    return enterCupti("cuptiProfilerHostConfigAddMetrics");
}
CUPTI_ENTRY(cuptiProfilerHostGetConfigImageSize, HostImageSizeParams* params) {
    params->configImageSize = 8;
    return enterCupti("cuptiProfilerHostGetConfigImageSize");
}
CUPTI_ENTRY(cuptiProfilerHostGetConfigImage, HostImageParams* params) {
    params->configImage[0] = uint8_t(static_cast<Host*>(params->host)->metrics);
    return enterCupti("cuptiProfilerHostGetConfigImage");
}
CUPTI_ENTRY(cuptiProfilerHostGetNumOfPasses, HostPassesParams* params) {
    params->numOfPasses = params->configImage[0] > g_cupti.metricsInOnePass ? 2 : 1;
    return enterCupti("cuptiProfilerHostGetNumOfPasses");
}
CUPTI_ENTRY(cuptiProfilerHostEvaluateToGpuValues, HostEvaluateParams* params) {
    const auto& image = *reinterpret_cast<const Image*>(params->counterData);
    for (size_t i = 0; i < params->numMetrics; ++i) {
        params->values[i] = image.samples[params->rangeIndex].percent[i];
    }
    return enterCupti("cuptiProfilerHostEvaluateToGpuValues");
}
CUPTI_ENTRY(cuptiPmSamplingGetCounterAvailability, PmAvailabilityParams* params) {
    params->imageSize = 4;
    return enterCupti("cuptiPmSamplingGetCounterAvailability");
}
CUPTI_ENTRY(cuptiPmSamplingEnable, PmEnableParams* params) {
    params->sampling = &g_cupti;
    return enterCupti("cuptiPmSamplingEnable");
}
CUPTI_PLAIN(cuptiPmSamplingDisable, PmParams*)
CUPTI_ENTRY(cuptiPmSamplingSetConfig, PmConfigParams* params) {
    const int mode = int(params->triggerMode * 2 + params->appendMode);
    if (g_cupti.refusedModes.count(mode)) return kInvalidParameter;
    g_cupti.acceptedMode = mode;
    return enterCupti("cuptiPmSamplingSetConfig");
}
CUPTI_PLAIN(cuptiPmSamplingStart, PmParams*)
CUPTI_PLAIN(cuptiPmSamplingStop, PmParams*)
CUPTI_ENTRY(cuptiPmSamplingDecodeData, PmDecodeParams* params) {
    const Result result = enterCupti("cuptiPmSamplingDecodeData");
    if (result == kSuccess) g_cupti.decode(*params);
    return result;
}
CUPTI_ENTRY(cuptiPmSamplingGetCounterDataSize, PmDataSizeParams* params) {
    params->counterDataSize = sizeof(Image);
    return enterCupti("cuptiPmSamplingGetCounterDataSize");
}
CUPTI_ENTRY(cuptiPmSamplingCounterDataImageInitialize, PmDataInitializeParams* params) {
    std::memset(params->counterData, 0, params->counterDataSize);
    return enterCupti("cuptiPmSamplingCounterDataImageInitialize");
}
CUPTI_ENTRY(cuptiPmSamplingGetCounterDataInfo, PmDataInfoParams* params) {
    params->numCompletedSamples = reinterpret_cast<const Image*>(params->counterData)->count;
    return enterCupti("cuptiPmSamplingGetCounterDataInfo");
}
CUPTI_ENTRY(cuptiPmSamplingCounterDataGetSampleInfo, PmSampleInfoParams* params) {
    const auto& image = *reinterpret_cast<const Image*>(params->counterData);
    params->startTimestamp = image.samples[params->sampleIndex].startNs;
    params->endTimestamp = image.samples[params->sampleIndex].endNs;
    return enterCupti("cuptiPmSamplingCounterDataGetSampleInfo");
}
