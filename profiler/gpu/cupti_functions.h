// SPDX-License-Identifier: Apache-2.0
// Every entry point of CUPTI that this program calls: name and type. The loader resolves this list,
// the libraries of the tests implement it, and it is compared with NVIDIA's headers.
#pragma once

#include "profiler/gpu/cupti_types.h"

namespace colibri::cupti {

// X(member, symbol, parameters): a function that returns Result.
#define COLIBRI_CUPTI_FUNCTIONS(X)                                                            \
    X(getVersion, cuptiGetVersion, (uint32_t*))                                               \
    X(getResultString, cuptiGetResultString, (Result, const char**))                          \
    X(getTimestamp, cuptiGetTimestamp, (uint64_t*))                                           \
    X(finalize, cuptiFinalize, ())                                                            \
    X(subscribe, cuptiSubscribe_v2, (Subscriber*, Callback, void*, SubscriberParams*))        \
    X(unsubscribe, cuptiUnsubscribe, (Subscriber))                                            \
    X(activitySetAttribute, cuptiActivitySetAttribute, (uint32_t, size_t*, void*))            \
    X(activityRegisterTimestamp, cuptiActivityRegisterTimestampCallback, (TimestampCallback)) \
    X(activityRegisterCallbacks, cuptiActivityRegisterCallbacks,                              \
      (BufferRequested, BufferCompleted))                                                     \
    X(activityEnable, cuptiActivityEnable, (ActivityKind))                                    \
    X(activityDisable, cuptiActivityDisable, (ActivityKind))                                  \
    X(activityEnableRuntimeApi, cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))           \
    X(activityFlushAll, cuptiActivityFlushAll, (uint32_t))                                    \
    X(activityNextRecord, cuptiActivityGetNextRecord, (uint8_t*, size_t, ActivityRecord**))   \
    X(activityDropped, cuptiActivityGetNumDroppedRecords, (Context, uint32_t, size_t*))       \
    X(pushExternalId, cuptiActivityPushExternalCorrelationId, (uint32_t, uint64_t))           \
    X(popExternalId, cuptiActivityPopExternalCorrelationId, (uint32_t, uint64_t*))            \
    X(profilerInitialize, cuptiProfilerInitialize, (ProfilerParams*))                         \
    X(profilerDeinitialize, cuptiProfilerDeInitialize, (ProfilerParams*))                     \
    X(deviceSupported, cuptiProfilerDeviceSupported, (DeviceSupportedParams*))                \
    X(chipName, cuptiDeviceGetChipName, (ChipNameParams*))                                    \
    X(hostInitialize, cuptiProfilerHostInitialize, (HostInitializeParams*))                   \
    X(hostDeinitialize, cuptiProfilerHostDeinitialize, (HostDeinitializeParams*))             \
    X(hostAddMetrics, cuptiProfilerHostConfigAddMetrics, (HostAddMetricsParams*))             \
    X(hostImageSize, cuptiProfilerHostGetConfigImageSize, (HostImageSizeParams*))             \
    X(hostImage, cuptiProfilerHostGetConfigImage, (HostImageParams*))                         \
    X(hostPasses, cuptiProfilerHostGetNumOfPasses, (HostPassesParams*))                       \
    X(hostEvaluate, cuptiProfilerHostEvaluateToGpuValues, (HostEvaluateParams*))              \
    X(pmAvailability, cuptiPmSamplingGetCounterAvailability, (PmAvailabilityParams*))         \
    X(pmEnable, cuptiPmSamplingEnable, (PmEnableParams*))                                     \
    X(pmDisable, cuptiPmSamplingDisable, (PmParams*))                                         \
    X(pmSetConfig, cuptiPmSamplingSetConfig, (PmConfigParams*))                               \
    X(pmStart, cuptiPmSamplingStart, (PmParams*))                                             \
    X(pmStop, cuptiPmSamplingStop, (PmParams*))                                               \
    X(pmDecode, cuptiPmSamplingDecodeData, (PmDecodeParams*))                                 \
    X(pmDataSize, cuptiPmSamplingGetCounterDataSize, (PmDataSizeParams*))                     \
    X(pmDataInitialize, cuptiPmSamplingCounterDataImageInitialize, (PmDataInitializeParams*)) \
    X(pmDataInfo, cuptiPmSamplingGetCounterDataInfo, (PmDataInfoParams*))                     \
    X(pmSampleInfo, cuptiPmSamplingCounterDataGetSampleInfo, (PmSampleInfoParams*))

struct Functions {
#define COLIBRI_CUPTI_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
    COLIBRI_CUPTI_FUNCTIONS(COLIBRI_CUPTI_MEMBER)
#undef COLIBRI_CUPTI_MEMBER
};

}  // namespace colibri::cupti
