// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled where the CUDA Toolkit is installed: profiler/gpu/cupti_types.h and cupti_functions.h
// agree with NVIDIA's headers in sizes, positions of fields, constants and types of functions.
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_runtime_cbid.h>
#include <cupti_target.h>

#include <type_traits>

#include "profiler/gpu/cupti_functions.h"

namespace colibri::cupti {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_FIELD(ours, field, theirs, name)                        \
    static_assert(offsetof(ours, field) == offsetof(theirs, name) && \
                  sizeof(ours::field) == sizeof(theirs::name))
// Parameters carry their size, which ends with the last field.
#define SAME_PARAMS(ours, last, theirs) \
    static_assert(COLIBRI_CUPTI_SIZE(ours, last) == theirs##_STRUCT_SIZE)
#define SAME_VALUE(ours, theirs) static_assert(uint64_t(ours) == uint64_t(theirs))

static_assert(CUPTI_API_VERSION >= kOldestVersion && CUPTI_API_VERSION < kVersionsEnd);

// Records.
SAME_SIZE(ActivityRecord, CUpti_Activity);
SAME_SIZE(KernelRecord, CUpti_ActivityKernel10);
SAME_FIELD(KernelRecord, start, CUpti_ActivityKernel10, start);
SAME_FIELD(KernelRecord, end, CUpti_ActivityKernel10, end);
SAME_FIELD(KernelRecord, deviceId, CUpti_ActivityKernel10, deviceId);
SAME_FIELD(KernelRecord, streamId, CUpti_ActivityKernel10, streamId);
SAME_FIELD(KernelRecord, correlationId, CUpti_ActivityKernel10, correlationId);
SAME_FIELD(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME_FIELD(KernelRecord, graphId, CUpti_ActivityKernel10, graphId);
SAME_SIZE(MemcpyRecord, CUpti_ActivityMemcpy6);
SAME_FIELD(MemcpyRecord, copyKind, CUpti_ActivityMemcpy6, copyKind);
SAME_FIELD(MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME_FIELD(MemcpyRecord, start, CUpti_ActivityMemcpy6, start);
SAME_FIELD(MemcpyRecord, end, CUpti_ActivityMemcpy6, end);
SAME_FIELD(MemcpyRecord, deviceId, CUpti_ActivityMemcpy6, deviceId);
SAME_FIELD(MemcpyRecord, streamId, CUpti_ActivityMemcpy6, streamId);
SAME_FIELD(MemcpyRecord, correlationId, CUpti_ActivityMemcpy6, correlationId);
SAME_SIZE(MemcpyPeerRecord, CUpti_ActivityMemcpyPtoP4);
SAME_FIELD(MemcpyPeerRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
SAME_FIELD(MemcpyPeerRecord, start, CUpti_ActivityMemcpyPtoP4, start);
SAME_FIELD(MemcpyPeerRecord, end, CUpti_ActivityMemcpyPtoP4, end);
SAME_FIELD(MemcpyPeerRecord, deviceId, CUpti_ActivityMemcpyPtoP4, deviceId);
SAME_FIELD(MemcpyPeerRecord, streamId, CUpti_ActivityMemcpyPtoP4, streamId);
SAME_FIELD(MemcpyPeerRecord, correlationId, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_SIZE(MemsetRecord, CUpti_ActivityMemset4);
SAME_FIELD(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME_FIELD(MemsetRecord, start, CUpti_ActivityMemset4, start);
SAME_FIELD(MemsetRecord, end, CUpti_ActivityMemset4, end);
SAME_FIELD(MemsetRecord, deviceId, CUpti_ActivityMemset4, deviceId);
SAME_FIELD(MemsetRecord, streamId, CUpti_ActivityMemset4, streamId);
SAME_FIELD(MemsetRecord, correlationId, CUpti_ActivityMemset4, correlationId);
SAME_SIZE(ExternalCorrelationRecord, CUpti_ActivityExternalCorrelation);
SAME_FIELD(ExternalCorrelationRecord, externalKind, CUpti_ActivityExternalCorrelation,
           externalKind);
SAME_FIELD(ExternalCorrelationRecord, externalId, CUpti_ActivityExternalCorrelation, externalId);
SAME_FIELD(ExternalCorrelationRecord, correlationId, CUpti_ActivityExternalCorrelation,
           correlationId);

// Parameters.
SAME_FIELD(SubscriberParams, subscriberName, CUpti_SubscriberParams, subscriberName);
SAME_FIELD(SubscriberParams, oldSubscriberName, CUpti_SubscriberParams, oldSubscriberName);
SAME_PARAMS(SubscriberParams, oldSubscriberSize, CUpti_SubscriberParams);
SAME_PARAMS(ProfilerParams, priv, CUpti_Profiler_Initialize_Params);
SAME_PARAMS(ProfilerParams, priv, CUpti_Profiler_DeInitialize_Params);
SAME_FIELD(DeviceSupportedParams, device, CUpti_Profiler_DeviceSupported_Params, cuDevice);
SAME_FIELD(DeviceSupportedParams, isSupported, CUpti_Profiler_DeviceSupported_Params, isSupported);
SAME_FIELD(DeviceSupportedParams, architecture, CUpti_Profiler_DeviceSupported_Params,
           architecture);
SAME_FIELD(DeviceSupportedParams, sli, CUpti_Profiler_DeviceSupported_Params, sli);
SAME_FIELD(DeviceSupportedParams, vGpu, CUpti_Profiler_DeviceSupported_Params, vGpu);
SAME_FIELD(DeviceSupportedParams, confidentialCompute, CUpti_Profiler_DeviceSupported_Params,
           confidentialCompute);
SAME_FIELD(DeviceSupportedParams, cmp, CUpti_Profiler_DeviceSupported_Params, cmp);
SAME_FIELD(DeviceSupportedParams, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
SAME_PARAMS(DeviceSupportedParams, api, CUpti_Profiler_DeviceSupported_Params);
SAME_FIELD(ChipNameParams, deviceIndex, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_PARAMS(ChipNameParams, chipName, CUpti_Device_GetChipName_Params);
SAME_FIELD(HostInitializeParams, profilerType, CUpti_Profiler_Host_Initialize_Params, profilerType);
SAME_FIELD(HostInitializeParams, chipName, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_FIELD(HostInitializeParams, counterAvailability, CUpti_Profiler_Host_Initialize_Params,
           pCounterAvailabilityImage);
SAME_PARAMS(HostInitializeParams, host, CUpti_Profiler_Host_Initialize_Params);
SAME_PARAMS(HostDeinitializeParams, host, CUpti_Profiler_Host_Deinitialize_Params);
SAME_FIELD(HostAddMetricsParams, metricNames, CUpti_Profiler_Host_ConfigAddMetrics_Params,
           ppMetricNames);
SAME_PARAMS(HostAddMetricsParams, numMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME_PARAMS(HostImageSizeParams, configImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME_FIELD(HostImageParams, configImageSize, CUpti_Profiler_Host_GetConfigImage_Params,
           configImageSize);
SAME_PARAMS(HostImageParams, configImage, CUpti_Profiler_Host_GetConfigImage_Params);
SAME_FIELD(HostPassesParams, configImage, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SAME_PARAMS(HostPassesParams, numOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME_FIELD(HostEvaluateParams, counterData, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
           pCounterDataImage);
SAME_FIELD(HostEvaluateParams, rangeIndex, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
           rangeIndex);
SAME_FIELD(HostEvaluateParams, metricNames, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
           ppMetricNames);
SAME_PARAMS(HostEvaluateParams, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME_FIELD(PmAvailabilityParams, imageSize, CUpti_PmSampling_GetCounterAvailability_Params,
           counterAvailabilityImageSize);
SAME_PARAMS(PmAvailabilityParams, image, CUpti_PmSampling_GetCounterAvailability_Params);
SAME_FIELD(PmEnableParams, deviceIndex, CUpti_PmSampling_Enable_Params, deviceIndex);
SAME_PARAMS(PmEnableParams, sampling, CUpti_PmSampling_Enable_Params);
SAME_PARAMS(PmParams, sampling, CUpti_PmSampling_Disable_Params);
SAME_PARAMS(PmParams, sampling, CUpti_PmSampling_Start_Params);
SAME_PARAMS(PmParams, sampling, CUpti_PmSampling_Stop_Params);
SAME_FIELD(PmConfigParams, configSize, CUpti_PmSampling_SetConfig_Params, configSize);
SAME_FIELD(PmConfigParams, config, CUpti_PmSampling_SetConfig_Params, pConfig);
SAME_FIELD(PmConfigParams, hardwareBufferSize, CUpti_PmSampling_SetConfig_Params,
           hardwareBufferSize);
SAME_FIELD(PmConfigParams, samplingInterval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
SAME_FIELD(PmConfigParams, triggerMode, CUpti_PmSampling_SetConfig_Params, triggerMode);
SAME_PARAMS(PmConfigParams, appendMode, CUpti_PmSampling_SetConfig_Params);
SAME_FIELD(PmDataSizeParams, metricNames, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
SAME_FIELD(PmDataSizeParams, maxSamples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
SAME_PARAMS(PmDataSizeParams, counterDataSize, CUpti_PmSampling_GetCounterDataSize_Params);
SAME_FIELD(PmDataInitializeParams, counterDataSize,
           CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
SAME_PARAMS(PmDataInitializeParams, counterData,
            CUpti_PmSampling_CounterDataImage_Initialize_Params);
SAME_FIELD(PmDecodeParams, counterData, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
SAME_FIELD(PmDecodeParams, stopReason, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
SAME_PARAMS(PmDecodeParams, overflow, CUpti_PmSampling_DecodeData_Params);
SAME_FIELD(PmDataInfoParams, counterData, CUpti_PmSampling_GetCounterDataInfo_Params,
           pCounterDataImage);
SAME_PARAMS(PmDataInfoParams, numCompletedSamples, CUpti_PmSampling_GetCounterDataInfo_Params);
SAME_FIELD(PmSampleInfoParams, sampleIndex, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
           sampleIndex);
SAME_FIELD(PmSampleInfoParams, startTimestamp, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
           startTimestamp);
SAME_PARAMS(PmSampleInfoParams, endTimestamp, CUpti_PmSampling_CounterData_GetSampleInfo_Params);

// Constants.
SAME_VALUE(kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME_VALUE(kInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
SAME_VALUE(kOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
SAME_VALUE(kHardware, CUPTI_ERROR_HARDWARE);
SAME_VALUE(kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(kNotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
SAME_VALUE(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(kInvalidMetricName, CUPTI_ERROR_INVALID_METRIC_NAME);
SAME_VALUE(kHardwareBusy, CUPTI_ERROR_HARDWARE_BUSY);
SAME_VALUE(kNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(kVirtualisedDevice, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_VALUE(kVirtualisedPrivileges, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(kConfidentialComputing, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
SAME_VALUE(kMiningDevice, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kMigDevice, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kSliDevice, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kWslDevice, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
SAME_VALUE(kInvalidChipName, CUPTI_ERROR_INVALID_CHIP_NAME);
SAME_VALUE(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_VALUE(kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_VALUE(kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_VALUE(kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_VALUE(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_VALUE(kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_VALUE(kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME_VALUE(kHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_VALUE(kDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_VALUE(kDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_VALUE(kPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME_VALUE(kExternalKindCustom0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME_VALUE(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(kDeviceBufferPoolLimit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME_VALUE(kOldSubscriberNameBytes, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
SAME_VALUE(kUnsupported, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
SAME_VALUE(kDisabled, CUPTI_PROFILER_CONFIGURATION_DISABLED);
SAME_VALUE(kSupported, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
SAME_VALUE(kApiPmSampling, CUPTI_PROFILER_PM_SAMPLING);
SAME_VALUE(kProfilerPmSampling, CUPTI_PROFILER_TYPE_PM_SAMPLING);
SAME_VALUE(kTriggerSysClock, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
SAME_VALUE(kTriggerTime, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
SAME_VALUE(kKeepOldest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
SAME_VALUE(kKeepLatest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
SAME_VALUE(kCounterDataFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
SAME_VALUE(kEndOfRecords, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);
SAME_VALUE(kRuntimeCalls[0], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020);
SAME_VALUE(kRuntimeCalls[1], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
SAME_VALUE(kRuntimeCalls[2], CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020);
SAME_VALUE(kRuntimeCalls[3], CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
SAME_VALUE(kRuntimeCalls[4], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000);
SAME_VALUE(kRuntimeCalls[5], CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
SAME_VALUE(kRuntimeCalls[6], CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000);
SAME_VALUE(kRuntimeCalls[7], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000);
SAME_VALUE(kRuntimeCalls[8], CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000);
SAME_VALUE(kRuntimeCalls[9], CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
SAME_VALUE(kRuntimeCalls[10], CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000);
SAME_VALUE(kRuntimeCalls[11], CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060);
SAME_VALUE(kRuntimeCalls[12], CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060);
SAME_VALUE(kRuntimeCalls[13], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v13000);
SAME_VALUE(kRuntimeCalls[14], CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_ptsz_v13000);

// Functions: as many parameters, each a pointer or a number of the same size.
template <typename Ours, typename Theirs>
constexpr bool passedAlike = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                             sizeof(Ours) == sizeof(Theirs);
template <typename Ours, typename Theirs>
struct CalledAlike : std::false_type {};
template <typename R, typename... Ours, typename S, typename... Theirs>
requires(sizeof...(Ours) == sizeof...(Theirs)) struct CalledAlike<R (*)(Ours...), S (*)(Theirs...)>
    : std::bool_constant<passedAlike<R, S> && (passedAlike<Ours, Theirs> && ...)> {
};

#define CALLED_ALIKE(member, symbol, parameters) \
    static_assert(CalledAlike<decltype(Functions::member), decltype(&::symbol)>::value);
COLIBRI_CUPTI_FUNCTIONS(CALLED_ALIKE)

}  // namespace
}  // namespace colibri::cupti
