// SPDX-License-Identifier: Apache-2.0
// The part of NVML's C interface that this program uses. The CUDA Toolkit often comes without
// nvml.h, so it is declared here; NVML keeps these declarations compatible.
#pragma once

namespace colibri::nvml {

enum Result : int {
    kSuccess = 0,
    kUninitialised = 1,
    kInvalidArgument = 2,
    kNotSupported = 3,
    kNoPermission = 4,
    kNotFound = 6,
    kDriverNotLoaded = 9,
    kGpuIsLost = 15,
    kResetRequired = 16,
    kVersionMismatch = 18,
    kUnknown = 999,
};

using Device = void*;
struct Utilisation {
    unsigned gpu, memory;  // percent of the last sample period
};
struct Memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryVersion = sizeof(Memory) | 2u << 24;
constexpr unsigned kClockSm = 1;
constexpr unsigned kNameBytes = 96;

// GPM: counters that the driver takes without a lock, on Hopper and later GPUs.
using GpmSample = void*;
struct GpmSupport {
    unsigned version, isSupportedDevice;
};
constexpr unsigned kGpmVersion = 1;
constexpr unsigned kGpmSmUtil = 2, kGpmDramUtil = 10;  // percent
struct GpmMetric {
    unsigned metricId;
    int result;
    double value;
    char *shortName, *longName, *unit;
};
struct GpmMetrics {
    unsigned version, count;
    GpmSample first, second;
    // NVML reads and writes only `count` entries. The array of NVIDIA's structure grows with each
    // version; this one is larger than all so far.
    GpmMetric metrics[512];
};

// X(member, symbol, parameters): a function that returns Result.
#define COLIBRI_NVML_FUNCTIONS(X)                                        \
    X(init, nvmlInit_v2, ())                                             \
    X(shutdown, nvmlShutdown, ())                                        \
    X(deviceByIndex, nvmlDeviceGetHandleByIndex_v2, (unsigned, Device*)) \
    X(name, nvmlDeviceGetName, (Device, char*, unsigned))                \
    X(utilisation, nvmlDeviceGetUtilizationRates, (Device, Utilisation*))
// Those that an older driver may lack.
#define COLIBRI_NVML_OPTIONAL_FUNCTIONS(X)                          \
    X(memory, nvmlDeviceGetMemoryInfo_v2, (Device, Memory*))        \
    X(clock, nvmlDeviceGetClockInfo, (Device, unsigned, unsigned*)) \
    X(power, nvmlDeviceGetPowerUsage, (Device, unsigned*))          \
    X(gpmSupport, nvmlGpmQueryDeviceSupport, (Device, GpmSupport*)) \
    X(gpmAlloc, nvmlGpmSampleAlloc, (GpmSample*))                   \
    X(gpmFree, nvmlGpmSampleFree, (GpmSample))                      \
    X(gpmGet, nvmlGpmSampleGet, (Device, GpmSample))                \
    X(gpmMetrics, nvmlGpmMetricsGet, (GpmMetrics*))

struct Functions {
#define COLIBRI_NVML_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
    COLIBRI_NVML_FUNCTIONS(COLIBRI_NVML_MEMBER)
    COLIBRI_NVML_OPTIONAL_FUNCTIONS(COLIBRI_NVML_MEMBER)
#undef COLIBRI_NVML_MEMBER
    const char* (*errorText)(Result) = nullptr;  // nvmlErrorString
};

}  // namespace colibri::nvml
