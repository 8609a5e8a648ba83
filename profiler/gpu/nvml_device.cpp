// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/nvml_device.h"

#include <algorithm>

#include "profiler/gpu/gpu_library.h"

namespace colibri {
namespace {

struct NvmlErrorRow {
    nvml::Result result;
    const char *reason, *remedy;
};
constexpr NvmlErrorRow kNvmlErrors[] = {
    {nvml::kNotSupported, "this GPU does not report it",
     "None on this GPU; if it is split into instances (MIG), turn MIG off: nvidia-smi -mig 0"},
    {nvml::kNoPermission, "the driver does not allow it for this user",
     "Ask the administrator for access to the devices /dev/nvidia*"},
    {nvml::kNotFound, "no NVIDIA GPU", "nvidia-smi -L lists the GPUs"},
    {nvml::kInvalidArgument, "there is no GPU with this index", "nvidia-smi -L lists the GPUs"},
    {nvml::kDriverNotLoaded, "the driver's kernel module is not loaded",
     "Run modprobe nvidia; after a kernel update, install the driver again"},
    {nvml::kGpuIsLost, "the GPU is lost: it no longer answers",
     "Look for Xid messages in dmesg; restart the machine"},
    {nvml::kResetRequired, "the GPU needs a reset", "Run nvidia-smi --gpu-reset, or restart"},
    {nvml::kVersionMismatch, "driver and kernel module have different versions",
     "Restart the machine, or reload the module nvidia, after a driver update"},
};

}  // namespace

Result<std::shared_ptr<NvmlDevice>> NvmlDevice::open(const std::string& path, int index) {
    Result<GpuLibrary> library = GpuLibrary::open({path.empty() ? "libnvidia-ml.so.1" : path});
    if (!library) {
        return Status(Code::Unsupported, "no NVIDIA driver",
                      "Install the NVIDIA driver; in a container, start it with the GPU");
    }
    auto device = std::shared_ptr<NvmlDevice>(new NvmlDevice);
    nvml::Functions& fn = device->m_fn;
#define COLIBRI_NVML_BIND(member, symbol, parameters) library->bind(fn.member, #symbol);
    COLIBRI_NVML_FUNCTIONS(COLIBRI_NVML_BIND)
    library->bind(fn.errorText, "nvmlErrorString");
    if (!library->missing().empty()) {
        return Status(Code::Unsupported,
                      "the NVIDIA driver is too old: NVML lacks " + library->missing(),
                      "Update the driver to version 580 or later");
    }
    COLIBRI_NVML_OPTIONAL_FUNCTIONS(COLIBRI_NVML_BIND)
#undef COLIBRI_NVML_BIND
    COLIBRI_TRY(device->start(index));
    return device;
}

NvmlDevice::~NvmlDevice() {
    if (m_started) (void)m_fn.shutdown();
}

Status NvmlDevice::start(int index) {
    COLIBRI_TRY(status(m_fn.init(), "NVML does not start"));
    m_started = true;
    COLIBRI_TRY(status(m_fn.deviceByIndex(unsigned(index), &m_device), "NVML"));
    char text[nvml::kNameBytes] = {};
    if (m_fn.name(m_device, text, sizeof text) == nvml::kSuccess) m_name = text;
    return {};
}

Status NvmlDevice::readBusy(GpuReading& reading) {
    nvml::Utilisation rates{};
    COLIBRI_TRY(status(m_fn.utilisation(m_device, &rates), "NVML utilisation"));
    reading.busy = std::min(rates.gpu / 100.0, 1.0);
    return {};
}

void NvmlDevice::readState(GpuReading& reading) {
    nvml::Memory memory{};
    memory.version = nvml::kMemoryVersion;
    if (m_fn.memory && m_fn.memory(m_device, &memory) == nvml::kSuccess) {
        reading.memoryUsed = double(memory.used);
        reading.memoryTotal = double(memory.total);
    }
    unsigned megahertz = 0, milliwatts = 0;
    if (m_fn.clock && m_fn.clock(m_device, nvml::kClockSm, &megahertz) == nvml::kSuccess) {
        reading.smClock = megahertz * 1e6;
    }
    if (m_fn.power && m_fn.power(m_device, &milliwatts) == nvml::kSuccess) {
        reading.power = milliwatts / 1e3;
    }
}

Status NvmlDevice::status(nvml::Result result, const std::string& what) const {
    if (result == nvml::kSuccess) return {};
    const auto row = std::find_if(std::begin(kNvmlErrors), std::end(kNvmlErrors),
                                  [&](const NvmlErrorRow& r) { return r.result == result; });
    if (row != std::end(kNvmlErrors)) {
        return Status(Code::Unsupported, row->reason, row->remedy).in(what);
    }
    const char* text = m_fn.errorText ? m_fn.errorText(result) : nullptr;
    return {Code::Unsupported,
            what + ": " + (text ? text : "NVML error " + std::to_string(int(result))),
            "Check that nvidia-smi works"};
}

}  // namespace colibri
