// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/cuda_driver.h"

#include <algorithm>

#include "profiler/gpu/gpu_library.h"

namespace colibri {
namespace {

constexpr int kCudaSuccess = 0, kCudaNoDevice = 100;

struct CudaErrorRow {
    int error;
    const char *reason, *remedy;
};
// From the CUDA driver API's list of errors; the remedies that helped people.
constexpr CudaErrorRow kCudaErrors[] = {
    {2, "the GPU has no memory left", "Close programs that use the GPU"},
    {34, "a stub of the driver is loaded instead of the driver",
     "Remove the folder stubs of the CUDA Toolkit from the library path"},
    {46, "the GPU is not available: another program has it alone, or its partition is changing",
     "Set the compute mode with nvidia-smi -c DEFAULT, or wait"},
    {kCudaNoDevice, "no NVIDIA GPU", "Check nvidia-smi -L and the variable CUDA_VISIBLE_DEVICES"},
    {101, "there is no GPU with this index", "nvidia-smi -L lists the GPUs"},
    {802, "the GPUs of this machine are not ready yet", "Start nvidia-fabricmanager, then retry"},
    {803, "driver and kernel module have different versions",
     "Restart the machine, or reload the module nvidia, after a driver update"},
    {804, "this GPU does not support the compatibility libraries of a newer CUDA",
     "Remove the package cuda-compat, or update the driver"},
};

}  // namespace

Status cudaStatus(int error, const std::string& what) {
    const auto row = std::find_if(std::begin(kCudaErrors), std::end(kCudaErrors),
                                  [&](const CudaErrorRow& r) { return r.error == error; });
    if (row == std::end(kCudaErrors)) {
        return {Code::Unsupported, what + " (CUDA error " + std::to_string(error) + ")",
                "Check that nvidia-smi works; in a container, that it has the GPU's devices"};
    }
    return {Code::Unsupported, row->reason, row->remedy};
}

Result<std::shared_ptr<CudaDriver>> CudaDriver::open(const std::string& path) {
    Result<GpuLibrary> library = GpuLibrary::open({path.empty() ? "libcuda.so.1" : path});
    if (!library) {
        return Status(Code::Unsupported, "no NVIDIA driver (libcuda.so.1 cannot be loaded)",
                      "Install the NVIDIA driver; in a container, start it with the GPU");
    }
    auto driver = std::make_shared<CudaDriver>();
    Functions& fn = driver->m_fn;
    library->bind(fn.init, "cuInit");
    library->bind(fn.driverVersion, "cuDriverGetVersion");
    library->bind(fn.deviceCount, "cuDeviceGetCount");
    library->bind(fn.deviceGet, "cuDeviceGet");
    library->bind(fn.contextRetain, "cuDevicePrimaryCtxRetain");
    library->bind(fn.contextRelease, "cuDevicePrimaryCtxRelease_v2");
    if (!library->missing().empty()) {
        return Status(Code::Unsupported, "the NVIDIA driver lacks " + library->missing(),
                      "Update the driver to version 580 or later");
    }
    if (const int error = fn.init(0); error != kCudaSuccess) {
        return cudaStatus(error, "the NVIDIA driver does not start");
    }
    if (fn.driverVersion(&driver->m_version) != kCudaSuccess || driver->m_version < kOldestDriver) {
        const int version = driver->m_version;
        return Status(Code::Unsupported,
                      "the NVIDIA driver is too old: it supports CUDA " +
                          std::to_string(version / 1000) + "." +
                          std::to_string(version % 1000 / 10) + ", CUPTI needs 13.0",
                      "Update the driver to version 580 or later");
    }
    const int error = fn.deviceCount(&driver->m_devices);
    if (error != kCudaSuccess || driver->m_devices == 0) {
        return cudaStatus(error == kCudaSuccess ? kCudaNoDevice : error,
                          "the NVIDIA driver lists no GPU");
    }
    return driver;
}

Result<int> CudaDriver::device(int index) const {
    int device = 0;
    if (const int error = m_fn.deviceGet(&device, index); error != kCudaSuccess) {
        return cudaStatus(error, "GPU " + std::to_string(index) + " cannot be used");
    }
    return device;
}

Status CudaDriver::retainContext(int device) {
    void* context = nullptr;
    const int error = m_fn.contextRetain(&context, device);
    return error == kCudaSuccess ? Status() : cudaStatus(error, "the GPU cannot be used");
}

void CudaDriver::releaseContext(int device) {
    (void)m_fn.contextRelease(device);
}

}  // namespace colibri
