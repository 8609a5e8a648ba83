// SPDX-License-Identifier: Apache-2.0
// SM utilisation and DRAM throughput from NVML's GPM, on Hopper and later GPUs. Needs no permission
// and does not change the clocks.
#pragma once

#include <chrono>
#include <memory>

#include "profiler/gpu/nvml_device.h"

namespace colibri {

// One thread at a time.
class GpmSource {
public:
    // A value covers the time between two samples, which must be at least `interval` apart: NVML
    // needs 100 ms. Errors: Unsupported with reason and remedy: an older GPU or driver.
    static Result<std::unique_ptr<GpmSource>> start(
        std::shared_ptr<NvmlDevice> device,
        std::chrono::milliseconds interval = std::chrono::milliseconds(100));
    ~GpmSource();
    GpmSource(const GpmSource&) = delete;
    GpmSource& operator=(const GpmSource&) = delete;

    // Sets SM utilisation and DRAM throughput of the newest complete interval; NaN before the
    // first. Errors: the counters have become unavailable, or the GPU is lost.
    Status read(GpuReading& reading);

private:
    GpmSource(std::shared_ptr<NvmlDevice> device, std::chrono::milliseconds interval)
        : m_device(std::move(device)), m_interval(interval) {}
    Status open();
    Status measure();

    const std::shared_ptr<NvmlDevice> m_device;
    const std::chrono::milliseconds m_interval;
    nvml::GpmSample m_samples[2] = {};  // [0] is the older
    std::chrono::steady_clock::time_point m_sampled;
    double m_sm = NAN, m_dram = NAN;
};

}  // namespace colibri
