// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, loaded and initialised at run time: what CUPTI needs of it before its own calls,
// some of which crash where there is no driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.h"

namespace colibri {

constexpr int kOldestDriver = 13000;  // the CUDA version that the driver must support for CUPTI

// Any thread. Each open() may take a second, since the driver starts.
class CudaDriver {
public:
    // Errors: Unsupported with reason and remedy: no driver, no device, an old driver, a driver
    // that does not match its kernel module. `path`: see GpuLibraryPaths.
    static Result<std::shared_ptr<CudaDriver>> open(const std::string& path = {});

    int devices() const { return m_devices; }
    int version() const { return m_version; }  // 13000 for CUDA 13.0
    // The driver's number of the device with this index. Errors: there is no such device.
    Result<int> device(int index) const;
    // Keeps the primary context of a device alive, which takes memory of the GPU.
    Status retainContext(int device);
    void releaseContext(int device);

private:
    struct Functions {
        int (*init)(unsigned) = nullptr;
        int (*driverVersion)(int*) = nullptr;
        int (*deviceCount)(int*) = nullptr;
        int (*deviceGet)(int*, int) = nullptr;
        int (*contextRetain)(void**, int) = nullptr;
        int (*contextRelease)(int) = nullptr;
    } m_fn;
    int m_devices = 0, m_version = 0;
};

// The reason and remedy for an error of the driver. `what`: "the driver does not start".
Status cudaStatus(int error, const std::string& what);

}  // namespace colibri
