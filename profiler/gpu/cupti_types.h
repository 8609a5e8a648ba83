// SPDX-License-Identifier: Apache-2.0
// The part of CUPTI's C interface (CUDA 13) that this program uses, declared here so that it builds
// without the CUDA Toolkit and is tested everywhere against a library that plays CUPTI.
// tests/profiler/gpu/cupti_types_match.cpp compares every declaration with NVIDIA's headers where
// they are installed. Records and parameters keep NVIDIA's order of fields.
#pragma once

#include <cstddef>
#include <cstdint>

namespace colibri::cupti {

constexpr uint32_t kOldestVersion = 130000;  // CUDA 13.0: the layout of the records below
constexpr uint32_t kVersionsEnd = 140000;    // a later major version may have other records

enum Result : int32_t {
    kSuccess = 0,
    kInvalidParameter = 1,
    kInvalidOperation = 7,
    kOutOfMemory = 8,
    kHardware = 9,
    kMaxLimitReached = 12,  // no further record in a buffer
    kNotCompatible = 14,
    kNotInitialized = 15,
    kInvalidMetricName = 17,
    kHardwareBusy = 26,
    kNotSupported = 27,
    kVirtualisedDevice = 33,
    kInsufficientPrivileges = 35,
    kMultipleSubscribers = 39,
    kVirtualisedPrivileges = 40,
    kConfidentialComputing = 41,
    kMiningDevice = 42,
    kMigDevice = 43,
    kSliDevice = 44,
    kWslDevice = 45,
    kInvalidChipName = 46,
    kUnknown = 999,
};

// --- Activity: kernels, copies and what they belong to --------------------------------------

enum ActivityKind : uint32_t {
    kMemcpy = 1,
    kMemset = 2,
    kDriver = 4,
    kRuntime = 5,
    kConcurrentKernel = 10,  // not kKernel (3), which serialises the kernels
    kMemcpyPeer = 22,
    kExternalCorrelation = 39,
};
enum MemcpyKind : uint8_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8, kPeer = 10 };
constexpr uint32_t kExternalKindCustom0 = 3;  // whose external ids are ours
constexpr uint32_t kFlushForced = 1;
constexpr uint32_t kDeviceBufferPoolLimit = 2;  // an activity attribute

#define COLIBRI_CUPTI_RECORD __attribute__((packed, aligned(8)))

struct COLIBRI_CUPTI_RECORD ActivityRecord {
    uint32_t kind;
};
struct COLIBRI_CUPTI_RECORD KernelRecord {
    uint32_t kind;
    uint8_t cacheConfig, sharedMemoryConfig;
    uint16_t registersPerThread;
    uint32_t globalCacheRequested, globalCacheExecuted;
    uint64_t start, end, completed;
    uint32_t deviceId, contextId, streamId;
    int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
    int32_t staticSharedMemory, dynamicSharedMemory;
    uint32_t localMemoryPerThread, localMemoryTotal, correlationId;
    int64_t gridId;
    const char* name;
    void* reserved0;
    uint64_t queued, submitted;
    uint8_t launchType, carveoutRequested, carveout, padding;
    uint32_t sharedMemoryExecuted;
    uint64_t graphNodeId;
    uint32_t shmemLimitConfig, graphId;
    void* accessPolicyWindow;
    uint32_t channelId, channelType, clusterX, clusterY, clusterZ, clusterSchedulingPolicy;
    uint64_t localMemoryTotalV2;
    uint32_t maxPotentialClusterSize, maxActiveClusters;
    uint8_t isDeviceLaunched, padding3[7];
};
struct COLIBRI_CUPTI_RECORD MemcpyRecord {
    uint32_t kind;
    uint8_t copyKind, srcKind, dstKind, flags;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
    void* reserved0;
    uint64_t graphNodeId;
    uint32_t graphId, channelId, channelType;
    uint8_t isDeviceLaunched, pad2[3];
    uint64_t copyCount;
};
struct COLIBRI_CUPTI_RECORD MemcpyPeerRecord {
    uint32_t kind;
    uint8_t copyKind, srcKind, dstKind, flags;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, srcDeviceId, srcContextId, dstDeviceId, dstContextId;
    uint32_t correlationId;
    void* reserved0;
    uint64_t graphNodeId;
    uint32_t graphId, channelId, channelType;
};
struct COLIBRI_CUPTI_RECORD MemsetRecord {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, correlationId;
    uint16_t flags, memoryKind;
    uint32_t pad;
    void* reserved0;
    uint64_t graphNodeId;
    uint32_t graphId, channelId, channelType;
    uint8_t isDeviceLaunched, pad2[3];
};
struct COLIBRI_CUPTI_RECORD ExternalCorrelationRecord {
    uint32_t kind, externalKind;
    uint64_t externalId;
    uint32_t correlationId, reserved;
};
#undef COLIBRI_CUPTI_RECORD

using Subscriber = void*;  // CUpti_SubscriberHandle
using Context = void*;     // CUcontext
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* maxRecords);
using BufferCompleted = void (*)(Context, uint32_t stream, uint8_t* buffer, size_t size,
                                 size_t validSize);
using TimestampCallback = uint64_t (*)();
using Callback = void (*)(void* user, uint32_t domain, uint32_t cbid, const void* data);

