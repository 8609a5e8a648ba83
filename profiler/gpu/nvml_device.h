// SPDX-License-Identifier: Apache-2.0
// One GPU as NVML, the driver's management library, sees it. Costs no memory of the GPU and needs
// no permission.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.h"
#include "profiler/gpu/gpu_reading.h"
#include "profiler/gpu/nvml_types.h"

namespace colibri {

// One thread at a time.
class NvmlDevice {
public:
    // Errors: Unsupported with reason and remedy: no driver, an old driver, no such GPU, a lost
    // GPU. `path`: see GpuLibraryPaths. NVML counts the GPUs in the order of their slots.
    static Result<std::shared_ptr<NvmlDevice>> open(const std::string& path, int index);
    ~NvmlDevice();
    NvmlDevice(const NvmlDevice&) = delete;
    NvmlDevice& operator=(const NvmlDevice&) = delete;

    const std::string& name() const { return m_name; }  // "NVIDIA H200"
    // Sets `busy`. Errors: the driver has no value, or the GPU is lost.
    Status readBusy(GpuReading& reading);
    // Sets memory, clock and power, as far as the driver has them.
    void readState(GpuReading& reading);

    const nvml::Functions& fn() const { return m_fn; }
    nvml::Device handle() const { return m_device; }
    Status status(nvml::Result result, const std::string& what) const;

private:
    NvmlDevice() = default;
    Status start(int index);

    nvml::Functions m_fn;
    nvml::Device m_device = nullptr;
    bool m_started = false;
    std::string m_name;
};

}  // namespace colibri
