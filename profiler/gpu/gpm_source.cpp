// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/gpm_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace colibri {
namespace {

constexpr const char* kGpm = "NVML GPM";

double shareOf(const nvml::GpmMetric& metric) {
    if (metric.result != nvml::kSuccess || std::isnan(metric.value)) return NAN;
    return std::clamp(metric.value / 100, 0.0, 1.0);
}

}  // namespace

Result<std::unique_ptr<GpmSource>> GpmSource::start(std::shared_ptr<NvmlDevice> device,
                                                    std::chrono::milliseconds interval) {
    auto source = std::unique_ptr<GpmSource>(new GpmSource(std::move(device), interval));
    COLIBRI_TRY(source->open());
    return source;
}

Status GpmSource::open() {
    const nvml::Functions& fn = m_device->fn();
    if (!fn.gpmSupport || !fn.gpmAlloc || !fn.gpmFree || !fn.gpmGet || !fn.gpmMetrics) {
        return {Code::Unsupported, std::string(kGpm) + ": the driver is too old for it",
                "Update the driver to version 580 or later"};
    }
    nvml::GpmSupport support{.version = nvml::kGpmVersion, .isSupportedDevice = 0};
    COLIBRI_TRY(m_device->status(fn.gpmSupport(m_device->handle(), &support), kGpm));
    if (!support.isSupportedDevice) {
        return {Code::Unsupported, std::string(kGpm) + ": this GPU is older than Hopper",
                "Use PM sampling, which this GPU may support"};
    }
    for (nvml::GpmSample& sample : m_samples) {
        COLIBRI_TRY(m_device->status(fn.gpmAlloc(&sample), kGpm));
    }
    m_sampled = std::chrono::steady_clock::now();
    return m_device->status(fn.gpmGet(m_device->handle(), m_samples[0]), kGpm);
}

GpmSource::~GpmSource() {
    for (const nvml::GpmSample sample : m_samples) {
        if (sample) (void)m_device->fn().gpmFree(sample);
    }
}

Status GpmSource::read(GpuReading& reading) {
    if (std::chrono::steady_clock::now() - m_sampled >= m_interval) COLIBRI_TRY(measure());
    reading.smUtilisation = m_sm;
    reading.dramThroughput = m_dram;
    return {};
}

Status GpmSource::measure() {
    const nvml::Functions& fn = m_device->fn();
    COLIBRI_TRY(m_device->status(fn.gpmGet(m_device->handle(), m_samples[1]), kGpm));
    m_sampled = std::chrono::steady_clock::now();
    const auto request = std::make_unique<nvml::GpmMetrics>();
    request->version = nvml::kGpmVersion;
    request->count = 2;
    request->first = m_samples[0];
    request->second = m_samples[1];
    request->metrics[0].metricId = nvml::kGpmSmUtil;
    request->metrics[1].metricId = nvml::kGpmDramUtil;
    COLIBRI_TRY(m_device->status(fn.gpmMetrics(request.get()), kGpm));
    std::swap(m_samples[0], m_samples[1]);
    m_sm = shareOf(request->metrics[0]);
    m_dram = shareOf(request->metrics[1]);
    if (std::isnan(m_sm)) {
        const auto result = nvml::Result(request->metrics[0].result);
        return m_device->status(result == nvml::kSuccess ? nvml::kNotSupported : result, kGpm);
    }
    return {};
}

}  // namespace colibri