constexpr size_t kOldSubscriberNameBytes = 64;
struct SubscriberParams {
    size_t structSize;
    const char* subscriberName;
    char* oldSubscriberName;  // who holds CUPTI, if that is why it is refused
    size_t oldSubscriberSize;
};

// Calls of the CUDA runtime that put work on the GPU. A record of such a call is what carries an
// external id, so only these are enabled of the kind kRuntime.
constexpr uint32_t kRuntimeCalls[] = {
    31,   // cudaMemcpy
    41,   // cudaMemcpyAsync
    49,   // cudaMemset
    51,   // cudaMemsetAsync
    161,  // cudaMemcpyPeerAsync
    211,  // cudaLaunchKernel
    214,  // cudaLaunchKernel_ptsz
    225,  // cudaMemcpyAsync_ptsz
    235,  // cudaMemsetAsync_ptsz
    311,  // cudaGraphLaunch
    312,  // cudaGraphLaunch_ptsz
    430,  // cudaLaunchKernelExC
    431,  // cudaLaunchKernelExC_ptsz
    509,  // cudaMemcpyBatchAsync
    510,  // cudaMemcpyBatchAsync_ptsz
};

// --- Profiler: which counters exist, and what a sample of them says --------------------------

// The size of the fields that CUPTI knows; no padding behind the last one counts.
#define COLIBRI_CUPTI_SIZE(type, last) (offsetof(type, last) + sizeof(type::last))

struct ProfilerParams {  // of cuptiProfilerInitialize and cuptiProfilerDeInitialize
    size_t structSize;
    void* priv;
};

enum Support : uint32_t { kSupportUnknown, kUnsupported, kDisabled, kSupported };
constexpr uint32_t kApiPmSampling = 3;
struct DeviceSupportedParams {
    size_t structSize;
    void* priv;
    int32_t device;
    uint32_t isSupported, architecture, sli, vGpu, confidentialCompute, cmp, wsl;
    uint32_t api;
};
struct ChipNameParams {
    size_t structSize;
    void* priv;
    size_t deviceIndex;
    const char* chipName;
};

constexpr uint32_t kProfilerPmSampling = 1;
struct HostInitializeParams {
    size_t structSize;
    void* priv;
    uint32_t profilerType;
    const char* chipName;
    const uint8_t* counterAvailability;
    void* host;
};
struct HostDeinitializeParams {
    size_t structSize;
    void *priv, *host;
};
struct HostAddMetricsParams {
    size_t structSize;
    void *priv, *host;
    const char** metricNames;
    size_t numMetrics;
};
struct HostImageSizeParams {
    size_t structSize;
    void *priv, *host;
    size_t configImageSize;
};
struct HostImageParams {
    size_t structSize;
    void *priv, *host;
    size_t configImageSize;
    uint8_t* configImage;
};
struct HostPassesParams {
    size_t structSize;
    void* priv;
    size_t configImageSize;
    uint8_t* configImage;
    size_t numOfPasses;
};
struct HostEvaluateParams {
    size_t structSize;
    void *priv, *host;
    const uint8_t* counterData;
    size_t counterDataSize, rangeIndex;
    const char** metricNames;
    size_t numMetrics;
    double* values;
};

// --- PM sampling: counters of the whole GPU at a fixed interval -------------------------------

constexpr uint32_t kTriggerSysClock = 0, kTriggerTime = 1;
constexpr uint32_t kKeepOldest = 0, kKeepLatest = 1;
enum DecodeStop : uint32_t { kStopOther, kCounterDataFull, kEndOfRecords };

struct PmAvailabilityParams {
    size_t structSize;
    void* priv;
    size_t deviceIndex, imageSize;
    uint8_t* image;
};
struct PmEnableParams {
    size_t structSize;
    void* priv;
    size_t deviceIndex;
    void* sampling;
};
struct PmParams {  // of cuptiPmSamplingDisable, Start and Stop
    size_t structSize;
    void *priv, *sampling;
};
struct PmConfigParams {
    size_t structSize;
    void *priv, *sampling;
    size_t configSize;
    const uint8_t* config;
    size_t hardwareBufferSize;
    uint64_t samplingInterval;
    uint32_t triggerMode, appendMode;
};
struct PmDataSizeParams {
    size_t structSize;
    void *priv, *sampling;
    const char** metricNames;
    size_t numMetrics;
    uint32_t maxSamples;
    size_t counterDataSize;
};
struct PmDataInitializeParams {
    size_t structSize;
    void *priv, *sampling;
    size_t counterDataSize;
    uint8_t* counterData;
};
struct PmDecodeParams {
    size_t structSize;
    void *priv, *sampling;
    uint8_t* counterData;
    size_t counterDataSize;
    uint32_t stopReason;
    uint8_t overflow;
};
struct PmDataInfoParams {
    size_t structSize;
    void* priv;
    const uint8_t* counterData;
    size_t counterDataSize, numTotalSamples, numPopulatedSamples, numCompletedSamples;
};
struct PmSampleInfoParams {
    size_t structSize;
    void *priv, *sampling;
    const uint8_t* counterData;
    size_t counterDataSize, sampleIndex;
    uint64_t startTimestamp, endTimestamp;
};

// A structure of parameters with its size, everything else zero.
template <typename Params>
Params sized(size_t size) {
    Params params{};
    params.structSize = size;
    return params;
}

}  // namespace colibri::cupti
