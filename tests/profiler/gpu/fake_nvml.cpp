// SPDX-License-Identifier: GPL-3.0-or-later
// Plays NVML. FAKE_OLD: without GPM; FAKE_INCOMPLETE: without utilisation.
#include "fake_gpu.h"
#include "profiler/gpu/nvml_types.h"

using namespace colibri;

namespace {

class FakeNvml final : public fake::Nvml {
public:
    void reset() override {
        forget();
        busyPercent = 100;
        clockMHz = 1980;
        milliwatts = 700000;
        memoryUsed = 20;
        memoryTotal = 100;
        gpmSupported = true;
        smPercent = 42;
        dramPercent = 17;
        smResult = 0;
    }
};

FakeNvml g_nvml;

nvml::Result enterNvml(const char* symbol) {
    return nvml::Result(g_nvml.enter(symbol));
}

}  // namespace

#define NVML_ENTRY(symbol, ...) extern "C" nvml::Result symbol(__VA_ARGS__)

extern "C" fake::Nvml* fakeNvml() {
    return &g_nvml;
}
extern "C" const char* nvmlErrorString(nvml::Result result) {
    return result == nvml::kUnknown ? "Unknown Error" : "an error";
}
NVML_ENTRY(nvmlInit_v2) {
    return enterNvml("nvmlInit_v2");
}
NVML_ENTRY(nvmlShutdown) {
    return enterNvml("nvmlShutdown");
}
NVML_ENTRY(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml::Device* device) {
    *device = &g_nvml;
    const nvml::Result result = enterNvml("nvmlDeviceGetHandleByIndex_v2");
    return result != nvml::kSuccess ? result : index == 0 ? nvml::kSuccess : nvml::kInvalidArgument;
}
NVML_ENTRY(nvmlDeviceGetName, nvml::Device, char* text, unsigned bytes) {
    snprintf(text, bytes, "NVIDIA H200");
    return enterNvml("nvmlDeviceGetName");
}
#ifndef FAKE_INCOMPLETE
NVML_ENTRY(nvmlDeviceGetUtilizationRates, nvml::Device, nvml::Utilisation* rates) {
    *rates = {g_nvml.busyPercent, 3};
    return enterNvml("nvmlDeviceGetUtilizationRates");
}
#endif
NVML_ENTRY(nvmlDeviceGetMemoryInfo_v2, nvml::Device, nvml::Memory* memory) {
    if (memory->version != nvml::kMemoryVersion) return nvml::kInvalidArgument;
    memory->used = g_nvml.memoryUsed;
    memory->total = g_nvml.memoryTotal;
    return enterNvml("nvmlDeviceGetMemoryInfo_v2");
}
NVML_ENTRY(nvmlDeviceGetClockInfo, nvml::Device, unsigned type, unsigned* megahertz) {
    *megahertz = type == nvml::kClockSm ? g_nvml.clockMHz : 0;
    return enterNvml("nvmlDeviceGetClockInfo");
}
NVML_ENTRY(nvmlDeviceGetPowerUsage, nvml::Device, unsigned* milliwatts) {
    *milliwatts = g_nvml.milliwatts;
    return enterNvml("nvmlDeviceGetPowerUsage");
}

#ifndef FAKE_OLD
NVML_ENTRY(nvmlGpmQueryDeviceSupport, nvml::Device, nvml::GpmSupport* support) {
    if (support->version != nvml::kGpmVersion) return nvml::kInvalidArgument;
    support->isSupportedDevice = g_nvml.gpmSupported;
    return enterNvml("nvmlGpmQueryDeviceSupport");
}
NVML_ENTRY(nvmlGpmSampleAlloc, nvml::GpmSample* sample) {
    const nvml::Result result = enterNvml("nvmlGpmSampleAlloc");
    if (result == nvml::kSuccess) {
        ++g_nvml.samples;
        *sample = new int(0);  // how often it was filled
    }
    return result;
}
NVML_ENTRY(nvmlGpmSampleFree, nvml::GpmSample sample) {
    delete static_cast<int*>(sample);
    --g_nvml.samples;
    return enterNvml("nvmlGpmSampleFree");
}
NVML_ENTRY(nvmlGpmSampleGet, nvml::Device, nvml::GpmSample sample) {
    static int filled = 0;
    *static_cast<int*>(sample) = ++filled;
    return enterNvml("nvmlGpmSampleGet");
}
NVML_ENTRY(nvmlGpmMetricsGet, nvml::GpmMetrics* metrics) {
    const int first = *static_cast<int*>(metrics->first);
    const int second = *static_cast<int*>(metrics->second);
    // The later sample comes second, and both are filled.
    if (metrics->version != nvml::kGpmVersion || first == 0 || second <= first) {
        return nvml::kInvalidArgument;
    }
    for (unsigned i = 0; i < metrics->count; ++i) {
        nvml::GpmMetric& metric = metrics->metrics[i];
        const bool sm = metric.metricId == nvml::kGpmSmUtil;
        metric.result = sm ? g_nvml.smResult : 0;
        metric.value = sm ? g_nvml.smPercent : g_nvml.dramPercent;
    }
    return enterNvml("nvmlGpmMetricsGet");
}
#endif
